"""How a sample becomes a model's input, as data."""

from .finding import METADATA, find_recipe, known, labels_of, recipe_of
from .recipe import Made, Recipe, read_recipe

__all__ = ["METADATA", "Made", "Recipe", "find_recipe", "known", "labels_of", "read_recipe", "recipe_of"]

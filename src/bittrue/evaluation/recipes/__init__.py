"""How a sample becomes a model's input, as data."""

from .recipe import Made, Recipe, find_recipe, known, read_recipe

__all__ = ["Made", "Recipe", "find_recipe", "known", "read_recipe"]

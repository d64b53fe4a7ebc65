"""How a sample becomes a model's input, as data."""

from .recipe import Recipe, find_recipe, known, read_recipe

__all__ = ["Recipe", "find_recipe", "known", "read_recipe"]

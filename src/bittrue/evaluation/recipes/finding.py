"""Recipes by name: those that come with bittrue, TOML files, and models that say themselves what they take."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ...api import Model, load
from ...errors import BittrueError, InputError
from ...files import read_file
from ...importers.tflite_metadata import NAME, read_description
from ...names import near_or_all
from .recipe import Recipe, read_recipe

# Stands for the metadata of the model that is evaluated.
METADATA = "metadata"
# Recipes that come with bittrue.
_KNOWN = resources.files(__name__.partition(".")[0]).joinpath("data", "recipes")


def known() -> list[str]:
    """Names of the recipes that come with bittrue."""
    return sorted(file.name.removesuffix(".toml") for file in _KNOWN.iterdir() if file.name.endswith(".toml"))


def find_recipe(which: str, holds: str = "image") -> Recipe:
    """A built-in recipe by name, the one in a TOML file, or that of a .tflite file's metadata.

    Args:
        which: name or path.
        holds: what samples are; see `Source`.

    Raises:
        InputError: there is none of that name, or the file holds no recipe.
        ModelFormatError: a model's metadata are damaged.
    """
    if which in known():
        return read_recipe(_KNOWN.joinpath(f"{which}.toml").read_text("utf-8"), which)
    path = Path(which)
    if not path.is_file():
        advice = near_or_all(which, [*known(), METADATA], "a .toml file, or one of")
        raise InputError("BT-RECIPE", f"no recipe '{which}'", advice=advice)
    if path.suffix.lower() == ".tflite":
        return recipe_of(load(path), read_file(path), holds)
    return read_recipe(read_file(path).decode("utf-8", "replace"), path.name)


def recipe_of(model: Model, content: bytes, holds: str) -> Recipe:
    """How samples become a model's first input, as its own file says.

    Args:
        model: the model.
        content: the bytes of its file.
        holds: what samples are; see `Source`.

    Raises:
        InputError: the file says nothing.
        ModelFormatError: what it says is damaged.
    """
    stored = model.file.metadata.get(NAME)
    if len(model.graph.inputs) != 1:
        raise InputError("BT-RECIPE", "only models with one input say what it takes", place=METADATA)
    if not stored:
        raise InputError("BT-RECIPE", "the model has no metadata", place=METADATA, advice="name another recipe")
    said = read_description(stored, content)
    steps: list[dict[str, Any]] = []
    if holds == "image":
        steps = [{"do": "decode", "colours": "grey" if said.grey else "rgb"}, {"do": "resize", "size": "model"}]
    if said.mean:
        steps.append({"do": "scale", "mean": list(said.mean), "deviation": list(said.deviation)})
    return Recipe(METADATA, tuple(steps))


def labels_of(model: Model, content: bytes) -> Sequence[str]:
    """Names of a model's classes by number; empty where its file says none that can be read."""
    stored = model.file.metadata.get(NAME)
    try:
        return read_description(stored, content).labels if stored else ()
    except BittrueError:  # names are only shown; for a recipe, damage is an error
        return ()

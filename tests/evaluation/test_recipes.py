"""Recipes: what a file may say, and what becomes of what it must not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bittrue
from bittrue.evaluation.recipes import read_recipe

GOOD = """
[[step]]
do = "decode"
colours = "grey"

[[step]]
do = "resize"
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step = 1", "list of tables"),
        ("[[step]]\ndo = 1", "unknown step 1"),
        ("[[step]]\ndo = [1]", "unknown step"),
        ('[[step]]\ndo = "resise"', "unknown step 'resise'"),
        ('[[step]]\ndo = "resize"\nmetod = "bicubic"', "step 'resize' knows no 'metod'"),
        ('[[step]]\ndo = "scale"\nlibrary = "pillow"', "step 'scale' knows no 'library'"),
        ('stepp = "x"', "unknown key 'stepp'"),
        ("[[step", "no TOML"),
    ],
)
def test_what_no_recipe_says(text: str, words: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        read_recipe(text, "r.toml")
    assert caught.value.code == "BT-RECIPE"
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "step",
    [
        'do = "scale"\nfactor = "much"',
        'do = "scale"\nmean = [1, 2, 3, 4, 5]',
        'do = "scale"\nmean = [[1], 2]',
        'do = "crop"\nfraction = "half"',
        'do = "crop"\nfraction = nan',
        'do = "resize"\nshorter = "x"',
        'do = "resize"\nshorter = 0',
        'do = "resize"\nsize = [0, 3]',
        'do = "move"\naxes = ["a"]',
        'do = "move"\naxes = [1, 0]',
        'do = "move"\naxes = 3',
    ],
)
def test_values_that_no_step_takes(tmp_path: Path, step: str) -> None:
    (tmp_path / "a").mkdir()
    Image.new("L", (9, 7), 100).save(tmp_path / "a" / "x.png")
    recipe = read_recipe(f"{GOOD}\n[[step]]\n{step}\n", "r.toml")
    with pytest.raises(bittrue.InputError) as caught:
        bittrue.evaluate(bittrue.demo_model(), tmp_path, recipe=recipe)
    assert caught.value.code == "BT-RECIPE"


def test_the_usual_library_is_part_of_the_result() -> None:
    named = read_recipe(GOOD.replace('"resize"', '"resize"\nlibrary = "pillow"'), "r.toml")
    assert list(read_recipe(GOOD, "r.toml").libraries()) == list(named.libraries()) == ["pillow"]
    assert read_recipe("", "r.toml").libraries() == {}


def test_arrays_that_a_step_cannot_take(tmp_path: Path) -> None:
    """All samples of an array are alike: what is wrong with one is an error before the first."""
    np.save(tmp_path / "x.npy", np.zeros((2, 8, 8, 1), np.float32))
    recipe = read_recipe('[[step]]\ndo = "scale"\nmean = [1, 2, 3]\n[[step]]\ndo = "move"\naxes = [0, 1]\n', "r.toml")
    with pytest.raises(bittrue.InputError, match="what it makes of a sample does not fit") as caught:
        bittrue.evaluate(bittrue.demo_model(), tmp_path / "x.npy", recipe=recipe)
    assert caught.value.code == "BT-RECIPE"


def test_an_unknown_rounding_is_an_error_before_the_first_sample(digits: Path) -> None:
    recipe = read_recipe('rounding = "litterbox"', "r.toml")
    with pytest.raises(bittrue.InputError, match="rounding") as caught:
        bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", recipe=recipe)
    assert caught.value.code == "BT-RECIPE"


# The input's real numbers go from 0 to 0.996; those of images from 0 to 255.
@pytest.mark.parametrize(
    ("scale", "fits"),
    [
        ("factor = 0.00392156862745098", True),
        ("factor = 0.0625", True),  # images that do not use their eight bits
        ("factor = 0.00784313725490196\nmean = 1", True),
        ("factor = 1", False),
        ("factor = 0.00001", False),
        ("factor = 0.00392156862745098\nmean = 2", False),
        ("factor = -0.00392156862745098\nmean = -1", True),
    ],
)
def test_ranges(tmp_path: Path, scale: str, fits: bool) -> None:
    (tmp_path / "a").mkdir()
    Image.new("L", (9, 7), 100).save(tmp_path / "a" / "x.png")
    recipe = read_recipe(f'{GOOD}\n[[step]]\ndo = "scale"\n{scale}\n', "r.toml")
    if fits:
        assert bittrue.evaluate(bittrue.demo_model(), tmp_path, recipe=recipe)["errors"] == {}
    else:
        with pytest.raises(bittrue.InputError, match="it makes real numbers from") as caught:
            bittrue.evaluate(bittrue.demo_model(), tmp_path, recipe=recipe)
        assert caught.value.code == "BT-RECIPE"

"""Every example in a docstring of the package is run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import bittrue

MODULES = sorted(
    ["bittrue", *(m.name for m in pkgutil.walk_packages(bittrue.__path__, "bittrue.") if m.name != "bittrue._native")]
)


def _has_examples(name: str) -> bool:
    place = Path(bittrue.__file__).parent.joinpath(*name.split(".")[1:])
    return ">>>" in (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()


def test_every_module_can_be_imported() -> None:
    for name in MODULES:
        importlib.import_module(name)


@pytest.mark.parametrize("name", [name for name in MODULES if _has_examples(name)])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0

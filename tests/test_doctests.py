"""Every example in a docstring of the package is run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import bittrue

MODULES = sorted(
    ["bittrue", *(m.name for m in pkgutil.walk_packages(bittrue.__path__, "bittrue.") if m.name != "bittrue._native")]
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0

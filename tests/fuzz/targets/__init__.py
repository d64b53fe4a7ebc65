"""Fuzz targets, one file each.

A target has three functions:

* ``seeds(folder)``: well-formed inputs from the tests' own builders;
* ``change(content, seed)``: another input of the same form, or one that is nearly so; it may raise anything for content
  that is of another form;
* ``attempt(content, folder)``: reads and runs any bytes at all; returns a short outcome (``"result"``, or the code of a
  typed error) and raises for everything that must not be, see `oracle`. `folder` is for files.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, cast


class Target(Protocol):
    """A module of this folder."""

    def seeds(self, folder: Path) -> Iterable[bytes]: ...

    def change(self, content: bytes, seed: int) -> bytes: ...

    def attempt(self, content: bytes, folder: Path) -> str: ...


NAMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"))


def find(name: str) -> Target:
    """The target of this name; KeyError for none."""
    if name not in NAMES:
        raise KeyError(name)
    return cast(Target, importlib.import_module(f"targets.{name}"))

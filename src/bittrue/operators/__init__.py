"""Operators by theme, one file per operator (or per family of one formula): shapes, planning and the NumPy reference.

They are found by looking through the files of this folder: a file defines `OPERATOR` or `OPERATORS`, or is shared
machinery. `find(stem)` imports the file of that name, else only files in whose text the stem stands, so that importing
bittrue stays fast.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from functools import cache

from .core.base import Bound, Call, Function, Lowered, Operand, Operator, Role, Step, Subgraph, ValueUnknown, World

_FOLDER = os.path.dirname(__file__)


@cache
def _files() -> dict[str, str]:
    """Theme and name of every file, with a dot between them, to its path."""
    themes = sorted(entry.name for entry in os.scandir(_FOLDER) if entry.is_dir())
    folders = [(theme, os.path.join(_FOLDER, theme, "")) for theme in themes]
    return {
        f"{theme}.{name.removesuffix('.py')}": folder + name
        for theme, folder in folders
        for name in sorted(os.listdir(folder))
        if name.endswith(".py")
    }


@cache
def _texts() -> dict[str, str]:
    """The same to its text."""
    texts = {}
    for name, path in _files().items():
        with open(path, encoding="utf-8") as file:
            texts[name] = file.read()
    return texts


def _likely(stem: str) -> Iterator[str]:
    """The files in which an operator may stand, the likeliest first: that of its name, then those that make one of that
    name on the spot, then those that name it.
    """
    yield from (file for file in _files() if file.endswith(f".{stem}"))
    made = re.compile(rf'perator\(\s*"{re.escape(stem)}"')
    naming = {file: text for file, text in _texts().items() if f'"{stem}"' in text}
    yield from sorted(naming, key=lambda file: not made.search(naming[file]))


def _operators_of(file: str) -> tuple[Operator, ...]:
    loaded = importlib.import_module(f"{__name__}.{file}")
    found: tuple[Operator, ...] = getattr(loaded, "OPERATORS", ())
    return (*found, loaded.OPERATOR) if hasattr(loaded, "OPERATOR") else found


@cache
def registry() -> dict[str, Operator]:
    """Stem to operator, collected from every file of this folder's themes."""
    found: dict[str, Operator] = {}
    for file in _files():
        for operator in _operators_of(file):
            if operator.stem in found:
                raise RuntimeError(f"two operator files define '{operator.stem}'")
            found[operator.stem] = operator
    return found


@cache
def find(stem: str) -> Operator | None:
    """The operator called `stem`, or None when bittrue has none. Imports only files where it may stand."""
    for file in _likely(stem):
        for operator in _operators_of(file):
            if operator.stem == stem:
                return operator
    return None


__all__ = [
    "Bound",
    "Call",
    "Function",
    "Lowered",
    "Operand",
    "Operator",
    "Role",
    "Step",
    "Subgraph",
    "ValueUnknown",
    "World",
    "find",
    "registry",
]

"""Operators by theme, one file per operator (or per family of one formula): shapes, planning and the NumPy reference.

They are found by looking through the files of this folder: a file defines `OPERATOR` or `OPERATORS`, or is shared
machinery. `find(stem)` imports only files in whose text the stem stands, so that importing bittrue stays fast.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from importlib.resources import files

from .base import Bound, Call, Lowered, Operand, Operator, Role, Step, Subgraph, ValueUnknown, World


@cache
def _texts() -> dict[str, str]:
    """Module of every file of this folder to its text."""
    return {
        item.name[:-3]: item.read_text(encoding="utf-8")
        for item in files(__name__).iterdir()
        if item.name.endswith(".py")
    }


def _operators_of(file: str) -> tuple[Operator, ...]:
    loaded = importlib.import_module(f"{__name__}.{file}")
    found: tuple[Operator, ...] = getattr(loaded, "OPERATORS", ())
    return (*found, loaded.OPERATOR) if hasattr(loaded, "OPERATOR") else found


@cache
def registry() -> dict[str, Operator]:
    """Stem to operator, collected from every file of this folder."""
    found: dict[str, Operator] = {}
    for module in pkgutil.iter_modules(__path__):
        for operator in _operators_of(module.name):
            if operator.stem in found:
                raise RuntimeError(f"two operator files define '{operator.stem}'")
            found[operator.stem] = operator
    return found


@cache
def find(stem: str) -> Operator | None:
    """The operator called `stem`, or None when bittrue has none. Imports only files in which the stem stands."""
    made = re.compile(rf'perator\(\s*"{re.escape(stem)}"')
    naming = {file: text for file, text in _texts().items() if f'"{stem}"' in text}
    # The likeliest first: a file of that name, then those that make an operator of that name on the spot.
    for file in sorted(naming, key=lambda file: (file != stem, not made.search(naming[file]), file)):
        for operator in _operators_of(file):
            if operator.stem == stem:
                return operator
    return None


__all__ = [
    "Bound",
    "Call",
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

"""Operators by theme, one file per operator (or per family of one formula): shapes, planning and the NumPy reference.

They are found by looking through the files of this folder: a file defines `OPERATOR` or `OPERATORS`, or is shared
machinery. `find(stem)` imports only files in whose text the stem stands, so that importing bittrue stays fast.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from .core.base import Bound, Call, Function, Lowered, Operand, Operator, Role, Step, Subgraph, ValueUnknown, World


@cache
def _texts() -> dict[str, str]:
    """Theme and name of every file, with a dot between them, to its text."""
    root = Path(__file__).parent
    return {f"{file.parent.name}.{file.stem}": file.read_text(encoding="utf-8") for file in sorted(root.glob("*/*.py"))}


def _operators_of(file: str) -> tuple[Operator, ...]:
    loaded = importlib.import_module(f"{__name__}.{file}")
    found: tuple[Operator, ...] = getattr(loaded, "OPERATORS", ())
    return (*found, loaded.OPERATOR) if hasattr(loaded, "OPERATOR") else found


@cache
def registry() -> dict[str, Operator]:
    """Stem to operator, collected from every file of this folder's themes."""
    found: dict[str, Operator] = {}
    for file in _texts():
        for operator in _operators_of(file):
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
    for file in sorted(naming, key=lambda file: (not file.endswith(f".{stem}"), not made.search(naming[file]), file)):
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

"""One file per operator (or per family of one formula): shapes, planning and the NumPy reference.

`find(stem)` imports an operator's file on first use, so that importing bittrue stays fast.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from .base import Bound, Call, Lowered, Operand, Operator, Step

# Modules of this folder that hold shared machinery instead of an operator.
_SHARED = frozenset({"base", "geometry", "accumulator", "requirements", "elementwise", "indexing"})


@cache
def registry() -> dict[str, Operator]:
    """Stem to operator, collected from every operator file of this folder."""
    found: dict[str, Operator] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name in _SHARED:
            continue
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for operator in getattr(loaded, "OPERATORS", None) or (loaded.OPERATOR,):
            if operator.stem in found:
                raise RuntimeError(f"two operator files define '{operator.stem}'")
            found[operator.stem] = operator
    return found


def find(stem: str) -> Operator | None:
    """The operator called `stem`, or None when bittrue has none."""
    return registry().get(stem)


__all__ = ["Bound", "Call", "Lowered", "Operand", "Operator", "Step", "find", "registry"]

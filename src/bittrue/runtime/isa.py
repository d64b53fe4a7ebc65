"""The C++ core and its instruction sets."""

from __future__ import annotations

import os
from types import ModuleType

from ..errors import InputError
from ..names import near_or_all

# Forces the instruction set of every session that does not choose one itself.
ENVIRONMENT = "BITTRUE_ISA"


def native_module() -> ModuleType | None:
    """The C++ core; None where bittrue runs from its sources without having been built."""
    try:
        from .. import _native
    except ImportError:
        return None
    return _native


def isas() -> tuple[str, ...]:
    """Instruction sets that this processor runs, the fastest first; empty without the C++ core."""
    module = native_module()
    return tuple(module.available_isas()) if module else ()


def choose_isa(wanted: str | None) -> str:
    """`wanted`, else what the environment says, else the fastest one.

    Raises:
        InputError: this processor does not run it.
    """
    available = isas()
    chosen = wanted or os.environ.get(ENVIRONMENT) or available[0]
    if chosen not in available:
        place = "isa" if wanted else f"environment variable {ENVIRONMENT}"
        raise InputError(
            "BT-ISA",
            f"this processor does not run '{chosen}'",
            place=place,
            advice=near_or_all(chosen, available, "choose one of"),
        )
    return chosen

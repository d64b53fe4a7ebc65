"""Tables of 8-bit values whose entries are those of a function by the slot `table_function`."""

from __future__ import annotations

import numpy as np

from ...records import replace
from ...rules import table_function
from ..core.base import Call, Lowered, Operator
from .logistic import table_lowered

_F32 = np.float32
_SLOTS = ("table", "table_function")


def with_rounded_table(operator: Operator) -> Operator:
    """The operator, which makes such a table where a row has the slot."""

    def lower(call: Call) -> Lowered:
        return _lower(call, operator.stem) if "table_function" in call.rules else operator.lower(call)

    slots = (*operator.slots, *(slot for slot in _SLOTS if slot not in operator.slots))
    return replace(operator, slots=slots, lower=lower)


def _lower(call: Call, stem: str) -> Lowered:
    """A lookup like any other. NaN counts as infinite, which saturates."""
    source, output = call.input(0), call.output
    if source.dtype != output.dtype:
        raise call.invalid("BT-NODE-TYPE", f"quantized values are {source.dtype}, results {output.dtype}")
    compute = table_function.RULES[call.rules["table_function"]].functions[stem]

    def function(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            value = np.asarray(compute(x.astype(_F32)), _F32)
        return np.where(np.isnan(value), _F32(np.inf), value)

    return replace(table_lowered(call, function), operator="logistic")

"""Tables of 8-bit values whose entries are those of a function by the slot `table_function`.

Quantized values for which the function has no value are refused when they occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...records import replace
from ...rules import table_function
from ..core.base import Call, Lowered, Operator, Step
from .logistic import read_table, table_lowered

_F32 = np.float32
_SLOTS = ("table", "table_function")


def with_rounded_table(operator: Operator) -> Operator:
    """The operator, which makes such a table where a row has the slot."""

    def lower(call: Call) -> Lowered:
        return _lower(call, operator.stem) if "table_function" in call.rules else operator.lower(call)

    def reference(step: Step, inputs: Sequence[np.ndarray], *more: Any) -> list[np.ndarray]:
        return _read(step, inputs) if "missing" in step.arrays else operator.reference(step, inputs, *more)

    slots = (*operator.slots, *(slot for slot in _SLOTS if slot not in operator.slots))
    return replace(operator, slots=slots, lower=lower, reference=reference)


def _lower(call: Call, stem: str) -> Lowered:
    """The table, and which of its entries stand for no number."""
    source, output = call.input(0), call.output
    if source.dtype != output.dtype:
        raise call.invalid("BT-NODE-TYPE", f"quantized values are {source.dtype}, results {output.dtype}")
    compute, missing = table_function.RULES[call.rules["table_function"]].functions[stem], np.zeros(0, bool)

    def function(x: np.ndarray) -> np.ndarray:
        nonlocal missing
        with np.errstate(all="ignore"):
            value = np.asarray(compute(x.astype(_F32)), _F32)
        missing = np.isnan(value)
        return np.where(missing, _F32(0), value)

    lowered = table_lowered(call, function)
    if missing.any():
        return replace(lowered, arrays={"entries": lowered.arrays["table"], "missing": missing})
    # A lookup like any other.
    return replace(lowered, operator="logistic")


def _read(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    x, arrays = inputs[0], step.arrays
    absent = arrays["missing"][x.astype(np.int64) - step["minimum"]]
    if absent.any():
        value = int(x[absent].reshape(-1)[0])
        raise RunError(
            "BT-RUN-NAN",
            f"the function has no value for quantized value {value}: its real number lies outside of the domain",
            place=step.place,
            advice="keep quantized values inside of the function's domain",
        )
    return [read_table(replace(step, arrays={"table": arrays["entries"]}), x)]

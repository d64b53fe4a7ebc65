"""remainder: what division leaves, with the sign of the dividend or of the divisor (attribute `sign_of`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import modulo
from ...rules import remainder as rules
from ..core.base import Call, Lowered, Operator, Step, broadcast_shape
from ..core.elementwise import blockwise
from .div import refuse_divisor, refuse_overflow


def lower(call: Call) -> Lowered:
    """Whose sign it takes."""
    whose = str(call.attribute("sign_of"))
    if whose not in ("dividend", "divisor"):
        raise call.invalid("BT-REMAINDER-SIGN", f"sign_of is '{whose}', expected 'dividend' or 'divisor'")
    return Lowered({"sign_of": whose})


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.fmod(a, b)


def _floored(step: Step, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    if first.dtype.kind == "f":
        return blockwise(modulo.RULES[step.rules["modulo"]], [first, second], first.dtype, first.dtype)
    refuse_divisor(step, second, 0, "0")
    lowest = int(np.iinfo(first.dtype).min)

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # The kernels' division instruction traps here, although the remainder would be 0.
        if first.dtype.itemsize >= 4:
            refuse_overflow(step, lowest, a, b)
        return np.mod(a, b)

    compute = first.dtype if first.dtype == np.uint64 else np.dtype(np.int64)
    return blockwise(block, [first, second], first.dtype, compute)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A float divisor of 0 gives NaN, an integer one is an error."""
    first, second = inputs
    if step["sign_of"] == "divisor":
        return [_floored(step, first, second)]
    if first.dtype.kind == "f":
        return [blockwise(_truncated, [first, second], first.dtype, first.dtype)]
    refuse_divisor(step, second, 0, "0")
    return [blockwise(rules.RULES[step.rules["remainder"]], [first, second], first.dtype, first.dtype)]


OPERATOR = Operator(
    "remainder",
    ("modulo", "remainder"),
    broadcast_shape,
    lower,
    reference,
    "what division leaves, with the sign of the dividend or of the divisor",
    elementwise=2,
)

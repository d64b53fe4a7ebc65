"""floor_div and floor_mod: quotient toward minus infinity, and the remainder that takes the divisor's sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import modulo, plain_range
from ..core.base import Operator, Step, broadcast_shape, nothing_to_prepare
from ..core.elementwise import blockwise
from .div import refuse_divisor


def _divide_floats(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """f32(floor(f64(a) / f64(b)))."""
    with np.errstate(all="ignore"):
        quotient = np.floor(a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)
    return plain_range.with_first_nan(quotient, a, b)


def _refuse_overflow(step: Step, lowest: int, a: np.ndarray, b: np.ndarray) -> None:
    """RunError for `lowest` over -1, whose quotient does not fit its type."""
    if ((a == lowest) & (b == -1)).any():
        raise RunError(
            "BT-DIVIDE-RANGE",
            f"{lowest} over -1 has no defined result in the kernels",
            place=step.place,
            advice="the quotient does not fit the type; keep one of the two values out",
        )


def reference_div(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Exact for up to 32 bits. The one quotient that does not fit, minimum / -1, wraps to the minimum in 32 bits.

    In 8 and 16 bits it stops the run: the kernels convert from binary64, which gives the minimum in some of their
    loops and the maximum in others.
    """
    first, second = inputs
    refuse_divisor(step, second, 0, "0")
    if first.dtype.kind == "f":
        return [blockwise(_divide_floats, [first, second], first.dtype, first.dtype)]
    lowest = int(np.iinfo(first.dtype).min)

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if first.dtype.itemsize < 4:
            _refuse_overflow(step, lowest, a, b)
        return np.floor_divide(a, b)

    return [blockwise(block, [first, second], first.dtype)]


def reference_mod(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A float divisor may be 0 (the result is NaN), an integer one may not."""
    first, second = inputs
    if first.dtype.kind == "f":
        return [blockwise(modulo.RULES[step.rules["modulo"]], [first, second], first.dtype, first.dtype)]
    refuse_divisor(step, second, 0, "0")
    lowest = int(np.iinfo(first.dtype).min)

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # The kernels' division instruction traps here, although the remainder would be 0.
        if first.dtype.itemsize >= 4:
            _refuse_overflow(step, lowest, a, b)
        return np.mod(a, b)

    compute = first.dtype if first.dtype == np.uint64 else np.dtype(np.int64)
    return [blockwise(block, [first, second], first.dtype, compute)]


OPERATORS = (
    Operator(
        "floor_div",
        (),
        broadcast_shape,
        nothing_to_prepare,
        reference_div,
        "quotient toward minus infinity",
        elementwise=2,
    ),
    Operator(
        "floor_mod",
        ("modulo",),
        broadcast_shape,
        nothing_to_prepare,
        reference_mod,
        "remainder with the divisor's sign",
        elementwise=2,
    ),
)

"""floor_div and floor_mod: quotient toward minus infinity, and the remainder that takes the divisor's sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import RunError
from ..rules import plain_range
from .base import Operator, Step, broadcast_shape, nothing_to_prepare
from .div import refuse_divisor
from .elementwise import blockwise


def _divide_floats(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """f32(floor(f64(a) / f64(b)))."""
    with np.errstate(all="ignore"):
        quotient = np.floor(a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)
    return plain_range.with_first_nan(quotient, a, b)


def reference_div(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Exact for up to 32 bits; the one quotient that does not fit, minimum / -1, wraps to the minimum."""
    first, second = inputs
    refuse_divisor(step, second, 0, "0")
    if first.dtype.kind == "f":
        return [blockwise(_divide_floats, [first, second], first.dtype, first.dtype)]
    return [blockwise(np.floor_divide, [first, second], first.dtype)]


def _modulo_floats(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact remainder of the truncated quotient, plus b (one rounding) where their signs differ."""
    with np.errstate(all="ignore"):
        remainder = np.fmod(a, b)
        moved = np.where((remainder != 0) & ((b < 0) != (remainder < 0)), remainder + b, remainder)
    return plain_range.with_first_nan(moved, a, b)


def reference_mod(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A float divisor may be 0 (the result is NaN), an integer one may not."""
    first, second = inputs
    if first.dtype.kind == "f":
        return [blockwise(_modulo_floats, [first, second], first.dtype, first.dtype)]
    refuse_divisor(step, second, 0, "0")
    lowest = np.iinfo(first.dtype).min

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # The kernels' division instruction traps here, although the remainder would be 0.
        if first.dtype.itemsize >= 4 and ((a == lowest) & (b == -1)).any():
            raise RunError("BT-DIVIDE-RANGE", f"{lowest} mod -1 has no result in the kernels", place=step.place)
        return np.mod(a, b)

    return [blockwise(block, [first, second], first.dtype)]


OPERATORS = (
    Operator("floor_div", (), broadcast_shape, nothing_to_prepare, reference_div, "quotient toward minus infinity"),
    Operator("floor_mod", (), broadcast_shape, nothing_to_prepare, reference_mod, "remainder with the divisor's sign"),
)

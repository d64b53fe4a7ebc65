"""pow: first ^ second for 32-bit integers, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..arithmetic import fixed_point, floats
from ..errors import RunError
from .base import Call, Lowered, Operator, Step, broadcast_shape
from .elementwise import blockwise


def lower(call: Call) -> Lowered:
    """Whether powers wrap: only for one exponent whose shape differs from the base's, as the kernels have it."""
    base, exponent = call.input(0), call.input(1)
    return Lowered(parameters={"one_exponent": exponent.size == 1 and exponent.shape != base.shape})


def _by_squaring(
    base: np.ndarray, exponent: np.ndarray, multiply: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    result = np.ones_like(base)
    bits = int(exponent.max()).bit_length() if exponent.size else 0
    for bit in range(bits):
        result = np.where((exponent >> bit) & 1, multiply(result, base), result)
        base = multiply(base, base)
    return result


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Powers outside 32 bits become -2^31 (a conversion from binary64), or wrap when there is one exponent >= 1.

    In binary64 every power below 2^53 is exact, and no larger one comes back below it: no math library is needed.
    """
    base, exponent = inputs
    if (exponent < 0).any():
        raise RunError("BT-POW-EXPONENT", "an integer cannot be raised to a negative power", place=step.place)
    wraps = step["one_exponent"] and bool((exponent > 0).all())

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if wraps:
            return _by_squaring(a, b, lambda x, y: fixed_point.wrap_s32(x * y))
        with np.errstate(over="ignore", invalid="ignore"):
            return floats.truncate_to_s32(_by_squaring(a.astype(np.float64), b, np.multiply))

    return [blockwise(block, [base, exponent], base.dtype)]


OPERATOR = Operator("pow", (), broadcast_shape, lower, reference, "integer power")

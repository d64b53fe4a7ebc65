"""pow: first ^ second for 32-bit integers and real numbers, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..arithmetic import elementary, fixed_point, floats
from ..errors import RunError
from ..rules import plain_range
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


def _near_whole(step: Step, exponent: np.ndarray) -> int:
    """The one exponent when it is within 1e-5 of a whole number >= 1 that fits 32 bits, else 0."""
    if not step["one_exponent"]:
        return 0
    y = exponent.reshape(-1)[0]
    with np.errstate(invalid="ignore", over="ignore"):
        whole = int(floats.truncate_to_s32(floats.round_away(np.float32(y))))
        near = abs(y - np.float32(whole)) < np.float32(1e-5)
    return whole if near and whole >= 1 else 0


def _multiplied(x: np.ndarray, exponent: int) -> np.ndarray:
    """x^exponent by squaring from the highest bit; products that overflow stop at the largest finite number."""
    low, high = plain_range.type_limits("none", x.dtype)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return plain_range.clamp(plain_range.with_first_nan(a * b, a, b), low, high)

    result = x
    for bit in range(exponent.bit_length() - 2, -1, -1):
        result = product(result, result)
        if exponent >> bit & 1:
            result = product(x, result)
    return result


def _reference_real(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    base, exponent = inputs
    whole = _near_whole(step, exponent)
    real = np.dtype(np.float32)
    if whole:
        powers = blockwise(lambda x: _multiplied(x, whole), [base], real, real)
        return [powers.reshape(np.broadcast_shapes(base.shape, exponent.shape))]
    return [blockwise(elementary.power, [base, exponent], real, real)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Powers outside 32 bits become -2^31 (a conversion from binary64), or wrap when there is one exponent >= 1.

    In binary64 every power below 2^53 is exact, and no larger one comes back below it: no math library is needed.
    Real numbers: one exponent that is nearly a whole number >= 1 means repeated multiplication.
    """
    base, exponent = inputs
    if base.dtype == np.float32:
        return _reference_real(step, inputs)
    if (exponent < 0).any():
        raise RunError("BT-POW-EXPONENT", "an integer cannot be raised to a negative power", place=step.place)
    wraps = step["one_exponent"] and bool((exponent > 0).all())

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if wraps:
            return _by_squaring(a, b, lambda x, y: fixed_point.wrap_s32(x * y))
        with np.errstate(over="ignore", invalid="ignore"):
            return floats.truncate_to_s32(_by_squaring(a.astype(np.float64), b, np.multiply))

    return [blockwise(block, [base, exponent], base.dtype)]


OPERATOR = Operator("pow", (), broadcast_shape, lower, reference, "first to the power of second", elementwise=2)

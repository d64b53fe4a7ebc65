"""Slot `inverse_root`: one over the square root of a quantized number, stored quantized."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, multiplier, transcendental

# Fractional bits that the inverse root keeps between its two rescales.
_KEPT_BITS = 20

InverseRoot = Callable[[np.ndarray, float, float, int, int, int], np.ndarray]


def q31_newton_away(
    values: np.ndarray, scale: float, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """clamp(rescale(rescale(1, inverse root of v, 2^20), M * 2^-20) + output_zero_point); v = 0 gives `high`.

    M stands for 1 / f64(f32(f32(sqrt(scale)) * output_scale)). Both rescales are the two-step ones: doubling high
    multiply with ties up, then a power of two with ties away from zero. Domain: values = q - zero_point >= 0.
    Raises OverflowError when M < 2^-12, since the second right shift would exceed 31, and when M is infinite.
    Source: docs/facts/litert.md 2.3 (RSQRT of 8 bits), verified by running.

    >>> q31_newton_away(np.array([0, 1, 4, 16, 64]), 1.0, 0.125, 0, -128, 127).tolist()
    [127, 8, 4, 2, 1]
    """
    product = np.float64(np.sqrt(np.float32(scale)) * np.float32(output_scale))
    if not product:
        raise OverflowError(f"sqrt({scale!r}) * {output_scale!r} is 0 in binary32")
    encoded, exponent = multiplier.encode_q31(1.0 / product)
    second = int(exponent) - _KEPT_BITS
    if second < -31 or second > 30:
        raise OverflowError(f"1 / (sqrt({scale!r}) * {output_scale!r}) is outside [2^-12, 2^50]")
    root, root_exponent = transcendental.inverse_square_root(values)
    kept = _rescale(np.ones_like(root), root, root_exponent + _KEPT_BITS)
    result = fixed_point.wrap_s32(_rescale(kept, encoded, np.asarray(second)) + output_zero_point)
    return np.where(values == 0, high, np.clip(result, low, high))


def _rescale(x: np.ndarray, encoded: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    left = fixed_point.wrap_s32(x << np.maximum(exponent, 0))
    high = fixed_point.doubling_high_multiply_up(left, encoded)
    return fixed_point.divide_by_power_of_two_away(high, np.maximum(-exponent, 0))


RULES: dict[str, InverseRoot] = {"q31_newton_away": q31_newton_away}

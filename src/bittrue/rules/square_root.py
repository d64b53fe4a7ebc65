"""Slot `square_root`: the square root of a quantized number, stored quantized."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, floats

SquareRoot = Callable[[np.ndarray, float, int, float, int, int, int], np.ndarray]


def binary32_divide_trunc(
    q: np.ndarray, scale: float, zero_point: int, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """clamp(trunc(f32(f32(sqrt(f32(scale * (q - zero_point)))) / output_scale)) + output_zero_point).

    There is no rounding to nearest: the fraction is dropped. Domain: q >= zero_point. A quotient that does not fit
    32 bits becomes -2^31 (x86 conversion). Source: docs/facts/litert.md 2.3 (SQRT), verified by running.

    >>> binary32_divide_trunc(np.int8([0, 7, 9, 100]), 1.0, 0, 0.5, -128, -128, 127).tolist()
    [-128, -123, -122, -108]
    >>> binary32_divide_trunc(np.int8([100]), 1.0, 0, 0.01, 0, -128, 127).tolist()
    [127]
    """
    real = np.float32(scale) * (q.astype(np.int64) - zero_point).astype(np.float32)
    with np.errstate(over="ignore"):
        steps = floats.truncate_to_s32(np.sqrt(real) / np.float32(output_scale))
    return np.clip(fixed_point.wrap_s32(steps + output_zero_point), low, high)


RULES: dict[str, SquareRoot] = {"binary32_divide_trunc": binary32_divide_trunc}

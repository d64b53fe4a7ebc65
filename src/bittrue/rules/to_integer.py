"""Slots `to_integer` and `to_integer_tail`: a quotient becomes a quantized value with its zero point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, floats

# (quotient, zero points, smallest, largest) to s64.
ToIntegerRule = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]


def clamp_even(quotient: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """round_even(clamp(quotient, minimum - zero_point, maximum - zero_point)) + zero_point.

    The same as to round first and to limit the sum, for all numbers; infinities saturate, NaN gives the minimum.
    Source: docs/facts/onnxruntime.md 1.2, verified by running.

    >>> q = np.float32([0.5, 1.5, -2.5, 300, np.inf, np.nan])
    >>> clamp_even(q, np.int64(1), -128, 127).tolist()
    [1, 3, -1, 127, 127, -128]
    """
    low, high = (np.asarray(end - zero_point, quotient.dtype) for end in (minimum, maximum))
    limited = np.where(quotient > low, quotient, low)
    limited = np.where(limited < high, limited, high)
    return np.rint(limited).astype(np.int64) + zero_point


def even_wrap(quotient: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """clamp(wrap32(to_s32(round_even(quotient)) + zero_point)), to_s32 being the x86 conversion.

    NaN, infinities and what 32 bits do not hold become -2^31; so they give the minimum where the zero point is 0 or
    more, else the maximum. Source: docs/facts/onnxruntime.md 1.2, verified by running.

    >>> q = np.float32([0.5, 1.5, -2.5, 300, np.inf, np.nan])
    >>> even_wrap(q, np.int64(0), -128, 127).tolist(), even_wrap(q[-2:], np.int64(-1), -128, 127).tolist()
    ([0, 2, -2, 127, -128, -128], [127, 127])
    """
    steps = floats.truncate_to_s32(np.rint(quotient))
    return np.clip(fixed_point.wrap_s32(steps + zero_point), minimum, maximum)


def away_sum_clamp(quotient: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """to_s32(clamp(f32(round_away(quotient) + f32(zero_point)))), clamped as real numbers; NaN gives the maximum.

    The ends are binary32 numbers: 2^31 for the largest 32-bit integer, which to_s32 (the x86 conversion) makes -2^31.
    Source: docs/facts/tvm_qnn.md 2, read.

    >>> q = np.float32([0.5, 1.5, -2.5, 300, np.inf, np.nan])
    >>> away_sum_clamp(q, np.int64(1), -128, 127).tolist()
    [2, 3, -2, 127, 127, 127]
    """
    moved = floats.round_away(quotient.astype(np.float32)) + np.asarray(zero_point).astype(np.float32)
    low, high = np.float32(minimum), np.float32(maximum)
    limited = np.where(moved < high, moved, high)
    return floats.truncate_to_s32(np.where(limited > low, limited, low))


def clamp_of_s64(whole: np.ndarray, zero_point: np.ndarray | int, minimum: int, maximum: int) -> np.ndarray:
    """clamp(whole + zero_point) of real numbers without fractions; what 64 bits do not hold, NaN too, gives `minimum`.

    No rule of the slot; rules of other slots end so.

    >>> clamp_of_s64(np.float32([5, 1e10, -1e10, 1e30, np.nan]), 1, -128, 127).tolist()
    [6, 127, -128, -128, -128]
    """
    fits = np.abs(whole) < 2.0**63  # false for NaN
    moved = np.clip(np.where(fits, whole, 0).astype(np.int64), -(2**40), 2**40) + zero_point
    return np.where(fits, np.clip(moved, minimum, maximum), minimum)


RULES: dict[str, ToIntegerRule] = {
    "away_sum_clamp": away_sum_clamp,
    "clamp_even": clamp_even,
    "even_wrap": even_wrap,
}

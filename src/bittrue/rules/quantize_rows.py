"""Slots `quantize_symmetric` and `quantize_asymmetric`: real rows become bytes with scales of their own at run time.

A row is what shares one scale: a picture of a convolution, a row of a matrix product. All rules take finite binary32
rows of one axis and return (integers as s32, binary32 scale, zero point).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, floats

Quantized = tuple[np.ndarray, np.float32, int]
QuantizeRowRule = Callable[[np.ndarray], Quantized]

_BLOCK = 8


def _split(row: np.ndarray, inverse: np.float32) -> tuple[np.ndarray, np.ndarray]:
    """f32(x * inverse), rounded in whole blocks of eight as int64, and not yet in the rest of the row.

    In blocks: trunc(f32(p + 0.5)), with -0.5 below zero: the sum may round up to the next integer. From 2^31 on it
    stays 2^31 - 1; NaN and everything below -2^31 give -2^31.
    """
    with np.errstate(all="ignore"):
        products = row * inverse
        blocks = row.size - row.size % _BLOCK
        body = products[:blocks] + np.where(products[:blocks] < 0, np.float32(-0.5), np.float32(0.5))
    steps = np.where(body >= 2.0**31, fixed_point.S32_MAX, floats.truncate_to_s32(body))
    return steps, products[blocks:]


def binary32_range_over_127_by_eights(row: np.ndarray) -> Quantized:
    """scale = f32(m / 127), q = clamp(round(f32(x * f32(127 / m))), -127, 127), m the largest |x|; zero point 0.

    A row of zeros has scale 1. See `_split` for the rounding in blocks; in the rest of the row to nearest, ties away
    from zero, where NaN and what does not fit 32 bits give -127. Both happen when 127 / m is infinite.
    Source: optimized/neon_tensor_utils.cc (SymmetricQuantizeFloats), verified by running.

    The first value is half a step less one bit: adding one half in binary32 makes 1 of it, but not in the ninth place.

    >>> row = np.float32([0.49999997, 0, 0, 0, 0, 0, 0, 0, 0.49999997, 127])
    >>> binary32_range_over_127_by_eights(row)[0].tolist()
    [1, 0, 0, 0, 0, 0, 0, 0, 0, 127]
    """
    largest = np.abs(row).max(initial=np.float32(0))
    if largest == 0:
        return np.zeros(row.shape, np.int32), np.float32(1), 0
    with np.errstate(all="ignore"):
        scale, inverse = largest / np.float32(127), np.float32(127) / largest
    body, rest = _split(row, inverse)
    steps = np.concatenate([body, floats.truncate_to_s32(floats.round_away(rest))])
    return np.clip(steps, -127, 127).astype(np.int32), scale, 0


def binary32_range_over_255_by_eights(row: np.ndarray) -> Quantized:
    """s = (hi - lo) / 255 with lo = min(0, x), hi = max(0, x): the difference in binary32, the quotient in binary64.

    zero point = -128 - lo / s or 127 - hi / s in binary64, whichever has the smaller |limit| + |quotient| (the second
    when equal), to nearest, ties away from zero, within [-128, 127]. scale = f32(s),
    q = clamp(round(f32(x * f32(1 / scale))) + zero point, -128, 127); 1 / 0 counts as 0. A row of zeros has scale 1.
    See `_split` for the rounding in blocks, where the sum wraps at 32 bits; in the rest of the row to nearest, ties
    away from zero, and the sum is binary32: no wrap, and NaN gives 0.
    Source: optimized/neon_tensor_utils.cc (AsymmetricQuantizeFloats), verified by running.

    >>> q, scale, zero_point = binary32_range_over_255_by_eights(np.float32([-1, 0, 1.55]))
    >>> q.tolist(), float(scale), zero_point
    ([-128, -28, 127], 0.009999999776482582, -28)
    """
    low = min(np.float32(0), row.min(initial=np.float32(0)))
    high = max(np.float32(0), row.max(initial=np.float32(0)))
    if low == high:
        return np.zeros(row.shape, np.int32), np.float32(1), 0
    with np.errstate(all="ignore"):
        real = np.float64(high - low) / 255
        from_low, from_high = np.float64(low) / real, np.float64(high) / real
        exact = -128 - from_low if 128 + abs(from_low) < 127 + abs(from_high) else 127 - from_high
        zero_point = int(np.clip(floats.round_away(np.float64(exact)), -128, 127))
        scale = np.float32(real)
        inverse = np.float32(0) if scale == 0 else np.float32(1) / scale
    body, rest = _split(row, inverse)
    with np.errstate(invalid="ignore"):
        moved = np.nan_to_num(np.clip(floats.round_away(rest) + np.float32(zero_point), -128, 127), nan=0)
    q = np.concatenate([np.clip(fixed_point.wrap_s32(body + zero_point), -128, 127), moved])
    return q.astype(np.int32), scale, zero_point


SYMMETRIC: dict[str, QuantizeRowRule] = {"binary32_range_over_127_by_eights": binary32_range_over_127_by_eights}
ASYMMETRIC: dict[str, QuantizeRowRule] = {"binary32_range_over_255_by_eights": binary32_range_over_255_by_eights}

"""1 / x in binary32 from a processor's estimate and two steps that make it a better one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bittrue.arithmetic.floats import fused_multiply_add as fma

F32 = npt.NDArray[np.float32]


def estimate(x: npt.ArrayLike) -> F32:
    """The instruction FRECPE of aarch64: 8 bits, from the upper 8 bits of the fraction; NaN becomes quiet.

    Domain: all of binary32; below 2^-128 it is an infinity, and results may be subnormal.
    Source: the manual of the architecture (RecipEstimate), read; run under emulation.

    >>> estimate(np.float32([1.0, 3.0, -4.0, 0.0])).tolist()
    [0.998046875, 0.3330078125, -0.24951171875, inf]
    """
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.int64)
    sign, exponent, fraction = bits & 0x80000000, bits >> 23 & 255, bits & 0x7FFFFF
    # Subnormal numbers from 2^-128 on have their first bit among the two uppermost ones.
    subnormal, small = exponent == 0, (exponent == 0) & (fraction < 1 << 22)
    fraction = np.where(subnormal, fraction << np.where(small, 2, 1), fraction) & 0x7FFFFF
    exponent = np.where(small, -1, exponent)
    interval = 2 * (256 + (fraction >> 15)) + 1
    found = (((1 << 19) // interval + 1) // 2 & 255) << 15
    result = 253 - exponent
    found = np.where(result > 0, found, (1 << 22 | found >> 1) >> np.where(result < 0, 1, 0))
    found |= sign | np.maximum(result, 0) << 23
    found = np.where(np.abs(x) < np.float32(2.0**-128), sign | 0x7F800000, np.where(np.isinf(x), sign, found))
    return np.where(np.isnan(x), bits | 1 << 22, found).astype(np.uint32).view(np.float32)


def refined(x: F32) -> F32:
    """The estimate e times f32(2 - x e), fused, twice; 0 times an infinity counts as 0 there (FRECPS).

    >>> refined(np.float32([3.0, -0.25])).tolist()
    [0.3333333432674408, -4.0]
    """
    with np.errstate(all="ignore"):
        result = estimate(x)
        for _ in range(2):
            step = fma(-x, result, np.float32(2))
            without = (x == 0) & np.isinf(result) | np.isinf(x) & (result == 0)
            result = np.where(without, np.float32(2), step) * result
        return result


def in_fours(x: F32) -> F32:
    """Reciprocals of a vector: those of whole fours refined, the rest by divisions.

    >>> in_fours(np.full(5, 0.3, np.float32)).tolist()
    [3.3333330154418945, 3.3333330154418945, 3.3333330154418945, 3.3333330154418945, 3.3333332538604736]
    """
    whole = x.size // 4 * 4
    with np.errstate(all="ignore"):
        return np.concatenate([refined(x[:whole]), np.float32(1) / x[whole:]])

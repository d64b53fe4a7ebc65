"""Slot `average`: a sum over a window divided by the number of its elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, reciprocal_estimate

AverageRule = Callable[[np.ndarray, np.ndarray], np.ndarray]


def integer_half_away(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """trunc(wrap32(total + sign(total) * (count div 2)) / count): to nearest, ties away from zero.

    Zero points play no part. Domain: total s32, count in 1..2^31 - 1, broadcastable. Returns int64.
    Source: docs/facts/litert.md 2.4 (AVERAGE_POOL_2D), verified by running.

    A tie, a negative tie, odd counts, and a sum so large that adding half of the count wraps:

    >>> [int(v) for v in integer_half_away(np.array([3, -3, 4, -4, 2**31 - 1]), np.array([2, 2, 3, 3, 2]))]
    [2, -2, 1, -1, -1073741824]
    """
    half = count >> 1
    nudged = fixed_point.wrap_s32(total + np.where(total > 0, half, -half))
    # Exact: the quotient of two numbers below 2^31 is 2^-31 or more (relatively) away from the next integer that it
    # does not reach, far more than one rounding of binary64.
    return np.trunc(nudged / count).astype(np.int64)


def integer_half_up(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """floor((total + count div 2) / count): to nearest, ties up.

    Domain: total s32, count in 1..2^31 - 1, broadcastable. Returns int64. Source: definition.

    >>> [int(v) for v in integer_half_up(np.array([3, -3, 4, -4, 2**31 - 1]), np.array([2, 2, 3, 3, 1]))]
    [2, -1, 1, -1, 2147483647]
    """
    return np.floor((total.astype(np.int64) + (count >> 1)) / count).astype(np.int64)


def integer_trunc(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """trunc(total / count): toward zero.

    Domain: total s32, count in 1..2^31 - 1, broadcastable. Returns int64. Source: docs/facts/tvm_qnn.md 10, read.

    >>> [int(v) for v in integer_trunc(np.array([3, -3, 4, -4, 2**31 - 1]), np.array([2, 2, 3, 3, 1]))]
    [1, -1, 1, -1, 2147483647]
    """
    # Exact, as in integer_half_away.
    return np.trunc(total / count).astype(np.int64)


def binary32_divide(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """f32(total / f32(count)) on binary32 sums; one rounding, ties to even. No saturation.

    A counter in binary32 stops at 2^24. Source: docs/facts/litert.md 2.4, verified by running.

    >>> binary32_divide(np.float32([3, -3, 1]), np.array([2, 2, 3])).tolist()
    [1.5, -1.5, 0.3333333432674408]
    """
    with np.errstate(all="ignore"):
        return total / np.minimum(count, 1 << 24).astype(np.float32)


def binary32_reciprocal(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """f32(total * f32(1 / count)) on binary32 sums, ties to even. No saturation.

    Domain: count below 2^24. Source: docs/facts/xnnpack.md 3.4, verified by running.

    >>> binary32_reciprocal(np.float32([3, 5, 1]), np.array([2, 3, 3])).tolist()
    [1.5, 1.6666667461395264, 0.3333333432674408]
    """
    with np.errstate(all="ignore"):
        return total * (np.float32(1) / count.astype(np.float32))


def binary32_reciprocal_in_fours(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """As `binary32_reciprocal`, but for whole fours of pixels 1 / count is a processor's estimate, made better twice.

    Domain: channels lie last, counts have one. Source: docs/facts/litert.md 2.8, verified by running on aarch64.

    >>> total, count = np.full((5, 1), 13, np.float32), np.full((1, 1), 13)
    >>> binary32_reciprocal_in_fours(total, count)[:, 0].tolist()
    [0.9999999403953552, 0.9999999403953552, 0.9999999403953552, 0.9999999403953552, 1.0]
    """
    pixels = (*total.shape[:-1], 1)
    with np.errstate(all="ignore"):
        inverse = reciprocal_estimate.in_fours(np.broadcast_to(count, pixels).astype(np.float32).reshape(-1))
        return np.asarray(total * inverse.reshape(pixels))


RULES: dict[str, AverageRule] = {
    "integer_half_away": integer_half_away,
    "integer_half_up": integer_half_up,
    "integer_trunc": integer_trunc,
    "binary32_divide": binary32_divide,
    "binary32_reciprocal": binary32_reciprocal,
    "binary32_reciprocal_in_fours": binary32_reciprocal_in_fours,
}

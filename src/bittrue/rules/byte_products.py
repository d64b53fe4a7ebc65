"""Slot `byte_products`: products of signed bytes as a machine's instructions make them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import row_quantize

ByteRule = Callable[[np.ndarray, np.ndarray], "np.ndarray | None"]


def exact(rows: np.ndarray, weights: np.ndarray) -> None:
    """x * w; nothing to add to the exact sum.

    >>> exact(np.int32([[-1]]), np.int8([[-128]])) is None
    True
    """
    return


def low_end_negated_by_sixteens(rows: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """x * w, but -|x| * 128 for x < 0 and w = -128 within whole blocks of 16 along the last axis.

    There w takes the sign of x, and -(-128) stays -128 in eight bits. Returns what this adds to the exact sums of
    rows[M, K] and weights[N, K], int64 [M, N]; None for nothing.
    Source: optimized/sse_tensor_utils.cc (DotProdInt8x4x4), verified by running.

    >>> weights = np.full((1, 17), -128, np.int8)
    >>> low_end_negated_by_sixteens(np.full((1, 17), -1, np.int32), weights).tolist()
    [[-4096]]
    >>> low_end_negated_by_sixteens(np.full((1, 15), -1, np.int32), weights[:, :15]) is None
    True
    """
    blocks = weights.shape[1] - weights.shape[1] % 16
    lowest = weights[:, :blocks] == -128
    if not lowest.any():
        return None
    # Below 2^15 * K < 2^53: exact.
    below = np.minimum(rows[:, :blocks], 0).astype(np.float64)
    return np.asarray(256 * (below @ lowest.T.astype(np.float64))).astype(np.int64)


RULES: dict[str, ByteRule] = {
    "exact": exact,
    "low_end_negated_by_sixteens": low_end_negated_by_sixteens,
    "pairs_wrap_by_sixteens": row_quantize.wrapped_pairs,
}

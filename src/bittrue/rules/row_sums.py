"""Slot `row_sums`: sums of rows of 8-bit integers: of weights, which the zero points of activations are multiplied by,
or of an input that is added up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, row_quantize


def exact(weights: np.ndarray) -> np.ndarray:
    """Sums of the rows of a matrix, s64.

    >>> exact(np.full((1, 4096), 127)).tolist(), row_quantize.row_sums_s16(np.full((1, 4096), 127)).tolist()
    ([520192], [-4096])
    """
    return weights.sum(axis=1, dtype=np.int64)


def s16_pairs_in_32_lanes(rows: np.ndarray) -> np.ndarray:
    """Pairs of neighbours take turns in 32 lanes of 16 bits that wrap, 16,384 values at a time; what is left of whole
    64 at the end has 16 such lanes.

    Source: docs/facts/xnnpack.md 3.17; verified by running.

    >>> s16_pairs_in_32_lanes(np.full((1, 8320), 127)).tolist(), 8320 * 127
    ([-1040512], 1056640)
    """
    length = rows.shape[1]
    total = np.zeros(len(rows), np.int64)
    whole = length - length % 64
    for begin in [*range(0, whole, 1 << 14), whole]:
        piece = rows[:, begin : min(begin + (1 << 14), whole) if begin < whole else length].astype(np.int64)
        lanes = 32 if begin < whole else 16
        piece = np.pad(piece, ((0, 0), (0, -piece.shape[1] % (2 * lanes))))
        sums = piece.reshape(len(rows), -1, lanes, 2).sum(axis=(1, 3))
        total += fixed_point.wrap_s16(sums).sum(axis=1)
    return total


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exact": exact,
    "s16_lanes_of_eight": row_quantize.row_sums_s16,
    "s16_pairs_in_32_lanes": s16_pairs_in_32_lanes,
}

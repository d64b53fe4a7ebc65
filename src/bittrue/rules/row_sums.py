"""Slot `row_sums`: the sums of rows of 8-bit weights, which the zero points of activations are multiplied by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import row_quantize


def exact(weights: np.ndarray) -> np.ndarray:
    """Sums of the rows of a matrix, s64.

    >>> exact(np.full((1, 4096), 127)).tolist(), row_quantize.row_sums_s16(np.full((1, 4096), 127)).tolist()
    ([520192], [-4096])
    """
    return weights.sum(axis=1, dtype=np.int64)


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exact": exact,
    "s16_lanes_of_eight": row_quantize.row_sums_s16,
}

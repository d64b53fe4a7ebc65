"""Slot `cast`: from floating point to integers without a scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

CastRule = Callable[[np.ndarray, int, int], np.ndarray]


def _truncated(x: np.ndarray, minimum: int, maximum: int, nan: int) -> np.ndarray:
    """`x` in binary64 without its fraction, limited to the interval, as s64 (maximum up to 2^63 - 1)."""
    x = np.asarray(x, np.float64)
    beyond = float(maximum + 1)  # a power of two: exact
    inside = (x >= float(minimum)) & (x < beyond)
    result = np.where(inside, x, 0.0).astype(np.int64)
    result[x >= beyond] = maximum
    result[x < float(minimum)] = minimum
    result[np.isnan(x)] = nan
    return result


def truncate_saturate_nan_maximum(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """The fraction is dropped, values beyond the type become its ends, NaN becomes the maximum.

    Source: facts/litert.md 2.3 (CAST), read and verified by running.

    >>> truncate_saturate_nan_maximum(np.array([1.5, -1.5, 300, -300, np.nan]), -128, 127).tolist()
    [1, -1, 127, -128, 127]
    """
    return _truncated(x, minimum, maximum, maximum)


RULES: dict[str, CastRule] = {"truncate_saturate_nan_maximum": truncate_saturate_nan_maximum}

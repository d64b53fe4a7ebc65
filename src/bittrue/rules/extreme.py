"""Slot `extreme`: which of binary32 numbers a chain of comparisons keeps, where they are equal or not numbers.

Rows without the slot replace what is kept only by what is strictly beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ExtremeRule:
    """`apply(rows, sign)`: one value per row of a two-dimensional array, the largest for sign 1, else the smallest."""

    apply: Callable[[np.ndarray, int], np.ndarray]
    formula: str


def _last_unless_beyond(rows: np.ndarray, sign: int) -> np.ndarray:
    """A NaN replaces whatever is kept, and is replaced by whatever follows.

    >>> nan = np.nan
    >>> RULES["last_unless_beyond"].apply(np.float32([[3, nan, 1, 2], [0, -0.0, -1, -2], [4, 5, 6, nan]]), 1).tolist()
    [2.0, -0.0, nan]
    """
    last = rows.shape[1] - 1
    position = np.arange(rows.shape[1])
    # Whatever stands before a NaN is forgotten; the last of equal values stays.
    forgotten = np.where(np.isnan(rows), position, -1).max(axis=1)
    ordered = np.where(position > forgotten[:, None], rows, np.float32(-sign) * np.float32(np.inf))[:, ::-1]
    best = last - (ordered.argmax(axis=1) if sign > 0 else ordered.argmin(axis=1))
    return rows[np.arange(rows.shape[0]), np.where(forgotten == last, last, best)]


RULES: dict[str, ExtremeRule] = {
    "last_unless_beyond": ExtremeRule(
        _last_unless_beyond, "kept = x0; kept = kept > x ? kept : x for the others in row-major order (< for minima)"
    )
}

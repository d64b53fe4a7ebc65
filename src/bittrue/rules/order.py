"""Slot `order`: how binary32 sums along a row are grouped; rows without the slot add from left to right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class OrderRule:
    """`sums(rows)`: one sum per row of a dense two-dimensional binary32 array that begins at an aligned address."""

    sums: Callable[[np.ndarray], np.ndarray]
    formula: str


def _from_left(columns: np.ndarray, total: np.ndarray) -> np.ndarray:
    for column in columns.T:
        total = total + column
    return total


def _one_group(rows: np.ndarray, first: int) -> np.ndarray:
    """Rows whose first 16-byte boundary lies before element `first`."""
    length = rows.shape[1] - first
    whole = length - length % 4
    if length < 4:
        return _from_left(rows[:, 1:], rows[:, 0])
    lanes = [rows[:, first + i : first + i + 4] for i in range(0, whole, 4)]
    even, odd = lanes[0], lanes[1] if len(lanes) > 1 else None
    for i in range(2, len(lanes) - len(lanes) % 2):
        even, odd = (even, odd + lanes[i]) if i % 2 else (even + lanes[i], odd)
    if odd is not None:
        even = even + odd
        if len(lanes) % 2:
            even = even + lanes[-1]
    total = (even[:, 0] + even[:, 2]) + (even[:, 1] + even[:, 3])
    return _from_left(rows[:, first + whole :], _from_left(rows[:, :first], total))


def _four_lanes(rows: np.ndarray) -> np.ndarray:
    """Two vectors of four lanes take turns; what lies before and behind whole aligned vectors is added last.

    >>> rows = np.float32([[2.0**24, 1, 1, 1, 1, 0, 0, 0]])
    >>> RULES["four_lanes_twice"].sums(rows).tolist(), float(np.add.accumulate(rows[0])[-1])
    ([16777218.0], 16777216.0)
    """
    length = rows.shape[1]
    out = np.empty(rows.shape[0], np.float32)
    firsts = -(np.arange(rows.shape[0], dtype=np.int64) * length) % 4
    with np.errstate(all="ignore"):
        for first in range(4):
            chosen = firsts == first
            if chosen.any():
                out[chosen] = _one_group(rows[chosen], min(first, length))
    return out


RULES: dict[str, OrderRule] = {
    "four_lanes_twice": OrderRule(
        _four_lanes,
        "vectors of four lanes from the first 16-byte boundary on, two sums of them in turn; their sum, an odd last "
        "vector, (l0 + l2) + (l1 + l3), then the elements before the boundary and those behind the last vector; rows "
        "without a whole vector from left to right",
    )
}

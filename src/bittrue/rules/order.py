"""Slot `order`: how binary32 sums are grouped; rows of a numerics without the slot add from left to right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from ..arithmetic import floats
from ..records import dataclass


@dataclass(frozen=True, eq=False)
class OrderRule:
    """One of three, for binary32 arrays.

    `sums(rows)`: one sum per row of a dense two-dimensional array that begins at an aligned address.
    `scaled_sums(x, axes, factor)`: sums of x along ascending axes times factor, the kept axes as one.
    `taps(arrays)`: the sum of arrays of one shape, the taps of windows column by column, zeros where a tap misses.
    `rows(count, stride, before, after)`, beside `taps`: of which row of windows each of `count` rows has its taps.
    """

    formula: str
    sums: Callable[[np.ndarray], np.ndarray] | None = None
    scaled_sums: Callable[[np.ndarray, Sequence[int], np.float32], np.ndarray] | None = None
    taps: Callable[[Iterable[np.ndarray]], np.ndarray] | None = None
    rows: Callable[[int, int, int, int], np.ndarray] | None = None


def sum_or_first_nan(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The sum; where `first` is NaN, its bits, made quiet; where `second` alone is one, its.

    So vector instructions do it; NumPy's loops may exchange operands.

    >>> nan = np.array([0x7FC00001, 0xFFC00002], np.uint32).view(np.float32)
    >>> sum_or_first_nan(nan, nan[::-1]).view(np.uint32).tolist() == nan.view(np.uint32).tolist()
    True
    """
    total = first + second
    if np.isnan(total).any():
        total = np.where(np.isnan(first), first + first, np.where(np.isnan(second), second + second, total))
    return total


def _from_left(columns: np.ndarray, total: np.ndarray) -> np.ndarray:
    for column in columns.T:
        total = total + column
    return total


def four_lanes_of_group(rows: np.ndarray, first: int, neighbours: bool) -> np.ndarray:
    """The sums of `_four_lanes` for rows whose first 16-byte boundary lies before element `first`."""
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
    i, j = (1, 2) if neighbours else (2, 1)
    total = (even[:, 0] + even[:, i]) + (even[:, j] + even[:, 3])
    return _from_left(rows[:, first + whole :], _from_left(rows[:, :first], total))


def _four_lanes(rows: np.ndarray, neighbours: bool) -> np.ndarray:
    """Two vectors of four lanes take turns; what lies before and behind whole aligned vectors is added last.

    >>> rows = np.float32([[2.0**24, 1, 1, 1, 1, 0, 0, 0]])
    >>> RULES["four_lanes_twice"].sums(rows).tolist(), float(np.add.accumulate(rows[0])[-1])
    ([16777218.0], 16777216.0)
    >>> RULES["four_lanes_twice_by_neighbours"].sums(np.float32([[2.0**24, 1, 0, 1]])).tolist()
    [16777216.0]
    """
    length = rows.shape[1]
    out = np.empty(rows.shape[0], np.float32)
    firsts = -(np.arange(rows.shape[0], dtype=np.int64) * length) % 4
    with np.errstate(all="ignore"):
        for first in range(4):
            chosen = firsts == first
            if chosen.any():
                out[chosen] = four_lanes_of_group(rows[chosen], min(first, length), neighbours)
    return out


def in_lanes(rows: np.ndarray, width: int, vectors: Sequence[int]) -> np.ndarray:
    """Sums of rows in vectors of `width` lanes in turn; what remains after the last whole vector goes to the lanes of
    their sum. The `vectors`, in this order, and then the lanes are folded in halves: where NaNs meet, the first stays.
    """
    length = rows.shape[1]
    lanes = np.zeros((len(vectors), rows.shape[0], width), np.float32)
    for i in range(0, length - length % width, width):
        vector = lanes[i // width % len(vectors)]
        vector[:] = sum_or_first_nan(vector, rows[:, i : i + width])
    lanes = lanes[list(vectors)]
    while len(lanes) > 1:
        lanes = sum_or_first_nan(lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])
    total = lanes[0]
    rest = rows[:, length - length % width :]
    part = total[:, : rest.shape[1]]
    part[:] = sum_or_first_nan(part, rest)
    while total.shape[1] > 1:
        total = sum_or_first_nan(total[:, : total.shape[1] // 2], total[:, total.shape[1] // 2 :])
    return np.asarray(total[:, 0])


def in_fours(rows: np.ndarray) -> np.ndarray:
    """Sums of rows in four vectors of 4 lanes in turn, folded in halves; what remains is a pair, which the last two
    lanes take, and a single number.

    >>> in_fours(np.float32([[2.0**24, 1, 1], [1, 2, 3]])).tolist()
    [16777216.0, 6.0]
    """
    length = rows.shape[1]
    vectors = np.zeros((4, rows.shape[0], 4), np.float32)
    for i in range(0, length - length % 4, 4):
        vectors[i // 4 % 4] = sum_or_first_nan(vectors[i // 4 % 4], rows[:, i : i + 4])
    while len(vectors) > 1:
        vectors = sum_or_first_nan(vectors[: len(vectors) // 2], vectors[len(vectors) // 2 :])
    total, first = vectors[0], length - length % 4
    for width in (2, 1):
        total = sum_or_first_nan(total[:, :width], total[:, width:])
        if length & width:
            total = sum_or_first_nan(total, rows[:, first : first + width])
            first += width
    return np.asarray(total[:, 0])


def _columns(part: np.ndarray, whole: int) -> np.ndarray:
    """Sums of columns, from the first row to the last. Where NaNs meet, what was added before stays; but behind blocks
    of `whole` columns, every seventh row.
    """
    behind = part.shape[1] // whole * whole
    total = np.zeros(part.shape[1], np.float32)
    for place, row in enumerate(part):
        before = total
        total = sum_or_first_nan(before, row)
        if place % 7 == 0:
            total[behind:] = sum_or_first_nan(row[behind:], before[behind:])
    return total


def _parts(
    x: np.ndarray,
    axes: Sequence[int],
    factor: np.float32,
    *,
    of_rows: Callable[[np.ndarray], np.ndarray],
    fused: bool,
    whole_columns: int,
) -> np.ndarray:
    """Neighbouring axes that are reduced, or that are kept, count as one. The last reduced one is summed, the others
    give parts, which are scaled and added one after the other.

    >>> x = np.float32([[2.0**24, 1], [1, 1]])
    >>> RULES["parts_in_16_lanes"].scaled_sums(x, (0, 1), np.float32(0.5)).tolist()
    [8388609.0]
    """
    if not axes:
        return np.asarray(x.reshape(-1) * factor + np.float32(0))
    merged: list[int] = []
    reduced: list[bool] = []
    for axis, size in enumerate(x.shape):
        if reduced and reduced[-1] == (axis in axes):
            merged[-1] *= size
        else:
            merged.append(size)
            reduced.append(axis in axes)
    kept = [axis for axis, one in enumerate(reduced) if not one]
    *outer, last = [axis for axis, one in enumerate(reduced) if one]
    parts = np.transpose(x.reshape(merged), [*outer, last, *kept])
    parts = parts.reshape(-1, merged[last], math.prod(merged[axis] for axis in kept))
    out = np.zeros(parts.shape[2], np.float32)
    with np.errstate(all="ignore"):
        for part in parts:
            total = of_rows(part.T) if reduced[-1] else _columns(part, whole_columns)
            if fused and reduced[-1]:
                out = floats.fused_multiply_add(total, factor, out)
            elif fused or not reduced[-1]:
                out = sum_or_first_nan(out, total * factor)
            else:
                out = sum_or_first_nan(total * factor, out)
    return out


def _nines(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Nine arrays at a time: ((2 + 3) + (4 + 5)) + (((0 + 1) + 8) + (6 + 7)), which is added to the nines before.

    >>> RULES["nines_by_columns"].taps([np.float32([v]) for v in (2.0**24, 1, 1, 1)]).tolist()
    [16777218.0]
    """
    total, waiting = None, []
    for array in arrays:
        waiting.append(array)
        if len(waiting) == 9:
            total, waiting = _add_nine(total, waiting), []
    if waiting:
        total = _add_nine(total, waiting + [np.zeros_like(waiting[0])] * (9 - len(waiting)))
    assert total is not None, "a window has a tap"
    return total


def _add_nine(total: np.ndarray | None, t: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        nine = ((t[2] + t[3]) + (t[4] + t[5])) + (((t[0] + t[1]) + t[8]) + (t[6] + t[7]))
        return (np.zeros_like(nine) if total is None else total) + nine


def _listed_rows(count: int, stride: int, before: int, after: int) -> np.ndarray:
    """Rows of windows lie in a list: those that hang over the top and the one after them, then those that hang over the
    bottom. A row that hangs over both is there twice, and moves on what is looked up by one from itself on.

    >>> RULES["nines_by_columns"].rows(5, 1, 3, 3).tolist(), RULES["nines_by_columns"].rows(5, 1, 2, 2).tolist()
    ([0, 1, 3, 3, 4], [0, 1, 2, 3, 4])
    """
    own = np.arange(count)
    top, bottom = -(-before // stride), -(-after // stride)
    if bottom > count or top + bottom <= count:
        return own
    listed = np.concatenate([own[: top + 1], own[count - bottom :]])
    return np.asarray(listed[np.minimum(own, top) + np.maximum(own - (count - bottom) + 1, 0)])


RULES: dict[str, OrderRule] = {
    "four_lanes_twice": OrderRule(
        "vectors of four lanes from the first 16-byte boundary on, two sums of them in turn; their sum, an odd last "
        "vector, (l0 + l2) + (l1 + l3), then the elements before the boundary and those behind the last vector; rows "
        "without a whole vector from left to right",
        sums=partial(_four_lanes, neighbours=False),
    ),
    "four_lanes_twice_by_neighbours": OrderRule(
        "the same with (l0 + l1) + (l2 + l3)", sums=partial(_four_lanes, neighbours=True)
    ),
    "parts_in_16_lanes": OrderRule(
        "neighbouring reduced axes as one; for every index of all but the last of them a part: rows of memory in two "
        "vectors of 16 lanes, folded in halves, out = fma(part, factor, out); columns from the first row to the last, "
        "out = f32(out + f32(part * factor))",
        scaled_sums=partial(_parts, of_rows=partial(in_lanes, width=16, vectors=(0, 1)), fused=True, whole_columns=1),
    ),
    "parts_in_8_lanes": OrderRule(
        "the same with rows of memory in four vectors of 8 lanes, of which the first and third, the second and fourth, "
        "then these two are added up; the product with the factor is always rounded",
        scaled_sums=partial(
            _parts, of_rows=partial(in_lanes, width=8, vectors=(3, 0, 1, 2)), fused=False, whole_columns=32
        ),
    ),
    "parts_in_4_lanes": OrderRule(
        "as parts_in_16_lanes with rows of memory in four vectors of 4 lanes in turn, folded in halves; of what is "
        "left, a pair goes to the last two lanes, a single number to their sum",
        scaled_sums=partial(_parts, of_rows=in_fours, fused=True, whole_columns=1),
    ),
    "nines_by_columns": OrderRule(
        "taps of a window column by column, missing ones as zeros, nine at a time: "
        "((t2 + t3) + (t4 + t5)) + (((t0 + t1) + t8) + (t6 + t7)), nines one after the other; where rows of "
        "windows hang over top and bottom, some have the taps of others",
        taps=_nines,
        rows=_listed_rows,
    ),
}

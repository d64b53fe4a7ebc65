"""Slot `extreme`: which of real numbers a chain of comparisons keeps, where they are equal or not numbers.

Rows without the slot replace what is kept only by what is strictly beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..records import dataclass

# Along the last axis, by the sign of what is looked for.
Chain = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class ExtremeRule:
    """`apply(rows, sign)`: one value per row of a two-dimensional array, the largest for sign 1, else the smallest.

    `of_nothing`: it takes rows without elements; other rules leave them to the operator.
    `exchanges`: of two operands, a first one that is one element for all results worked on at once is taken second.
    `exchanges_repeated`: likewise one that is repeated along the last axis in which either has more than one element.
    `in_vectors`: of two operands, it is also told which rows lie in vectors of 16 bytes, `apply(rows, sign, vectors)`.
    `in_parts`: it is also told how many elements of a row lie side by side, `apply(rows, sign, length)`.
    `in_packets`: it is also told how rows lie in memory, `apply(rows, sign, way, sizes)`: ``rows`` of neighbours, one
    after the other; ``columns`` of sizes [outer, elements, inner]; ``runs`` of sizes [runs, kept, length]; else
    ``in_order``.
    `in_windows`: one comparison of many chains at once, `apply(kept, x, sign, vectors)`; the operator has the order.
    `in_pixels`: chains in vectors are those of whole vectors of 16 bytes in each pixel of the output.
    `from_first`: chains of windows begin with their first element, and none is in vectors.
    """

    apply: Callable[..., np.ndarray]
    formula: str
    of_nothing: bool = False
    exchanges: bool = False
    exchanges_repeated: bool = False
    in_vectors: bool = False
    in_parts: bool = False
    in_packets: bool = False
    in_windows: bool = False
    in_pixels: bool = False
    from_first: bool = False


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
    ordered = np.where(position > forgotten[:, None], rows, rows.dtype.type(-sign * np.inf))[:, ::-1]
    best = last - (ordered.argmax(axis=1) if sign > 0 else ordered.argmin(axis=1))
    found = rows[np.arange(rows.shape[0]), np.where(forgotten == last, last, best)]
    if found.dtype != np.float16:
        return found
    bits = found.view(np.uint16)
    return np.where(np.isnan(found), bits | np.uint16(0x0200), bits).view(np.float16)


def _nan_else_first(rows: np.ndarray, sign: int) -> np.ndarray:
    """The first NaN of a row, else the first of its extreme values; without elements, the other end of the type.

    >>> rows = np.float32([[3, np.nan, 1], [-0.0, 0, -1], [4, 6, 5]])
    >>> RULES["nan_else_first"].apply(rows, 1).tolist()
    [nan, -0.0, 6.0]
    """
    if not rows.shape[1]:
        ends = (-np.inf, np.inf) if rows.dtype.kind == "f" else (np.iinfo(rows.dtype).min, np.iinfo(rows.dtype).max)
        return np.full(len(rows), ends[sign < 0], rows.dtype)
    best = rows.argmax(axis=1) if sign > 0 else rows.argmin(axis=1)
    return rows[np.arange(len(rows)), best]


def _nan_else_last_in_vectors(pairs: np.ndarray, sign: int, vectors: np.ndarray) -> np.ndarray:
    """The first NaN of two numbers, else the one beyond the other; of equal ones the second in vectors, else the first.

    >>> pairs = np.float32([[3, np.nan], [0, -0.0], [0, -0.0]])
    >>> RULES["nan_else_last_in_vectors"].apply(pairs, 1, np.array([True, True, False])).tolist()
    [nan, -0.0, 0.0]
    """
    first, second = pairs[:, 0], pairs[:, 1]
    beyond = first > second if sign > 0 else first < second
    return np.where(np.isnan(first) | ~np.isnan(second) & (beyond | (first == second) & ~vectors), first, second)


def _nan_else_by_signs_in_vectors(pairs: np.ndarray, sign: int, vectors: np.ndarray) -> np.ndarray:
    """As `nan_else_last_in_vectors`, but of two zeros in vectors the one whose sign is beyond the other's.

    >>> pairs = np.float32([[3, np.nan], [0, -0.0], [-0.0, 0], [-0.0, 0]])
    >>> RULES["nan_else_by_signs_in_vectors"].apply(pairs, 1, np.array([True, True, True, False])).tolist()
    [nan, 0.0, 0.0, -0.0]
    """
    first, second = pairs[:, 0], pairs[:, 1]
    beyond = first > second if sign > 0 else first < second
    signed = np.signbit(first) if sign < 0 else ~np.signbit(first)
    equal = (first == second) & (~vectors | signed)
    return np.where(np.isnan(first) | ~np.isnan(second) & (beyond | equal), first, second)


def _nan_else_by_signs(pairs: np.ndarray, sign: int, vectors: np.ndarray) -> np.ndarray:
    """As `nan_else_by_signs_in_vectors` in vectors, wherever.

    >>> RULES["nan_else_by_signs"].apply(np.float32([[-0.0, 0], [1, np.nan]]), 1, np.array([True, False])).tolist()
    [0.0, nan]
    """
    return _nan_else_by_signs_in_vectors(pairs, sign, np.ones_like(vectors))


def _rows_by_signs(rows: np.ndarray, sign: int) -> np.ndarray:
    """The first NaN of a row, made quiet, else its extreme number; of zeros the one whose sign is beyond the other's.

    >>> rows = np.float32([[3, np.nan, 1], [-0.0, 0, -1], [0, -0.0, 5]])
    >>> rule = RULES["rows_nan_else_by_signs"]
    >>> rule.apply(rows, 1).tolist(), rule.apply(rows, -1).tolist()
    ([nan, 0.0, 5.0], [nan, -1.0, -0.0])
    """
    found = _nan_else_first(rows, sign)
    if not rows.shape[1]:
        return found
    zero = rows.dtype.type(0 * sign) if sign > 0 else rows.dtype.type(-0.0)
    beyond = ((rows == 0) & (np.signbit(rows) == (sign < 0))).any(axis=1)
    with np.errstate(all="ignore"):
        return np.where((found == 0) & beyond, zero, np.where(np.isnan(found), found + found, found))


def _first_unless_beyond(rows: np.ndarray, sign: int) -> np.ndarray:
    """A NaN is beyond nothing, and nothing is beyond it.

    >>> nan = np.nan
    >>> RULES["first_unless_beyond"].apply(np.float32([[3, nan, 1, 4], [-0.0, 0, -1, -2], [nan, 5, 6, 7]]), 1).tolist()
    [4.0, -0.0, nan]
    """
    numbers = rows
    if rows.dtype.kind == "f":
        numbers = np.where(np.isnan(rows), rows.dtype.type(-sign * np.inf), rows)
    best = numbers.argmax(axis=1) if sign > 0 else numbers.argmin(axis=1)
    # Nothing differs from itself but a NaN.
    return rows[np.arange(len(rows)), np.where(rows[:, 0] != rows[:, 0], 0, best)]


def _chain(x: np.ndarray, sign: int) -> np.ndarray:
    """As `first_unless_beyond`, along the last axis."""
    return _first_unless_beyond(x.reshape(-1, x.shape[-1]), sign).reshape(x.shape[:-1])


def _chain_by_signs(x: np.ndarray, sign: int) -> np.ndarray:
    """As `rows_nan_else_by_signs`, along the last axis."""
    return _rows_by_signs(x.reshape(-1, x.shape[-1]), sign).reshape(x.shape[:-1])


def _in_packets(rows: np.ndarray, sign: int, starts: np.ndarray, of_packets: Chain) -> np.ndarray:
    """Rows by packets as they are aligned in memory, every row `starts` elements behind a boundary."""
    count, width = rows.shape[1], 16 // rows.itemsize
    out = np.empty(len(rows), rows.dtype)
    for start in range(width):
        chosen = rows[starts % width == start]
        first = min(-start % width, count)
        whole = (count - first) // width
        behind = first + whole * width
        rest = [chosen[:, :first], chosen[:, behind:]]
        if whole and len(chosen):
            packets = chosen[:, first:behind].reshape(-1, whole, width).transpose(0, 2, 1)
            paired = whole // 2 * 2
            turns = [packets[..., 0:paired:2], packets[..., 1:paired:2], packets[..., paired:]]
            lanes = np.stack([of_packets(one, sign) for one in turns if one.shape[-1]], axis=-1)
            lanes = of_packets(lanes, sign)
            while lanes.shape[1] > 1:
                lanes = _chain(np.stack(np.split(lanes, 2, axis=1), axis=-1), sign)
            rest.insert(0, lanes)
        out[starts % width == start] = _chain(np.concatenate(rest, axis=1), sign)
    return out


def _in_columns(rows: np.ndarray, sign: int, inner: int, of_packets: Chain) -> np.ndarray:
    """Whole packets of neighbouring outputs take four elements at a time, which are folded by themselves."""
    count, width = rows.shape[1], 16 // rows.itemsize
    groups = (count - 1) // 4
    fours = rows[:, 1 : 1 + 4 * groups].reshape(len(rows), groups, 2, 2)
    parts = [rows[:, :1], of_packets(of_packets(fours, sign), sign), rows[:, 1 + 4 * groups :]]
    column, begin = np.arange(len(rows)) % inner, np.arange(len(rows)) // inner * inner
    first = np.minimum(-begin % width, inner)
    packed = (column >= first) & (column < first + (inner - first) // width * width)
    return np.where(packed, of_packets(np.concatenate(parts, axis=1), sign), _first_unless_beyond(rows, sign))


def _packets_first_unless_beyond(
    rows: np.ndarray, sign: int, way: str, sizes: Sequence[int], of_packets: Chain = _chain
) -> np.ndarray:
    """As `first_unless_beyond`, by packets of 16 bytes.

    >>> row = np.float32([[-1, -0.0, -1, -1, 0.0, -1, -1, -1]])
    >>> apply = RULES["packets_first_unless_beyond"].apply
    >>> [apply(row, 1, way, ()).tolist() for way in ("in_order", "rows")]
    [[-0.0], [0.0]]
    """
    if not rows.shape[1]:
        return np.full(len(rows), -sign * np.inf, rows.dtype)
    if way == "rows":
        return _in_packets(rows, sign, np.arange(len(rows)) * rows.shape[1], of_packets)
    if way == "columns":
        return _in_columns(rows, sign, sizes[2], of_packets)
    if way == "runs":
        runs, kept, length = sizes
        starts = (np.arange(runs) * kept + np.arange(kept)[:, None]) * length
        found = _in_packets(rows.reshape(-1, length), sign, starts.reshape(-1), of_packets).reshape(kept, runs)
        return _chain(np.concatenate([rows[:, :1], found], axis=1), sign)
    return _first_unless_beyond(rows, sign)


def _packets_by_signs(rows: np.ndarray, sign: int, way: str, sizes: Sequence[int]) -> np.ndarray:
    """The same, but lanes keep NaN, and of two zeros the one whose sign is beyond the other's.

    >>> row = np.float32([[-1, -0.0, -1, -1, -1, 0.0, -1, -1], [np.nan, 1, 1, 1, 2, 1, 1, 1]])
    >>> apply = RULES["packets_by_signs"].apply
    >>> [apply(row, 1, way, ()).tolist() for way in ("in_order", "rows")]
    [[-0.0, nan], [0.0, nan]]
    """
    return _packets_first_unless_beyond(rows, sign, way, sizes, _chain_by_signs)


def _part_in_lanes(kept: np.ndarray, part: np.ndarray, sign: int, width: int) -> np.ndarray:
    """What each row's chain keeps after one part: four vectors of lanes in turn, folded in halves at the end."""

    def next_of(kept: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.where(kept > x if sign > 0 else kept < x, kept, x)

    length = part.shape[1]
    fours, whole = length - length % (4 * width), length - length % width
    lanes = kept[:, None]
    if fours:
        vectors = np.broadcast_to(lanes, (len(kept), 4 * width))
        for begin in range(0, fours, 4 * width):
            vectors = next_of(vectors, part[:, begin : begin + 4 * width])
        first, second, third, fourth = np.split(vectors, 4, axis=1)
        lanes = next_of(next_of(first, second), next_of(third, fourth))
    for begin in range(fours, whole, width):
        lanes = next_of(lanes, part[:, begin : begin + width])
    for begin in range(whole, length):
        lanes = next_of(lanes, part[:, begin : begin + 1])
    while (half := lanes.shape[1] // 2) > 0:
        lanes = next_of(lanes[:, :half], lanes[:, half:])
    return lanes[:, 0]


def _parts_in_lanes(rows: np.ndarray, sign: int, length: int, *, width: int) -> np.ndarray:
    """As `last_unless_beyond` inside of every lane, from an infinity on, which rows without elements give.

    >>> row = np.float32([[*[-1] * 15, -0.0, 0.0, *[-1] * 15]])
    >>> [RULES["parts_in_16_lanes"].apply(row, 1, length).tolist() for length in (32, 1)]
    [[-0.0], [0.0]]
    >>> RULES["parts_in_8_lanes"].apply(row, 1, 32).tolist()
    [-0.0]
    """
    if length == 1 and rows.shape[1]:
        return _last_unless_beyond(rows, sign)
    kept = np.full(len(rows), -sign * np.inf, rows.dtype)
    for begin in range(0, rows.shape[1], length):
        kept = _part_in_lanes(kept, rows[:, begin : begin + length], sign, width)
    return kept


def _last_in_vectors(kept: np.ndarray, x: np.ndarray, sign: int, vectors: bool) -> np.ndarray:
    """In vectors what is kept has to be beyond what comes, elsewhere the other way round.

    >>> kept, x = np.float32([1, 0, np.nan, 2]), np.float32([2, -0.0, 1, np.nan])
    >>> [RULES["last_in_vectors"].apply(kept, x, 1, vectors).tolist() for vectors in (True, False)]
    [[2.0, -0.0, 1.0, nan], [2.0, 0.0, nan, 2.0]]
    """
    if vectors:
        return np.where(kept > x if sign > 0 else kept < x, kept, x)
    return np.where(kept < x if sign > 0 else kept > x, x, kept)


def _nan_in_pixels(kept: np.ndarray, x: np.ndarray, sign: int, vectors: bool) -> np.ndarray:
    """In vectors the first NaN, of zeros the one whose sign is beyond; elsewhere what is kept unless x is beyond it.

    >>> kept, x = np.float32([1, -0.0, np.nan, 2]), np.float32([2, 0, 1, np.nan])
    >>> [RULES["nan_else_by_signs_in_pixels"].apply(kept, x, 1, vectors).tolist() for vectors in (True, False)]
    [[2.0, 0.0, nan, nan], [2.0, -0.0, nan, 2.0]]
    """
    if not vectors:
        return np.where(kept < x if sign > 0 else kept > x, x, kept)
    pairs = np.stack([kept.reshape(-1), x.reshape(-1)], axis=1)
    return _nan_else_by_signs(pairs, sign, np.ones(len(pairs), np.bool_)).reshape(kept.shape)


def _windows_by_signs(kept: np.ndarray, x: np.ndarray, sign: int, vectors: bool) -> np.ndarray:
    """As `nan_else_by_signs_in_pixels` in vectors, wherever.

    >>> kept, x = np.float32([1, -0.0, np.nan, 2]), np.float32([2, 0, 1, np.nan])
    >>> RULES["windows_nan_else_by_signs"].apply(kept, x, 1, False).tolist()
    [2.0, 0.0, nan, nan]
    """
    return _nan_in_pixels(kept, x, sign, True)


RULES: dict[str, ExtremeRule] = {
    "first_unless_beyond": ExtremeRule(
        _first_unless_beyond, "kept = x0; kept = kept < x ? x : kept for the others in row-major order (> for minima)"
    ),
    "nan_else_last_in_vectors": ExtremeRule(
        _nan_else_last_in_vectors,
        "of two operands the first NaN, else the one beyond the other (below it for minima), of equal ones the second "
        "in whole vectors of 16 bytes and the first elsewhere",
        exchanges=True,
        in_vectors=True,
    ),
    "nan_else_by_signs_in_vectors": ExtremeRule(
        _nan_else_by_signs_in_vectors,
        "of two operands the first NaN, else the one beyond the other (below it for minima), of equal ones the second, "
        "but +0 (-0 for minima) of zeros, in whole vectors of 16 bytes and the first elsewhere",
        exchanges=True,
        in_vectors=True,
    ),
    "nan_else_by_signs": ExtremeRule(
        _nan_else_by_signs,
        "of two operands the first NaN, else the one beyond the other (below it for minima), of equal ones the second, "
        "but +0 (-0 for minima) of zeros",
        exchanges=True,
        in_vectors=True,
    ),
    "rows_nan_else_by_signs": ExtremeRule(
        _rows_by_signs,
        "a NaN if there is one, else the largest (smallest) number, +0 (-0 for minima) of zeros; -inf (inf) of nothing",
        of_nothing=True,
    ),
    "nan_else_first": ExtremeRule(
        _nan_else_first,
        "the first NaN, else kept = x0; kept = x > kept ? x : kept for the others in row-major order (< for minima)",
        of_nothing=True,
        exchanges=True,
    ),
    "last_unless_beyond": ExtremeRule(
        _last_unless_beyond,
        "kept = x0; kept = kept > x ? kept : x for the others in row-major order (< for minima); of binary16 a NaN is "
        "made quiet",
        exchanges_repeated=True,
    ),
    "packets_by_signs": ExtremeRule(
        _packets_by_signs,
        "as packets_first_unless_beyond, but of packets, lane by lane, a NaN stays, and of two zeros that one whose "
        "sign is beyond the other's",
        of_nothing=True,
        in_packets=True,
    ),
    "packets_first_unless_beyond": ExtremeRule(
        _packets_first_unless_beyond,
        "kept = x0; kept = x > kept ? x : kept (< for minima): rows by packets of 16 bytes as they are aligned in "
        "memory, two sets of lanes in turn, folded in halves, then what stands before and behind; columns four "
        "elements at a time, (1, 2) and (3, 4); runs apart, behind the first element; else in row-major order",
        of_nothing=True,
        in_packets=True,
    ),
    "parts_in_16_lanes": ExtremeRule(
        partial(_parts_in_lanes, width=16),
        "kept = -inf (inf for minima); for neighbouring elements, kept = kept > x ? kept : x (< for minima) in four "
        "vectors of 16 lanes in turn, (0, 1) and (2, 3), then the vectors that are left, then every lane with the "
        "elements that are left, folded in halves",
        of_nothing=True,
        in_parts=True,
    ),
    "parts_in_8_lanes": ExtremeRule(
        partial(_parts_in_lanes, width=8), "the same with 8 lanes", of_nothing=True, in_parts=True
    ),
    "last_in_vectors": ExtremeRule(
        _last_in_vectors,
        "of windows (> and < exchanged for minima): in vectors kept = kept > x ? kept : x, elsewhere kept = kept < x ? "
        "x : kept, from the first element or the least finite number on; `max_pool` says in which order",
        in_windows=True,
    ),
    "nan_else_by_signs_in_pixels": ExtremeRule(
        _nan_in_pixels,
        "of windows: in whole vectors of 16 bytes of an output's pixel the first NaN, else the larger one (the smaller "
        "for minima), +0 (-0 for minima) of zeros; elsewhere kept = kept < x ? x : kept; from the least finite number",
        in_windows=True,
        in_pixels=True,
    ),
    "windows_nan_else_by_signs": ExtremeRule(
        _windows_by_signs,
        "of windows: the first NaN, else the largest number (the smallest for minima), +0 (-0 for minima) of zeros",
        in_windows=True,
        from_first=True,
    ),
}

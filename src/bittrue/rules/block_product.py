"""Slot `block_product`: rows times columns of integers in blocks with a scale each, in binary32 lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..arithmetic import floats
from ..records import dataclass

_F32 = np.float32
# Lanes of sums held at a time.
_HELD = 1 << 21


@dataclass(frozen=True)
class Blocks:
    """Quantized values s64[count, blocks, length] and their scales f32[count, blocks].

    Attributes:
        zero_points: of whole rows, s64[count], where these are quantized by their range.
        depth: how many terms count, where others fill up the last block; 0: all.
        pointed: zero points that were given have been subtracted from the values.
    """

    values: np.ndarray
    scales: np.ndarray
    zero_points: np.ndarray | None = None
    depth: int = 0
    pointed: bool = False


@dataclass(frozen=True)
class Points:
    """Zero points of columns [N, blocks], and whether they were given, or are the middle of the type."""

    values: np.ndarray
    given: bool


@dataclass(frozen=True)
class BlockProductRule:
    """`apply(rows, columns, bits of a column's value, points, bias)`: rows times (columns - points) + bias, f32[M, N].

    Computed zero points count where it `looks(rows, bits, length)` at them while it multiplies; else they come too
    late, as the weights are prepared with them.
    """

    apply: Callable[[Blocks, Blocks, int, Points, np.ndarray | None], np.ndarray]
    looks: Callable[[int, int, int], bool]


# What every lane adds in a step: the positions of its factors [lanes, terms], and its block [lanes].
Lanes = tuple[np.ndarray, np.ndarray]


def _lanes(length: int, each: list[tuple[int, list[int]]]) -> Lanes:
    """One (block, fours of neighbours in it) per lane."""
    blocks = np.array([block for block, _ in each])
    fours = np.array([four for _, four in each])
    places = (fours[..., None] * 4 + np.arange(4)).reshape(len(each), -1)
    return blocks[:, None] * length + places, blocks


def steps(length: int, blocks: int) -> tuple[list[Lanes], list[Lanes]]:
    """The steps of 16 lanes, and those of 8 lanes for the blocks left over, which exist for short blocks only.

    Blocks of 16 come eight at a time, of 32 four, of 64 two, longer ones alone and in pieces of 128: as many integers
    as two vectors hold. Of four neighbouring fours of a block the first and third, and the second and fourth, share a
    lane.

    >>> wide, rest = steps(32, 5)
    >>> wide[0][1].tolist(), rest[0][1].tolist(), wide[0][0][1].tolist()
    ([0, 0, 2, 2, 0, 0, 2, 2, 1, 1, 3, 3, 1, 1, 3, 3], [4, 4, 4, 4, 4, 4, 4, 4], [4, 5, 6, 7, 12, 13, 14, 15])
    """
    wide: list[Lanes] = []
    rest: list[Lanes] = []
    if length >= 128:
        for k in range(blocks):
            for piece in range(0, length // 4, 32):
                wide.append(_lanes(length, [(k, [piece + j, piece + j + 16]) for j in range(16)]))
        return wide, rest
    together = 128 // length
    for k in range(0, blocks // together * together, together):
        each = []
        for quarter in range(4):
            four = quarter * 4 % (length // 4)
            first = k + quarter * 16 // length
            pair = (first, first + together // 2)
            order = [(b, i) for i in (0, 1) for b in pair] if length == 64 else [(b, i) for b in pair for i in (0, 1)]
            each += [(b, [four + i, four + i + 2]) for b, i in order]
        wide.append(_lanes(length, each))
    for k in range(blocks // together * together, blocks):
        if length == 64:
            wide.append(_lanes(length, [(k, [j]) for j in range(16)]))
        elif length == 32:
            rest.append(_lanes(length, [(k, [j]) for j in range(8)]))
        else:
            rest.append((k * 16 + np.arange(16).reshape(8, 2), np.full(8, k)))
    return wide, rest


def steps_of_8(length: int, blocks: int, bits: int, pointed: bool) -> list[Lanes]:
    """The steps of 8 lanes, each of which adds two neighbouring fours of a block.

    Blocks of 16 come four at a time and those of 32 in pairs, but one by one where zero points have been subtracted;
    those left over have a four, or two terms, in each lane. Longer ones come in pieces of 64; with 8 bits fours that
    lie 32 apart share a lane there.

    >>> [blocks.tolist() for _, blocks in steps_of_8(32, 3, 4, False)]
    [[0, 0, 1, 1, 0, 0, 1, 1], [2, 2, 2, 2, 2, 2, 2, 2]]
    """
    found: list[Lanes] = []
    if length >= 64:
        for k in range(blocks):
            for piece in range(0, length // 4, 16):
                fours = (
                    [[j, j + 8] for j in range(8)] if bits == 8 else [[j, j + 1] for j in (0, 2, 8, 10, 4, 6, 12, 14)]
                )
                found.append(_lanes(length, [(k, [piece + four for four in one]) for one in fours]))
        return found
    together = 1 if pointed and length == 32 else 64 // length
    whole = blocks // together * together if together > 1 else 0
    for k in range(0, whole, together):
        if length == 32:
            each = [(k + b, half + four) for half in (0, 4) for b in (0, 1) for four in (0, 2)]
        else:
            each = [(k + b, four) for b in (0, 2, 1, 3) for four in (0, 2)]
        found.append(_lanes(length, [(b, [four, four + 1]) for b, four in each]))
    for k in range(whole, blocks):
        if length == 32:
            found.append(_lanes(length, [(k, [j]) for j in range(8)]))
        else:
            found.append((k * 16 + np.arange(16).reshape(8, 2), np.full(8, k)))
    return found


def _parts(rows: Blocks, columns: Blocks) -> Iterator[tuple[slice, Blocks]]:
    """Some of the rows at a time, an even number."""
    by = max(2, _HELD // (16 * max(1, len(columns.scales))) // 2 * 2)
    for begin in range(0, len(rows.scales), by):
        part = slice(begin, begin + by)
        yield part, Blocks(rows.values[part], rows.scales[part])


def _flat(blocks: Blocks) -> np.ndarray:
    # Sums of 32 products of 8-bit numbers are integers of binary32.
    return blocks.values.reshape(len(blocks.values), -1).astype(_F32)


def _add_steps(total: np.ndarray, along: list[Lanes], rows: Blocks, columns: Blocks) -> np.ndarray:
    """total[lanes, M, N] = fma(products of a lane's factors, f32(scale of the column * scale of the row), total)."""
    left, right = _flat(rows), _flat(columns)
    for places, blocks in along:
        dots = left[:, places].transpose(1, 0, 2) @ right[:, places].transpose(1, 2, 0)
        scale = rows.scales.T[blocks][:, :, None] * columns.scales.T[blocks][:, None]
        total = floats.fused_multiply_add(dots, scale, total)
    return total


def _by_halves(lanes: np.ndarray) -> np.ndarray:
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return np.asarray(lanes[0])


def _by_fours(lanes: np.ndarray) -> np.ndarray:
    """Four neighbours in order; then, of 16 lanes, the first and third four, and the second and fourth."""
    e = lanes.reshape(-1, 4, *lanes.shape[1:])
    fours = ((e[:, 0] + e[:, 1]) + e[:, 2]) + e[:, 3]
    return _by_halves(fours)


def binary32_16_lanes(rows: Blocks, columns: Blocks, bits: int) -> np.ndarray:
    """Steps of fused multiply-adds in 16 lanes (`steps`); blocks left over are added to both halves' sum.

    Lanes are folded by fours, those of the last N % 4 columns by halves; by halves, too, in pairs of rows with blocks
    of 64 and more, or of 128 and more where columns have 8 bits. Domain: finite scales; of several NaN any one stays.
    Source: kernels of a library for x86-64 with 512-bit vectors, read; verified by running.

    >>> ones = Blocks(np.ones((1, 2, 16), np.int64), np.float32([[1, 2**-24]]))
    >>> binary32_16_lanes(ones, ones, 4).tolist()
    [[16.0]]
    """
    length, (m, n) = rows.values.shape[2], (len(rows.scales), len(columns.scales))
    wide, rest = steps(length, rows.scales.shape[1])
    out = np.empty((m, n), _F32)
    with np.errstate(all="ignore"):
        for part, some in _parts(rows, columns):
            total = _add_steps(np.zeros((16, len(some.scales), n), _F32), wide, some, columns)
            if length < 64:
                total = _add_steps(total[:8] + total[8:], rest, some, columns)
            result, halves = _by_fours(total), _by_halves(total)
            result[:, n // 4 * 4 :] = halves[:, n // 4 * 4 :]
            if length >= (128 if bits == 8 else 64):
                pairs = len(result) // 2 * 2
                result[:pairs] = halves[:pairs]
            out[part] = result
    return out


def binary32_8_lanes(rows: Blocks, columns: Blocks, bits: int) -> np.ndarray:
    """Steps of fused multiply-adds in 8 lanes (`steps_of_8`).

    Lanes are folded by fours, those of the last N % 4 columns by halves. Domain: as of `binary32_16_lanes`. Source:
    kernels of a library for x86-64 with 256-bit vectors, read; verified by running.

    >>> ones = Blocks(np.ones((1, 2, 16), np.int64), np.float32([[1, 2**-24]]))
    >>> binary32_8_lanes(ones, ones, 4).tolist()
    [[16.0]]
    """
    n = len(columns.scales)
    along = steps_of_8(rows.values.shape[2], rows.scales.shape[1], bits, columns.pointed)
    out = np.empty((len(rows.scales), n), _F32)
    with np.errstate(all="ignore"):
        for part, some in _parts(rows, columns):
            total = _add_steps(np.zeros((8, len(some.scales), n), _F32), along, some, columns)
            out[part] = _by_fours(total)
            out[part, n // 4 * 4 :] = _by_halves(total)[:, n // 4 * 4 :]
    return out


def binary32_four_blocks(rows: Blocks, columns: Blocks, bits: int) -> np.ndarray:
    """Four blocks at a time: lane = f32(lane + f32(fma(d2, s2, f32(d0 s0)) + fma(d3, s3, f32(d1 s1)))), d the products
    of a block's fours in 16 lanes and s = f32(scale of the row * scale of the column); lanes are folded by halves.

    Blocks are 32, 64 or 128 long; missing ones at the end count 0. Domain and source: as of `binary32_16_lanes`.

    >>> ones = Blocks(np.ones((1, 1, 32), np.int64), np.float32([[0.5]]))
    >>> binary32_four_blocks(ones, ones, 2).tolist()
    [[8.0]]
    """
    return _four_blocks(rows, columns, min(rows.values.shape[2], 64) // 4, chained=False)


def binary32_four_blocks_of_8(rows: Blocks, columns: Blocks, bits: int) -> np.ndarray:
    """The same in 8 lanes; blocks of 64 of two rows, but for the last N mod 4 columns, are a chain: fma(d, s, lane).

    Domain: as of `binary32_four_blocks`. Source: that library's kernels for 256-bit vectors, read; verified by running.
    """
    out = _four_blocks(rows, columns, min(rows.values.shape[2], 32) // 4, chained=False)
    pairs, fours = len(rows.scales) // 2 * 2, len(columns.scales) // 4 * 4
    if rows.values.shape[2] == 64 and pairs and fours:
        some = Blocks(rows.values[:pairs], rows.scales[:pairs]), Blocks(columns.values[:fours], columns.scales[:fours])
        out[:pairs, :fours] = _four_blocks(*some, 8, chained=True)
    return out


def _four_blocks(rows: Blocks, columns: Blocks, lanes: int, *, chained: bool) -> np.ndarray:
    (m, blocks, _), n = rows.values.shape, len(columns.scales)
    out = np.empty((m, n), _F32)
    right = columns.values.reshape(n, blocks, -1, lanes, 4).astype(_F32)
    with np.errstate(all="ignore"):
        for part, some in _parts(rows, columns):
            count = len(some.scales)
            left = some.values.reshape(count, blocks, -1, lanes, 4).astype(_F32)

            def of(k: int, left: np.ndarray = left, some: Blocks = some) -> tuple[np.ndarray, np.ndarray]:
                factors = [x[:, k].transpose(2, 0, 1, 3).reshape(lanes, len(x), -1) for x in (left, right)]
                return factors[0] @ factors[1].transpose(0, 2, 1), some.scales[:, k, None] * columns.scales[:, k]

            total = np.zeros((lanes, count, n), _F32)
            for k in range(blocks if chained else 0):
                total = floats.fused_multiply_add(*of(k), total)
            for first in range(0, 0 if chained else blocks, 4):
                found = [of(k) for k in range(first, min(blocks, first + 4))]
                sums = []
                for pair in (found[0::2], found[1::2]):
                    sums.append(pair[0][0] * pair[0][1] if pair else np.zeros_like(total))
                    if len(pair) > 1:
                        sums[-1] = floats.fused_multiply_add(*pair[1], sums[-1])
                total = total + (sums[0] + sums[1])
            out[part] = _by_halves(total)
    return out


def _subtracted(columns: Blocks, points: Points) -> Blocks:
    values = columns.values.astype(np.int64) - points.values.astype(np.int64)[..., None]
    return Blocks(values, columns.scales, pointed=points.given)


def _never(rows: int, bits: int, length: int) -> bool:
    return False


def _of_a_row(rows: int, bits: int, length: int) -> bool:
    """A single row, and columns of 4 bits in blocks of 32 and more."""
    return rows == 1 and bits == 4 and length >= 32


def _then_corrected(
    lanes: Callable[[Blocks, Blocks, int], np.ndarray], subtracts: Callable[[int, int, int], bool] = _never
) -> BlockProductRule:
    """Products without zero points, to which the bias is added, then what corrects them; where it `subtracts` zero
    points from the columns first, there is nothing to correct.
    """

    def apply(rows: Blocks, columns: Blocks, bits: int, points: Points, bias: np.ndarray | None) -> np.ndarray:
        first = subtracts(len(rows.scales), bits, rows.values.shape[2])
        with np.errstate(all="ignore"):
            total = lanes(rows, _subtracted(columns, points) if first else columns, bits)
            total = total if bias is None else total + bias
            return total if first else corrected(total, rows, columns, points.values)

    return BlockProductRule(apply, subtracts)


def corrected(total: np.ndarray, rows: Blocks, columns: Blocks, points: np.ndarray) -> np.ndarray:
    """A product and what the zero points [N, blocks] make of it: a chain of fused multiply-adds of f32(scale of
    a row's block * its sum) and -f32(scale * zero point), from 0 on.
    """
    sums, negative = rows.scales * rows.values.sum(2).astype(_F32), -(columns.scales * points)
    correction = np.zeros_like(total)
    for k in range(sums.shape[1]):
        correction = floats.fused_multiply_add(sums[:, k, None], negative[:, k], correction)
    return np.asarray(total + correction)


def _dots(rows: Blocks, columns: Blocks, k: int) -> np.ndarray:
    """What block `k` of every row and column give, f32[M, N]; they are integers of binary32."""
    return np.asarray((rows.values[:, k].astype(np.float64) @ columns.values[:, k].astype(np.float64).T).astype(_F32))


def _fours(rows: Blocks, columns: Blocks, by: int, sides: int = 1, first: int = 0) -> np.ndarray:
    """Fused multiply-adds in 4 lanes, over those pieces of `by` terms whose number is `first` modulo `sides`."""
    (m, blocks, length), n = rows.values.shape, len(columns.scales)
    pieces = (blocks * length // by, by // 16, 4, 4)
    left, right = (x.reshape(len(x), *pieces).astype(_F32) for x in (rows.values, columns.values))
    total = np.zeros((4, m, n), _F32)
    for piece in range(first, left.shape[1], sides):
        one, two = (x[:, piece].transpose(2, 0, 1, 3).reshape(4, len(x), by // 4) for x in (left, right))
        block = piece * by // length
        scale = rows.scales[:, block, None] * columns.scales[:, block]
        total = floats.fused_multiply_add(one @ two.transpose(0, 2, 1), scale, total)
    return np.asarray((total[0] + total[1]) + (total[2] + total[3]))


def _4_lanes(rows: Blocks, columns: Blocks, bits: int, points: Points, bias: np.ndarray | None) -> np.ndarray:
    """Columns of 4 bits less their zero points, in 4 lanes; a step has 32 terms, or a block of 16.

    Fours of rows by pairs of columns have one sum; what is left over has one of every second step, and one of the
    others. Lanes are folded by neighbours. Domain: finite scales. Source: kernels of a library for aarch64, read;
    verified by running.

    >>> ones = Blocks(np.ones((1, 3, 16), np.int64), np.float32([[1, 1, 2**-26]]))
    >>> RULES["binary32_4_lanes"].apply(ones, ones, 4, Points(np.zeros((1, 3)), True), None).tolist()
    [[32.0]]
    """
    columns, by = _subtracted(columns, points), min(rows.values.shape[2], 32)
    fours, pairs = len(rows.scales) // 4 * 4, len(columns.scales) // 2 * 2
    with np.errstate(all="ignore"):
        total = _fours(rows, columns, by, 2, 0) + _fours(rows, columns, by, 2, 1)
        some = Blocks(rows.values[:fours], rows.scales[:fours]), Blocks(columns.values[:pairs], columns.scales[:pairs])
        total[:fours, :pairs] = _fours(*some, by)
        return np.asarray(total if bias is None else total + bias)


def _unsigned_rows(rows: Blocks, columns: Blocks, bits: int, points: Points, bias: np.ndarray | None) -> np.ndarray:
    """Rows of q + 128: a chain over the blocks, total = fma(products, f32(scales), total), in 4 lanes in the last N mod
    4 columns; then the bias, what corrects the columns' zero points, and 128 times what corrects the rows'.

    Domain and source: as of `_4_lanes`.
    """
    (m, blocks, length), n = rows.values.shape, len(columns.scales)
    counts = np.minimum(np.arange(blocks) * -length + (rows.depth or blocks * length), length)
    inside = np.arange(length) < counts[:, None]
    moved = Blocks(np.where(inside, rows.values + 128, 0), rows.scales)
    last = n // 4 * 4
    with np.errstate(all="ignore"):
        total = np.zeros((m, n), _F32)
        for k in range(blocks):
            scale = rows.scales[:, k, None] * columns.scales[:, k]
            total = floats.fused_multiply_add(_dots(moved, columns, k), scale, total)
        total[:, last:] = _fours(moved, Blocks(columns.values[last:], columns.scales[last:]), length)
        total = corrected(total if bias is None else total + bias, moved, columns, points.values.astype(_F32))
        sums = np.where(inside, columns.values, 0).sum(2).astype(_F32)
        turned = columns.scales * (points.values.astype(_F32) * counts.astype(_F32) - sums)
        correction = np.zeros_like(total)
        for k in range(blocks):
            correction = floats.fused_multiply_add(rows.scales[:, k, None], turned[:, k], correction)
        return np.asarray(floats.fused_multiply_add(correction, _F32(128), total))


def _from_the_bias(rows: Blocks, columns: Blocks, bits: int, points: Points, bias: np.ndarray | None) -> np.ndarray:
    """A chain over the blocks, from the bias on: total = fma(f32(scales), products, total), then total = fma(f32(scale
    of the row * its sum), -f32(scale of the column * zero point), total).

    Domain and source: as of `_4_lanes`.
    """
    with np.errstate(all="ignore"):
        total = np.zeros((len(rows.scales), len(columns.scales)), _F32)
        total = total if bias is None else total + bias
        sums, negative = rows.scales * rows.values.sum(2).astype(_F32), -(columns.scales * points.values.astype(_F32))
        for k in range(rows.scales.shape[1]):
            scale = rows.scales[:, k, None] * columns.scales[:, k]
            total = floats.fused_multiply_add(_dots(rows, columns, k), scale, total)
            total = floats.fused_multiply_add(sums[:, k, None], negative[:, k], total)
    return np.asarray(total)


def _limited(total: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """A product that a library limited to finite numbers, and the bias."""
    largest = np.finfo(_F32).max
    total = np.minimum(np.maximum(total + _F32(0), -largest), largest)
    return np.asarray(total if bias is None else total + bias)


def _row_ranges(rows: Blocks, columns: Blocks, bits: int, points: Points, bias: np.ndarray | None) -> np.ndarray:
    """Rows with a zero point each, columns of 4 bits less 8 whose scales keep 8 bits: a chain over the blocks, total =
    fma(products, scale of the column, total), then total = fma(the column's sum, -zero point, total), times the row's
    scale.

    Sums of a column are added up by pairs of fours that lie 16 apart. Domain and source: as of `_4_lanes`.
    """
    columns, n = _subtracted(columns, points), len(columns.scales)
    assert rows.zero_points is not None
    scales = (np.ascontiguousarray(columns.scales).view(np.uint32) & 0xFFFF0000).view(_F32)
    fours = columns.values.reshape(n, scales.shape[1], -1, 2, 4, 4).sum((3, 5)).astype(_F32)
    with np.errstate(all="ignore"):
        total, sums = np.zeros((len(rows.scales), n), _F32), np.zeros(n, _F32)
        for k in range(scales.shape[1]):
            total = floats.fused_multiply_add(_dots(rows, columns, k), scales[:, k], total)
            for part in fours[:, k].reshape(n, -1).T:
                sums = sums + part * scales[:, k]
        total = floats.fused_multiply_add(sums, -rows.zero_points.astype(_F32)[:, None], total)
        return _limited(total * rows.scales[:, :1], bias)


def _points_first(rows: Blocks, columns: Blocks, bits: int, points: Points, bias: np.ndarray | None) -> np.ndarray:
    """Columns of 4 bits less 8, a chain over the blocks: total = fma(f32(scale of the column * (8 - zero point)),
    f32(scale of the row * its sum), total), then total = fma(products, f32(scales), total).

    Domain and source: as of `_4_lanes`.
    """
    values = Blocks(columns.values.astype(np.int64) - 8, columns.scales)
    with np.errstate(all="ignore"):
        total = np.zeros((len(rows.scales), len(columns.scales)), _F32)
        sums, moved = rows.values.sum(2).astype(_F32) * rows.scales, (8 - points.values.astype(_F32)) * columns.scales
        for k in range(rows.scales.shape[1]):
            total = floats.fused_multiply_add(moved[:, k], sums[:, k, None], total)
            # Both factors hold a sixteenth less and more.
            scale = (columns.scales[:, k] * _F32(1 / 16)) * rows.scales[:, k, None]
            total = floats.fused_multiply_add(_dots(rows, values, k) * _F32(16), scale, total)
        return _limited(total, bias)


RULES: dict[str, BlockProductRule] = {
    "binary32_16_lanes": _then_corrected(binary32_16_lanes),
    "binary32_8_lanes": _then_corrected(binary32_8_lanes, _of_a_row),
    "binary32_four_blocks": _then_corrected(binary32_four_blocks),
    "binary32_four_blocks_of_8": _then_corrected(binary32_four_blocks_of_8),
    "binary32_4_lanes": BlockProductRule(_4_lanes, lambda rows, bits, length: True),
    "binary32_unsigned_rows": BlockProductRule(_unsigned_rows, _never),
    "binary32_from_the_bias": BlockProductRule(_from_the_bias, _never),
    "binary32_row_ranges": BlockProductRule(_row_ranges, _never),
    "binary32_points_first": BlockProductRule(_points_first, _never),
}

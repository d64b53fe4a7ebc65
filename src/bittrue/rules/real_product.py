"""Slot `real_product`: products of matrices of real numbers, in binary32."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from ..arithmetic import floats
from ..arithmetic.correct_rounding import fraction, settle
from ..records import dataclass, replace
from . import sum_of_products

# Of convolutions whose terms go tap by tap, channels side by side.
ALL_CHANNELS = -1
# Elements of binary64 results held at a time.
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Layout:
    """How the factors of a product lie in memory, which some rules choose their order by.

    Attributes:
        packed: the second factor is a constant, rearranged ahead of time.
        turned_a, turned_b: that factor lies transposed in memory.
        added_last: `c` is added to the finished sum, instead of being what the sum begins with.
        split: terms of a block, where the operator says so; 0: the rule decides.
        fused_lanes: a single row adds up fused products in lanes, as many as the rule says.
        columns: of the whole product where `b` is a part of it, as many as a multiple of four; 0: `b` is all.
    """

    packed: bool = False
    turned_a: bool = False
    turned_b: bool = False
    added_last: bool = False
    split: int = 0
    fused_lanes: bool = False
    columns: int = 0


@dataclass(frozen=True, eq=False)
class RealProductRule:
    """`apply(a, b, c, alpha, beta, layout)`: alpha * a[M, K] b[K, N] + beta * c.

    Arrays are binary32; `c` broadcasts over the result, None stands for nothing to add. Products of batches are made
    one by one by `products`. Convolutions add up blocks of `blocked_channels` channels; 0: there are none, but
    transposed ones multiply first and add taps up then; None: they do neither; ALL_CHANNELS: all are one block. Columns
    of `b` that are windows inside of an image are multiplied by `inside` where there is such a function. Without
    products c itself is the result where it is `kept_alone`, whatever beta is but 0.
    """

    apply: Callable[[np.ndarray, np.ndarray, np.ndarray | None, float, float, Layout], np.ndarray]
    formula: str
    source: str
    blocked_channels: int | None = None
    inside: Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray] | None = None
    kept_alone: bool = False


def products(
    rule: RealProductRule,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    alpha: float,
    beta: float,
    layout: Layout,
) -> np.ndarray:
    """alpha * a[..., M, K] b[..., K, N] + beta * c, matrix by matrix; batches broadcast."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    out = np.empty((*batch, a.shape[-2], b.shape[-1]), np.float64 if a.dtype == np.float64 else np.float32)
    for index in np.ndindex(*batch):
        out[index] = rule.apply(left[index], right[index], c, alpha, beta, layout)
    return out


def _rounded_once(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout
) -> np.ndarray:
    """Exact zeros are +0.

    >>> ones = np.float32([[1], [1], [1]])
    >>> RULES["rounded_once"].apply(np.float32([[2**24, 1, -(2**24)]]), ones, None, 1.0, 1.0, Layout()).tolist()
    [[1.0]]
    """
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    added = None if c is None else np.broadcast_to(c, out.shape)
    rows = max(1, _BLOCK // max(1, b.shape[1]))
    for begin in range(0, a.shape[0], rows):
        part = slice(begin, begin + rows)
        out[part] = _one_product(a[part], b, None if added is None else added[part], alpha, beta)
    return out


def _one_product(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float) -> np.ndarray:
    depth = a.shape[1]
    with np.errstate(all="ignore"):
        wide = a.astype(np.float64), b.astype(np.float64)
        value = alpha * (wide[0] @ wide[1])
        # Products are exact; depth additions in any order, the products with alpha and beta, and one more addition.
        size = abs(alpha) * (np.abs(wide[0]) @ np.abs(wide[1]))
        if c is not None:
            value = value + beta * c.astype(np.float64)
            size = size + np.abs(beta * c.astype(np.float64))
        error = size * ((depth + 4) * 2.0**-52)
    value = np.where(size == 0, 0.0, value)

    def exact(place: int) -> Fraction:
        m, n = divmod(place, b.shape[1])
        total = sum((fraction(x) * fraction(y) for x, y in zip(a[m], b[:, n], strict=True)), Fraction(0))
        return fraction(alpha) * total + (0 if c is None else fraction(beta) * fraction(c[m, n]))

    return settle(value, np.where(np.isfinite(error), error, 0), exact)


_PACKED_DEPTH, _DEPTH, _COLUMNS = 256, 128, 128


def block_depth(columns: int, depth: int, layout: Layout, wide: int = _COLUMNS) -> int:
    """Terms that are summed from 0 on before their sum is added to the result.

    >>> [block_depth(n, 700, Layout()) for n in (7, 20, 64, 65, 1000)], block_depth(7, 700, Layout(packed=True))
    ([1024, 512, 256, 128, 128], 256)
    """
    if layout.packed or layout.split:
        return layout.split or _PACKED_DEPTH
    found = _DEPTH
    if columns < depth and not layout.turned_a:
        while wide > 16 and wide // 2 >= columns:
            found *= 2
            wide //= 2
    return found


def _row_of_fours(a: np.ndarray, b: np.ndarray, start: np.ndarray) -> np.ndarray:
    """One row: terms in fours (then two, then one), each rounded and added up, and then added to the sum so far."""
    total, k = start, 0
    for width in (4, 2, 1):
        while a.size - k >= width:
            part = a[k] * b[k]
            for i in range(k + 1, k + width):
                part = part + a[i] * b[i]
            total = part + total
            k += width
    return total


def _column_of_lanes(x: np.ndarray, rows: np.ndarray, start: np.ndarray) -> np.ndarray:
    """One column: the products of each row with x in 8 lanes, which groups of 4, 2 and 1 rows fold in ways of their
    own.
    """
    lanes = np.zeros((rows.shape[0], 8), np.float32)
    for begin in range(0, x.size, 8):
        part = rows[:, begin : begin + 8] * x[begin : begin + 8]
        if part.shape[1] < 8:
            part = np.pad(part, ((0, 0), (0, 8 - part.shape[1])))
        lanes = lanes + part
    e = lanes.reshape(-1, 2, 4).transpose(2, 1, 0)
    fours = ((e[0] + e[1]) + e[2]) + e[3]
    fours = fours[0] + fours[1]
    even, odd = e[2] + e[0], e[3] + e[1]
    pairs = (even[0] + even[1]) + (odd[0] + odd[1])
    single = (e[0] + e[1]) + (e[2] + e[3])
    single = single[0] + single[1]
    count = rows.shape[0]
    position = np.arange(count)
    folded = np.where(position < count // 4 * 4, fours, np.where(position < count // 2 * 2, pairs, single))
    return folded + start


def _row_of_fused_lanes(a: np.ndarray, b: np.ndarray, count: int) -> np.ndarray:
    """One row: terms k = `count` i + j go to lane j; columns in fours fold their lanes differently than those left
    over.
    """
    lanes = np.zeros((b.shape[1], count), np.float32)
    for begin in range(0, a.size, count):
        part = b[begin : begin + count].T
        own = lanes[:, : part.shape[1]]
        own[...] = floats.fused_multiply_add(part, a[begin : begin + count], own)
    e = lanes.reshape(-1, count // 4, 4).transpose(1, 2, 0)
    if count == 4:
        return np.asarray((e[0, 0] + e[0, 1]) + (e[0, 2] + e[0, 3]))
    quarters = ((e[:, 0] + e[:, 1]) + e[:, 2]) + e[:, 3]
    if count == 8:
        fours, halves = quarters[0] + quarters[1], e[0] + e[1]
        single = (halves[0] + halves[1]) + (halves[2] + halves[3])
    else:
        fours = (quarters[0] + quarters[2]) + (quarters[1] + quarters[3])
        halves = (e[0] + e[2]) + (e[1] + e[3])
        single = (halves[0] + halves[2]) + (halves[1] + halves[3])
    return np.where(np.arange(b.shape[1]) < b.shape[1] // 4 * 4, fours, single)


def _fused_blocks(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout, lanes: int = 16
) -> np.ndarray:
    """Blocks of fused multiply-adds; single rows and columns have orders of their own, without fused operations.

    The square below is rounded before 1 + 2^-11 is taken from it in a single row, but not in a block.

    >>> a, b = np.float32([[-1, 1 + 2.0**-12]]), np.float32([[1 + 2.0**-11, 0], [1 + 2.0**-12, 0]])
    >>> rule, two = RULES["binary32_fused_blocks"], np.concatenate([a, a])
    >>> [rule.apply(rows, b, None, 1.0, 1.0, Layout())[0, 0].item() for rows in (a, two)]
    [0.0, 5.960464477539063e-08]
    """
    with np.errstate(all="ignore"):
        if layout.fused_lanes and len(a) == 1:
            result = _row_of_fused_lanes(a[0], b, lanes)[None]
            return result if c is None else result + c
        return _fused_blocks_quietly(a, b, c, np.float32(alpha), np.float32(beta), layout)


def _fused_blocks_quietly(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: np.float32, beta: np.float32, layout: Layout
) -> np.ndarray:
    rows, columns = a.shape[0], b.shape[1]
    alone = (layout.columns or columns) == 1
    if layout.added_last:
        result = _fused_blocks_quietly(a, b, None, alpha, beta, replace(layout, added_last=False))
        return result if c is None else result + c
    zero = c is None or beta == 0
    total = np.zeros((rows, columns), np.float32)
    if not zero:
        total[...] = np.broadcast_to(np.asarray(c), total.shape)
    plain = not layout.packed and not layout.split and alpha == 1 and (zero or beta == 1)
    if plain and rows == 1 and not layout.turned_a:
        if layout.turned_b:
            return _column_of_lanes(a[0], np.ascontiguousarray(b.T), total[0])[None]
        return _row_of_fours(a[0], b, total[0])[None]
    if plain and alone and not layout.turned_b:
        if layout.turned_a:
            return _row_of_fours(b[:, 0], a.T, total[:, 0])[:, None]
        return _column_of_lanes(b[:, 0], a, total[:, 0])[:, None]
    return _in_blocks(a, b, c, alpha, beta, layout)


def _in_blocks(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: np.float32, beta: np.float32, layout: Layout
) -> np.ndarray:
    (rows, depth), columns = a.shape, b.shape[1]
    zero = c is None or beta == 0
    total = np.zeros((rows, columns), np.float32)
    if not zero:
        total[...] = np.asarray(c) if beta == 1 else np.asarray(c) * beta
    by = block_depth(layout.columns or columns, depth, layout)
    fused = sum_of_products.SumRule(sum_of_products.binary32_fused, "fused")
    for k in range(0, depth, by):
        part = np.zeros_like(total)
        sum_of_products.add_matrix(fused, part, a[:, k : k + by], b[k : k + by])
        first = zero and k == 0
        total = part * alpha if first else floats.fused_multiply_add(part, alpha, total)
    return total


def _fused_blocks_alike(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout
) -> np.ndarray:
    """Single rows and columns are fused like others; a row between factors that do not lie transposed makes one block,
    from `c` on; in 4 lanes where the operator asks for them.

    >>> a, b = np.float32([[-1, 1 + 2.0**-12]]), np.float32([[1 + 2.0**-11, 0], [1 + 2.0**-12, 0]])
    >>> RULES["binary32_fused_blocks_alike"].apply(a, b, None, 1.0, 1.0, Layout())[0, 0].item()
    5.960464477539063e-08
    """
    with np.errstate(all="ignore"):
        if layout.added_last:
            result = _fused_blocks_alike(a, b, None, alpha, beta, replace(layout, added_last=False))
            return result if c is None else result + c
        if layout.fused_lanes:
            return _row_of_fused_lanes(a[0], b, 4)[None]
        plain = not layout.packed and not layout.split and alpha == 1 and (c is None or beta in (0, 1))
        if plain and len(a) == 1 and not layout.turned_a and not layout.turned_b:
            return _window_in_turn(a, b, None if beta == 0 else c, 1.0, 1.0, Layout())
        return _in_blocks(a, b, c, np.float32(alpha), np.float32(beta), layout)


def _fused_blocks_of_64(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout
) -> np.ndarray:
    """Nothing is packed, and single rows and columns are like others."""
    fused, columns = floats.fused_multiply_add_64, b.shape[1]
    zero = c is None or beta == 0
    with np.errstate(all="ignore"):
        total = (
            np.zeros((a.shape[0], columns)) if zero else np.broadcast_to(np.asarray(c), (a.shape[0], columns)) * beta
        )
        by = block_depth(columns, a.shape[1], replace(layout, packed=False), _COLUMNS // 2)
        for begin in range(0, a.shape[1], by):
            part = np.zeros_like(total)
            for k in range(begin, min(begin + by, a.shape[1])):
                part = fused(a[:, k : k + 1], b[k : k + 1], part)
            total = part * alpha if zero and begin == 0 else fused(part, alpha, total)
    return np.asarray(total)


_LEAST_TERMS, _DEEPEST, _LONG, _GATHERED = 20, 136, 128, 16


def _joined_block_depth(terms: int) -> int:
    """Terms of a block: multiples of 8, so that the last block is not much shorter than the others.

    >>> [_joined_block_depth(terms) for terms in (100, 136, 168, 261, 300)]
    [100, 136, 88, 136, 104]
    """
    left = terms % _DEEPEST
    if terms <= _DEEPEST or not left:
        return min(terms, _DEEPEST)
    return _DEEPEST - 8 * ((_DEEPEST - 1 - left) // (8 * (terms // _DEEPEST + 1)))


def _chain_64(a: np.ndarray, b: np.ndarray, places: Iterable[int], total: np.ndarray) -> np.ndarray:
    for k in places:
        total = floats.fused_multiply_add_64(a[:, k : k + 1], b[k : k + 1], total)
    return total


def _dots_64(a: np.ndarray, b: np.ndarray, most: int) -> np.ndarray:
    """Terms in `most` pairs of lanes in turn, which are added to each other, then the lanes, then what is left.

    Pairs that are left go to the first lanes; with two pairs of lanes to their sum.
    """
    terms, zero = len(b), np.zeros((len(a), b.shape[1]))
    paired, whole = terms // 2 * 2, terms // (2 * most) * 2 * most
    pairs = []
    for first in range(0, min(2 * most, paired), 2):
        starts = list(range(first, whole, 2 * most))
        starts += [whole + first] if (most != 2 or not whole) and whole + first < paired else []
        pairs.append([_chain_64(a, b, [start + lane for start in starts], zero) for lane in (0, 1)])
    if not pairs:
        return _chain_64(a, b, range(terms), zero)
    order = [2, 1, 0] if len(pairs) == 4 else range(len(pairs) - 2, -1, -1)
    for place in order:
        pairs[place] = [x + y for x, y in zip(pairs[place], pairs[place + 1], strict=True)]
    one, other = pairs[0]
    if most == 2 and 0 < whole < paired:
        one, other = (_chain_64(a, b, [whole + lane], lanes) for lane, lanes in enumerate((one, other)))
    return _chain_64(a, b, range(paired, terms), one + other)


def _blocks_of_kernels_64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One block; in a corner of it even and odd terms have chains of their own."""
    (rows, terms), columns = a.shape, b.shape[1]
    total = _chain_64(a, b, range(terms), np.zeros((rows, columns)))
    first_row, first_column = rows // 8 * 8, columns // 6 * 6
    if rows - first_row >= 4 and columns - first_column in (2, 3):
        row, column = slice(first_row, first_row + 4), slice(first_column, first_column + 2)
        own_a, own_b = a[row], b[:, column]
        whole = terms // 8 * 8
        halves = [_chain_64(own_a, own_b, range(one, whole, 2), np.zeros((4, 2))) for one in (0, 1)]
        total[row, column] = _chain_64(own_a, own_b, range(whole, terms), halves[0] + halves[1])
    return total


def _kernels_of_64(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    alpha: float,
    beta: float,
    layout: Layout,
    gathered: bool,
) -> np.ndarray:
    """Small products, single rows and columns have ways of their own; `gathered`: by how factors lie in memory.

    >>> a, b = np.float64([[1 + 2.0**-30, 1]]), np.float64([[1 + 2.0**-30], [-1 - 2.0**-29]])
    >>> RULES["binary64_fused_kernels"].apply(a, b, None, 1.0, 1.0, Layout()).tolist()
    [[0.0]]
    """
    (rows, terms), columns = a.shape, b.shape[1]
    neighbours = layout.turned_b and not layout.turned_a
    small, single = rows + columns + terms < _LEAST_TERMS, 1 in (rows, columns)
    with np.errstate(all="ignore"):
        total = np.zeros((rows, columns))
        if c is not None and beta != 0:
            total = total + np.asarray(c) * beta
        if gathered and columns == 1 and not small:
            b, alpha = b * alpha, 1.0
        by, lanes = terms if small or single else _joined_block_depth(terms), 0
        if gathered and (small or rows == columns == 1):
            lanes = (2 if small else 4) if neighbours else 0
        elif gathered and single:
            lanes = 1 if (layout.turned_b if rows == 1 else not layout.turned_a) else 0
            by = _GATHERED if terms >= _LONG else terms
        if lanes:
            return floats.fused_multiply_add_64(_dots_64(a, b, lanes), alpha, total)
        for begin in range(0, terms, max(by, 1)):
            own_a, own_b = a[:, begin : begin + by], b[begin : begin + by]
            if small or single:
                part = _chain_64(own_a, own_b, range(len(own_b)), np.zeros_like(total))
            else:
                part = _blocks_of_kernels_64(own_a, own_b)
            total = floats.fused_multiply_add_64(part, alpha, total)
    return total


def _window_in_turn(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout
) -> np.ndarray:
    """One chain of fused multiply-adds, from `c` on unless that is added last.

    >>> a, b = np.float32([[-1, 1 + 2.0**-12]]), np.float32([[1 + 2.0**-11], [1 + 2.0**-12]])
    >>> _window_in_turn(a, b, None, 1.0, 1.0, Layout()).tolist()
    [[5.960464477539063e-08]]
    """
    total = np.zeros((len(a), b.shape[1]), np.float32)
    if c is not None and not layout.added_last:
        total[...] = c
    with np.errstate(all="ignore"):
        for k in range(len(b)):
            total = floats.fused_multiply_add(a[:, k : k + 1], b[k], total)
        return total + c if c is not None and layout.added_last else total


# Terms that a library for matrices adds up at most before their sum enters the result, as follows from 16 KiB of cache.
_TERMS_16, _TOGETHER_16 = 1360, 8


def _terms_16(depth: int) -> int:
    """Terms of a block; the last one of several is not much shorter.

    >>> [_terms_16(depth) for depth in (1360, 1361, 2720, 3000)]
    [1360, 688, 1360, 1008]
    """
    left = depth % _TERMS_16
    if depth <= _TERMS_16 or not left:
        return min(depth, _TERMS_16)
    steps = (_TERMS_16 - 1 - left) // (_TOGETHER_16 * (depth // _TERMS_16 + 1))
    return _TERMS_16 - _TOGETHER_16 * steps


def _halves(x: npt.ArrayLike) -> np.ndarray:
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def _chain_16(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    total = np.zeros((len(a), b.shape[1]), np.float32)
    if c is not None:
        total[...] = c
    for k in range(len(b)):
        total = floats.fused_multiply_add_16(a[:, k : k + 1], b[k], total)
    return total


def _in_turn_16(a: np.ndarray, b: np.ndarray, steps: range, total: np.ndarray) -> np.ndarray:
    for k in steps:
        total = _halves(total + _halves(a[:, k : k + 1] * b[k]))
    return total


def _fused_chain_16(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout
) -> np.ndarray:
    """One chain of fused multiply-adds of binary16 numbers, from `c` on.

    >>> a, b = np.float32([[-1, 1 + 2.0**-10]]), np.float32([[1, 0], [1 - 2.0**-10, 0]])
    >>> RULES["binary16_fused_chain"].apply(a, b, None, 1.0, 1.0, Layout())[0, 0].item()
    -9.5367431640625e-07
    """
    with np.errstate(all="ignore"):
        return _chain_16(a, b, c)


def _fused_or_in_turn_16(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout
) -> np.ndarray:
    """Factors as they are, and at most a row to add: a chain; else products and sums are rounded, terms go in turn, and
    those of an odd last column with four rows at a time in two chains.

    >>> a, b = np.float32([[-1, 1 + 2.0**-10]]), np.float32([[1, 0], [1 - 2.0**-10, 0]])
    >>> rule = RULES["binary16_fused_or_in_turn"]
    >>> [rule.apply(a, b, None, 1.0, 1.0, Layout(turned_b=turned))[0, 0].item() for turned in (False, True)]
    [-9.5367431640625e-07, 0.0]
    """
    rows, columns, depth = len(a), b.shape[1], len(b)
    start = None if beta == 0 else c
    of_row = start is None or (beta == 1 and start.shape in ((columns,), (1, columns)))
    with np.errstate(all="ignore"):
        if of_row and alpha == 1 and not layout.turned_a and not layout.turned_b:
            return _chain_16(a, b, start)
        total = np.zeros((rows, columns), np.float32)
        if start is not None:
            total[...] = start if beta == 1 else _halves(start * _halves(beta))
        by, whole = _terms_16(depth), rows // 4 * 4
        apart = columns % 2 and columns > 1 and rows + columns + depth >= 20
        for first in range(0, depth, by):
            terms = range(first, min(first + by, depth))
            part = _in_turn_16(a, b, terms, np.zeros_like(total))
            if apart:
                pairs = len(terms) // _TOGETHER_16 * _TOGETHER_16
                own, none = (a[:whole], b[:, -1:]), np.zeros((whole, 1), np.float32)
                even, odd = (_in_turn_16(*own, terms[one:pairs:2], none) for one in (0, 1))
                part[:whole, -1:] = _in_turn_16(*own, terms[pairs:], _halves(even + odd))
            total = _halves(total + _halves(part * _halves(alpha)))
    return total


def _window_by_columns(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    """Windows of 7 x 7: a chain of fused multiply-adds down each column of the window, and the sums of the columns in
    halves of 8 lanes, the last one empty; then `c`.
    """
    filters, windows = a.reshape(len(a), 7, 7, 1), b.reshape(7, 7, -1)
    lanes = np.zeros((len(a), 8, b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for row in range(7):
            lanes[:, :7] = floats.fused_multiply_add(filters[:, row], windows[row], lanes[:, :7])
        for half in (4, 2, 1):
            lanes = lanes[:, :half] + lanes[:, half:]
        return lanes[:, 0] if c is None else lanes[:, 0] + c


RULES: dict[str, RealProductRule] = {
    "rounded_once": RealProductRule(
        _rounded_once,
        "alpha * sum of products + beta * c as a real number, rounded once to binary32, ties to even",
        "the definition of correct rounding; fractions",
    ),
    "binary32_fused_blocks": RealProductRule(
        _fused_blocks,
        "blocks of 128 to 1024 terms (256 where the second factor is packed), each a chain of fused multiply-adds from "
        "0 on, s = fma(block, alpha, s), s = beta * c at first; single rows and columns multiply and add in fours or "
        "in 8 lanes, or fuse them in 16 lanes where the operator says so",
        "a library of matrix kernels for x86-64 with 512-bit vectors, read; verified by running",
        blocked_channels=16,
        kept_alone=True,
    ),
    "binary32_fused_blocks_of_8": RealProductRule(
        partial(_fused_blocks, lanes=8),
        "as binary32_fused_blocks, with 8 lanes where the operator asks for fused ones, and blocks of 8 channels",
        "the same library's kernels for 256-bit vectors, read; verified by running",
        blocked_channels=8,
        kept_alone=True,
    ),
    "binary32_fused_blocks_alike": RealProductRule(
        _fused_blocks_alike,
        "as binary32_fused_blocks; single rows and columns are blocks, too: a row is one block of all terms, from c "
        "on, where neither its own factor nor the other one lies transposed; 4 lanes, where the operator asks for "
        "fused ones, are folded by neighbours",
        "the same library's kernels for aarch64, read; verified by running",
        blocked_channels=0,
        kept_alone=True,
    ),
    "binary32_fused_windows_of_7": RealProductRule(
        _window_in_turn,
        "windows inside of the image: a chain of fused multiply-adds down each of the 7 columns, s0 ... s6, then ((s0 "
        "+ s4) + (s2 + s6)) + ((s1 + s5) + s3) + c; others: a chain of fused multiply-adds row by row, from c on",
        "a library of matrix kernels for x86-64 with 512-bit vectors, read; verified by running",
        inside=_window_by_columns,
    ),
    "binary64_fused_blocks": RealProductRule(
        _fused_blocks_of_64,
        "of binary64 numbers: blocks of 128 terms (256 up to 32 columns, 512 up to 16, where there are more terms than "
        "columns), each a chain of fused multiply-adds from 0 on, s = fma(block, alpha, s), s = beta * c at first",
        "a library of matrix kernels for x86-64; verified by running",
        kept_alone=True,
    ),
    "binary64_fused_kernels": RealProductRule(
        partial(_kernels_of_64, gathered=False),
        "of binary64 numbers: blocks of 136 terms at most, each a chain of fused multiply-adds from 0 on, but two "
        "where few rows and columns are left; a single chain for single rows and columns and where there are less than "
        "20 rows, columns and terms; s = fma(block, alpha, s), s = beta * c at first",
        "a library of matrix templates for aarch64; verified by running",
        kept_alone=True,
    ),
    "binary64_fused_kernels_gathered": RealProductRule(
        partial(_kernels_of_64, gathered=True),
        "as binary64_fused_kernels; single rows and columns in blocks of 16 from 128 terms on, or in lanes where terms "
        "lie side by side, as small products do; alpha enters a single column first",
        "a library of matrix templates for aarch64; verified by running",
        kept_alone=True,
    ),
    "binary16_fused_chain": RealProductRule(
        _fused_chain_16,
        "of binary16 numbers: s = fma(a, b, s) rounded to binary16 term by term, from c on; of convolutions tap by "
        "tap, channels side by side",
        "the same library's kernels of binary16 for aarch64, read; verified by running",
        blocked_channels=ALL_CHANNELS,
    ),
    "binary16_fused_or_in_turn": RealProductRule(
        _fused_or_in_turn_16,
        "as binary16_fused_chain where alpha is 1, no factor lies transposed and c is a row, if it counts; else beta c "
        "+ alpha s, where every product and every sum is rounded to binary16, block by block of 1360 terms or some "
        "less; of an odd last column s is (even terms + odd terms) by eights, four rows at a time, and then the rest",
        "the same library and one of matrix templates for aarch64, read; verified by running",
    ),
}

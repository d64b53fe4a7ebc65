"""Slot `real_sum`: sums of real numbers and functions of them, in binary32; or of integers by way of binary64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..arithmetic import elementary, half_functions, rational_wide
from ..arithmetic.correct_rounding import Exact, decimal, fraction, in_digits, settle
from ..records import dataclass, replace
from . import multiply_add

# As many rows are added up side by side; fewer are faster as plain numbers.
_FEW_ROWS = 16


@dataclass(frozen=True)
class Way:
    """In which order rows lie and are added, where a rule does not define the real sum alone.

    Attributes:
        order: ``in_order``; ``packets`` of 4 as they are aligned in memory; ``lanes`` of 4 from the first element on;
            ``columns``, whose sums are added up; ``runs``, the packet sums of which are added up; ``fours`` (then two,
            then one), the sums of which are added to what there is; ``compensated``: what an addition lost is taken
            from the next summand; ``wide``: in order, where a rule would round to fewer bits by itself.
        starts: position in memory of every row (of every run for ``runs``, a matrix then), for packets.
        width: summands of a run, or number of columns.
        by_reciprocal: the sum is multiplied by the rounded reciprocal of the divisor.
    """

    order: str = "in_order"
    starts: np.ndarray | None = None
    width: int = 0
    by_reciprocal: bool = False


# (rows [outputs, summands], divisor of each output or None, the order) to [outputs] of the type of the rows.
Reduction = Callable[[np.ndarray, "np.ndarray | None", Way], np.ndarray]


@dataclass(frozen=True, eq=False)
class RealSumRule:
    """`reductions`: what is made of the rows of a matrix of binary32 numbers, or of 32 or 64-bit integers, by name.

    ``sum`` (over a divisor, where one is given), ``sum_square``, ``l1``, ``l2``, ``lp_1`` and ``lp_2`` (of
    windows), ``log_sum``, ``log_sum_exp`` and
    ``prod``. `ordered` rules look at the order; of windows that count their padding, those with `every_tap` divide by
    the taps, wherever they lie.
    """

    reductions: Mapping[str, Reduction]
    formula: str
    source: str
    ordered: bool = False
    every_tap: bool = False


def _sum(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    """Exact zeros are +0.

    >>> rows = np.float32([[2**24, 1, 1], [1, 2, 4]])
    >>> RULES["rounded_once"].reductions["sum"](rows, np.float64([1, 3]), Way()).tolist()
    [16777218.0, 2.3333332538604736]
    """
    by = np.ones(rows.shape[0]) if divisor is None else np.broadcast_to(np.asarray(divisor, np.float64), rows.shape[:1])
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        value = wide.sum(axis=1) / by
        error = np.abs(wide).sum(axis=1) / by * ((rows.shape[1] + 2) * 2.0**-52)
        # 0 / 0 of nothing to divide stays NaN.
        value = np.where((error == 0) & (by != 0), 0.0, value)

    def exact(place: int) -> Exact:
        return sum(map(fraction, rows[place]), Fraction(0)) / int(by[place])

    return settle(value, np.where(np.isfinite(error), error, 0), exact)


def _sum_square(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    with np.errstate(all="ignore"):
        value = np.square(rows.astype(np.float64)).sum(axis=1)
    return settle(
        value,
        _margin(value, rows),
        lambda place: sum((fraction(x) ** 2 for x in rows[place]), Fraction(0)),
    )


def _margin(value: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(value), np.abs(value) * ((rows.shape[1] + 64) * 2.0**-52), 0)


def _l1(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    return _sum(np.abs(rows), None, way)


def _l2(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    with np.errstate(all="ignore"):
        value = np.sqrt(np.square(rows.astype(np.float64)).sum(axis=1))

    @in_digits
    def exact(place: int) -> Decimal:
        return decimal(sum((fraction(x) ** 2 for x in rows[place]), Fraction(0))).sqrt()

    return settle(value, _margin(value, rows), exact)


def _log_sum(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        total = wide.sum(axis=1)
        value = np.log(total)
        size = np.abs(wide).sum(axis=1)
        error = size / np.abs(total) * ((rows.shape[1] + 2) * 2.0**-51) + np.abs(value) * 2.0**-48

    @in_digits
    def exact(place: int) -> Decimal:
        found = sum(map(fraction, rows[place]), Fraction(0))
        return decimal(found).ln() if found > 0 else Decimal("-Infinity")

    return settle(value, np.where(np.isfinite(value) & np.isfinite(error), error, 0), exact)


def _log_sum_exp(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        largest = wide.max(axis=1, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(largest), largest, 0)
        sums = np.log(np.exp(wide - shift).sum(axis=1))
        value = shift[:, 0] + sums
        error = (np.abs(shift[:, 0]) + np.abs(sums) + rows.shape[1] + 64) * 2.0**-52

    @in_digits
    def exact(place: int) -> Decimal:
        row = [decimal(x) for x in rows[place] if x != -np.inf]
        largest = max(row)
        return largest + sum(((x - largest).exp() for x in row), Decimal(0)).ln()

    return settle(value, np.where(np.isfinite(value), error, 0), exact)


def _prod(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    """Mantissas and exponents apart, so that no partial product leaves the range."""
    with np.errstate(all="ignore"):
        mantissas, exponents = np.frexp(rows.astype(np.float64))
        value, exponent = np.ones(rows.shape[0]), np.zeros(rows.shape[0], np.int64)
        for column in range(rows.shape[1]):
            value, more = np.frexp(value * mantissas[:, column])
            exponent += exponents[:, column] + more
        value = np.ldexp(value, np.clip(exponent, -2000, 2000).astype(np.int32))

    def exact(place: int) -> Fraction:
        product = Fraction(1)
        for x in rows[place]:
            product *= fraction(x)
        return product

    return settle(value, _margin(value, rows), exact)


@dataclass(frozen=True, eq=False)
class Fold:
    """How summands become one total: `begin(x)` is that of one, `add(total, x)` takes another one in, `join` makes one
    of two totals; of the lanes of a packet those of neighbours where `adjacent`, else those of both halves.
    """

    identity: float
    begin: Callable[[np.ndarray], np.ndarray]
    add: Callable[[np.ndarray, np.ndarray], np.ndarray]
    join: Callable[[np.ndarray, np.ndarray], np.ndarray]
    adjacent: bool = False

    def lanes(self, total: np.ndarray) -> np.ndarray:
        """One total of those in [rows, lanes]."""
        while total.shape[1] > 1:
            parts = (total[:, ::2], total[:, 1::2]) if self.adjacent else np.split(total, 2, axis=1)
            total = self.join(*parts)
        return np.asarray(total[:, 0])


_SUM, _PRODUCT = Fold(0.0, np.asarray, np.add, np.add), Fold(1.0, np.asarray, np.multiply, np.multiply)


def _in_order(rows: np.ndarray, fold: Fold = _SUM) -> np.ndarray:
    if not rows.shape[1]:
        return np.full(rows.shape[0], fold.identity, rows.dtype)
    if isinstance(fold.add, np.ufunc):
        return np.asarray(fold.add.accumulate(rows, axis=1)[:, -1])
    total = fold.begin(rows[:, 0])
    for i in range(1, rows.shape[1]):
        total = fold.add(total, rows[:, i])
    return total


def _packets(rows: np.ndarray, start: int, fold: Fold = _SUM, width: int = 4) -> np.ndarray:
    """Rows whose first element is `start` elements behind a boundary of a packet of `width`: whole packets in two sets
    that take turns, their lanes, then what stands before the first boundary, then what stands behind the last one.
    """
    count = rows.shape[1]
    first = min(-start % width, count)
    whole = (count - first) // width
    if not whole:
        return _in_order(rows, fold)
    packets = rows[:, first : first + width * whole].reshape(-1, whole, width)
    paired = whole // 2 * 2
    total = fold.begin(packets[:, 0])
    if whole > 1:
        other = fold.begin(packets[:, 1])
        for i in range(2, paired, 2):
            total = fold.add(total, packets[:, i])
            other = fold.add(other, packets[:, i + 1])
        total = fold.join(total, other)
        if whole > paired:
            total = fold.add(total, packets[:, -1])
    result = fold.lanes(total)
    for i in (*range(first), *range(first + width * whole, count)):
        result = fold.add(result, rows[:, i])
    return np.asarray(result)


def aligned_packets(rows: np.ndarray, starts: np.ndarray, fold: Fold = _SUM, width: int = 4) -> np.ndarray:
    """Sums of rows by packets, as every row's start in memory has it."""
    out = np.empty(rows.shape[0], rows.dtype)
    for start in range(width):
        chosen = starts % width == start
        if chosen.any():
            out[chosen] = _packets(rows[chosen], start, fold, width)
    return out


def _lanes(rows: np.ndarray, fold: Fold) -> np.ndarray:
    whole = rows.shape[1] // 4
    lanes = np.zeros((rows.shape[0], 4), np.float32)
    for i in range(whole):
        lanes += rows[:, 4 * i : 4 * i + 4]
    total = fold.lanes(lanes)
    for i in range(4 * whole, rows.shape[1]):
        total = total + rows[:, i]
    return total


def _fours(rows: np.ndarray) -> np.ndarray:
    total, k = np.zeros(rows.shape[0], np.float32), 0
    for width in (4, 2, 1):
        while rows.shape[1] - k >= width:
            total = _in_order(rows[:, k : k + width]) + total
            k += width
    return total


def _ordered(rows: np.ndarray, way: Way, fold: Fold = _SUM, width: int = 4) -> np.ndarray:
    """Packets of two leave fours in order."""
    with np.errstate(all="ignore"):
        if way.order == "lanes":
            return _lanes(rows, fold)
        if way.order == "columns":
            columns = rows.reshape(rows.shape[0], -1, way.width)
            return _in_order(np.add.accumulate(columns, axis=1)[:, -1])
        if way.order == "fours" and width == 4:
            return _fours(rows)
        if way.order == "packets" and way.starts is not None:
            return aligned_packets(rows, way.starts, fold, width)
        if way.order == "runs" and way.starts is not None:
            runs = aligned_packets(rows.reshape(-1, way.width), way.starts.reshape(-1), fold, width)
            return _in_order(runs.reshape(rows.shape[0], -1))
        return _in_order(rows, fold)


def _ordered_sum(
    rows: np.ndarray, divisor: np.ndarray | None, way: Way, fold: Fold = _SUM, width: int = 4
) -> np.ndarray:
    """Sums are divided, or multiplied by a reciprocal.

    >>> row = np.float32([[2**24, 1, 1, 1, -(2**24)]])
    >>> way = Way("packets", np.array([0]))
    >>> [RULES["binary32_packets_4"].reductions["sum"](row, None, w).tolist() for w in (Way(), way)]
    [[0.0], [2.0]]
    """
    total = _ordered(rows, way, fold, width)
    if divisor is None:
        return total
    by = np.asarray(divisor, total.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(total * (total.dtype.type(1) / by) if way.by_reciprocal else total / by)


def _power(x: np.ndarray, exponent: float) -> np.ndarray:
    return elementary.power(x, np.full_like(x, exponent))


def length(rule: RealSumRule, rows: np.ndarray, p: int, inside: np.ndarray) -> np.ndarray:
    """(sum of |x|^p)^(1 / p) of what lies inside, 0 elsewhere, in row-major order.

    But for magnitudes and squares, powers are made in binary64 and rounded.

    >>> length(RULES["binary32_packets_4"], np.float32([[1, -1, 1, 1]]), 4, np.array(True)).tolist()
    [1.4142135381698608]
    """
    if f"lp_{p}" in rule.reductions:
        return rule.reductions[f"lp_{p}"](rows, None, Way())
    with np.errstate(all="ignore"):
        powers = np.power(np.abs(rows).astype(np.float64), p).astype(np.float32)
        powers = np.where(inside, powers, np.float32(0))
        return _power(rule.reductions["sum"](powers, None, Way()), float(np.float32(1) / np.float32(p)))


def _ordered_log_sum_exp(
    rows: np.ndarray,
    divisor: np.ndarray | None,
    way: Way,
    exp: Callable[[np.ndarray], np.ndarray] = elementary.exp,
    log: Callable[[np.ndarray], np.ndarray] = elementary.log,
) -> np.ndarray:
    with np.errstate(all="ignore"):
        largest = rows.max(axis=1, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(largest), largest, rows.dtype.type(0))
        total = _in_order(exp(rows - shift))
        return np.asarray(log(total) + shift[:, 0])


def _saturated(total: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """binary64 without its fraction, limited to the type; NaN (infinity times 0) gives the smallest integer."""
    info = np.iinfo(dtype)
    total = np.where(np.isnan(total), -np.inf, total)
    whole = np.trunc(total)
    inside = np.where((whole >= float(info.min)) & (whole < float(info.max) + 1), whole, 0).astype(np.int64)
    return np.where(whole >= float(info.max), info.max, np.where(whole <= float(info.min), info.min, inside)).astype(
        dtype
    )


def _total(terms: np.ndarray, way: Way) -> np.ndarray:
    """Sums of binary64 numbers; where all of them are exact, their order does not matter.

    >>> row = np.float64([[1, 1, 1, 2**53, 1, 1]])
    >>> [int(_total(row, way)[0]) - 2**53 for way in (Way("compensated"), Way())]
    [6, 4]
    """
    with np.errstate(over="ignore"):
        exact = bool(np.abs(terms).sum(axis=1).max(initial=0) < 2**53)
    if exact or way.order != "compensated":
        return np.asarray(np.add.accumulate(terms, axis=1)[:, -1])
    if len(terms) < _FEW_ROWS:
        return np.array([_compensated(row.tolist()) for row in terms])
    return np.asarray(_compensated(terms.T))


def _compensated(terms: Iterable[Any]) -> Any:
    total = lost = 0.0
    for term in terms:
        summand = term - lost
        following = total + summand
        lost = (following - total) - summand
        total = following
    return total


def _of_integers(
    first: Callable[[np.ndarray], np.ndarray],
    last: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> Reduction:
    def reduction(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
        total: np.ndarray = np.zeros(rows.shape[0])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if rows.shape[1]:
                total = _total(first(rows.astype(np.float64)), way)
                total = total if divisor is None else total / divisor
            return _saturated(last(total), rows.dtype)

    return reduction


def _product_of_integers(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return _saturated(np.multiply.reduce(rows.astype(np.float64), axis=1), rows.dtype)


def _log_sum_exp_of_integers(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    """Powers of differences are integers, too: 1 for the largest ones, 0 for the others."""
    largest = rows.max(axis=1, initial=np.iinfo(rows.dtype).min)
    with np.errstate(divide="ignore"):
        logarithm = np.log((rows == largest[:, None]).sum(axis=1).astype(np.float64))
    return _saturated(logarithm + largest.astype(np.float64), rows.dtype)


def _sum_16(rows: np.ndarray, divisor: np.ndarray | None, way: Way) -> np.ndarray:
    """One summand after the other.

    >>> row = np.float32([[2048, 1, 1, 1]])
    >>> RULES["binary16_in_order"].reductions["sum"](row, np.float64([3]), Way()).tolist()
    [682.5]
    """
    with np.errstate(all="ignore"):
        total = np.zeros(rows.shape[0], np.float32)
        rounded = np.asarray if way.order == "wide" else half_functions.rounded
        for summand in rows.T:
            total = rounded(total + summand)
        return total if divisor is None else rounded(total / rounded(np.asarray(divisor, np.float32)))


NEIGHBOURS = replace(_SUM, adjacent=True)
FUSED_SQUARES = replace(
    NEIGHBOURS, begin=np.square, add=lambda total, x: multiply_add.RULES["rounded_once"].apply(x, x, total)
)

RULES: dict[str, RealSumRule] = {
    "rounded_once": RealSumRule(
        {
            "sum": _sum,
            "sum_square": _sum_square,
            "l1": _l1,
            "l2": _l2,
            "lp_1": _l1,
            "lp_2": _l2,
            "log_sum": _log_sum,
            "log_sum_exp": _log_sum_exp,
            "prod": _prod,
        },
        "the real result rounded once to binary32, ties to even",
        "the definition of correct rounding; fractions and decimal arithmetic with 260 digits",
    ),
    "binary32_packets_4": RealSumRule(
        {
            "sum": _ordered_sum,
            "sum_square": lambda rows, divisor, way: _ordered(rows * rows, way),
            "l1": lambda rows, divisor, way: _ordered(np.abs(rows), way),
            "l2": lambda rows, divisor, way: np.sqrt(_ordered(rows * rows, way)),
            "lp_1": lambda rows, divisor, way: _ordered(np.abs(rows), way),
            "lp_2": lambda rows, divisor, way: _power(_ordered(rows * rows, way), 0.5),
            "log_sum": lambda rows, divisor, way: elementary.log(_ordered(rows, way)),
            "log_sum_exp": _ordered_log_sum_exp,
            "prod": lambda rows, divisor, way: _ordered(rows, way, _PRODUCT),
        },
        "one summand after the other, or as the operator says: packets of 4 in two sets that take turns, (l0 + l2) + "
        "(l1 + l3), then what is not aligned; lanes of 4; columns or runs first; fours",
        "a linear algebra library and a library of vector kernels for x86-64, read; verified by running",
        ordered=True,
    ),
    "binary32_packets_of_neighbours": RealSumRule(
        {
            "sum": partial(_ordered_sum, fold=NEIGHBOURS),
            "sum_square": lambda rows, divisor, way: _ordered(rows, way, FUSED_SQUARES),
            "l1": lambda rows, divisor, way: _ordered(np.abs(rows), way, NEIGHBOURS),
            "l2": lambda rows, divisor, way: np.sqrt(_ordered(rows, way, FUSED_SQUARES)),
            "lp_1": lambda rows, divisor, way: _ordered(np.abs(rows), way, NEIGHBOURS),
            "lp_2": lambda rows, divisor, way: _power(_ordered(rows, way, FUSED_SQUARES), 0.5),
            "log_sum": lambda rows, divisor, way: elementary.log(_ordered(rows, way, NEIGHBOURS)),
            "log_sum_exp": _ordered_log_sum_exp,
            "prod": lambda rows, divisor, way: _ordered(rows, way, replace(_PRODUCT, adjacent=True)),
        },
        "as binary32_packets_4, but lanes are (l0 + l1) + (l2 + l3), and squares are added by fused multiply-adds",
        "the same libraries on aarch64, verified by running",
        ordered=True,
    ),
    "binary16_in_order": RealSumRule(
        {"sum": _sum_16},
        "of binary16 numbers: one summand after the other from 0 on, then the quotient, all rounded to binary16 unless "
        "the operator says otherwise",
        "a library of kernels for aarch64, read; verified by running",
        every_tap=True,
    ),
    "binary64_packets_2": RealSumRule(
        {
            "sum": partial(_ordered_sum, width=2),
            "sum_square": lambda rows, divisor, way: _ordered(rows * rows, way, width=2),
            "l1": lambda rows, divisor, way: _ordered(np.abs(rows), way, width=2),
            "l2": lambda rows, divisor, way: np.sqrt(_ordered(rows * rows, way, width=2)),
            "log_sum": lambda rows, divisor, way: rational_wide.library_log(_ordered(rows, way, width=2)),
            "log_sum_exp": partial(_ordered_log_sum_exp, exp=rational_wide.library_exp, log=rational_wide.library_log),
            "prod": lambda rows, divisor, way: _ordered(rows, way, _PRODUCT, 2),
        },
        "of binary64 numbers: as binary32_packets_4 with packets of 2, l0 + l1; fours are added in order; "
        "exponentials and logarithms by the C library",
        "what a runtime's reductions of binary64 numbers give on x86-64; verified by running",
        ordered=True,
    ),
    "binary64_trunc_saturate": RealSumRule(
        {
            "sum": _of_integers(np.asarray),
            "sum_square": _of_integers(np.square),
            "l1": _of_integers(np.abs),
            "l2": _of_integers(np.square, np.sqrt),
            "log_sum": _of_integers(np.asarray, np.log),
            "log_sum_exp": _log_sum_exp_of_integers,
            "prod": _product_of_integers,
        },
        "of integers: one after the other in binary64, or compensated as the operator says, roots and logarithms of "
        "that, the fraction dropped, limited to "
        "the type; powers below 1 are 0",
        "what a runtime's reductions of integers give; verified by running",
        ordered=True,
    ),
}

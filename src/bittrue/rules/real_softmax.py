"""Slot `real_softmax`: softmax and log_softmax of rows of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np

from ..arithmetic import elementary, flushed_half_functions, fused, fused_polynomials, rational_wide, short_functions
from ..arithmetic.correct_rounding import decimal, in_digits, settle
from ..records import dataclass
from . import extreme, order, real_function

_NEGATIVE_NAN = np.array([0xFFC00000], np.uint32).view(np.float32)[0]


@dataclass(frozen=True, eq=False)
class RealSoftmaxRule:
    """`softmax(rows, beta)` and `log_softmax(rows)` for rows [rows, elements] of binary32 or binary16, or of binary64
    where the rule says so, one or more elements each; the result has the type of the rows.

    Attributes:
        whole: it must see all rows at once.
        powers: differences [rows, elements] to their exponentials and the sums of rows [rows, 1], for attention, which
            divides by these sums later on.
    """

    softmax: Callable[[np.ndarray, float], np.ndarray]
    log_softmax: Callable[[np.ndarray], np.ndarray]
    formula: str
    source: str
    powers: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    whole: bool = False


def _largest(rows: np.ndarray) -> np.ndarray:
    """The largest number of each row, not below the smallest finite one; NaN is passed over."""
    lowest = np.finfo(rows.dtype).min
    return np.maximum(np.where(np.isnan(rows), lowest, rows).max(axis=1, keepdims=True), lowest).astype(np.float32)


def _sums(summands: np.ndarray) -> np.ndarray:
    """Sums of rows, one element after the other, each rounded to binary32."""
    return np.add.accumulate(summands, axis=1)[:, -1:]


def _softmax(rows: np.ndarray, beta: float) -> np.ndarray:
    """Numerators are rounded to the type of the rows before they are divided, sums are not.

    >>> RULES["binary32_in_order"].softmax(np.float32([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        powers = elementary.exp((rows.astype(np.float32) - _largest(rows)) * np.float32(beta))
        quotients = powers.astype(rows.dtype).astype(np.float32) / _sums(powers)
        return quotients.astype(rows.dtype)


def _log_softmax(rows: np.ndarray) -> np.ndarray:
    """(x - max) - log(sum of exp(x - max)).

    >>> RULES["binary32_in_order"].log_softmax(np.float32([[0, 0]])).tolist()
    [[-0.6931471824645996, -0.6931471824645996]]
    """
    with np.errstate(all="ignore"):
        differences = rows - _largest(rows)
        return differences - elementary.log(_sums(elementary.exp(differences)))


def _sums_of_lanes(summands: np.ndarray, width: int) -> np.ndarray:
    """Sums of rows in lanes, folded in halves; while four vectors of them are left, two sets of lanes take turns."""
    rows, length = summands.shape
    lanes = np.zeros((2, rows, width), np.float32)
    groups = [summands[:, i : i + width] for i in range(0, length, width)]
    in_turn = length // (4 * width) * 4
    for i, group in enumerate(groups[:in_turn]):
        lanes[i % 2] = order.sum_or_first_nan(group, lanes[i % 2])
    total = order.sum_or_first_nan(lanes[1], lanes[0])
    for group in groups[in_turn:]:
        part = total[:, : group.shape[1]]
        part[:] = order.sum_or_first_nan(part, group)
    while (half := total.shape[1] // 2) > 0:
        total = order.sum_or_first_nan(total[:, :half], total[:, half:])
    return total


def _first_nan(rows: np.ndarray) -> np.ndarray:
    """What rows become that hold NaN, an infinity, or nothing but negative infinities: their first NaN, where an
    infinity less itself is a negative one.
    """
    first = np.take_along_axis(rows, (np.isnan(rows) | (rows == np.inf)).argmax(axis=1)[:, None], axis=1)
    return np.where(np.isnan(first), first + first, _NEGATIVE_NAN)


def _softmax_16_lanes(rows: np.ndarray, beta: float) -> np.ndarray:
    """e * (1 / sum); beta must be 1.

    >>> RULES["binary32_fused_16_lanes"].softmax(np.float32([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        rows = fused.flush(rows)
        powers = fused.exp_on_negative(rows - rows.max(axis=1, keepdims=True))
        sums = _sums_of_lanes(powers, 16)
        return np.where(np.isnan(sums), _first_nan(rows), fused.flush(powers * (np.float32(1) / sums)))


def _softmax_8_lanes(rows: np.ndarray, beta: float) -> np.ndarray:
    """e * (1 / sum), the sum itself where that is NaN; beta must be 1.

    >>> RULES["binary32_fused_8_lanes"].softmax(np.float32([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        rows = fused.flush(rows)
        largest = extreme.RULES["parts_in_8_lanes"].apply(rows, 1, rows.shape[1])[:, None]
        differences = rows - largest
        arises = np.isnan(differences) & ~np.isnan(rows) & ~np.isnan(largest)
        differences = np.where(arises, _NEGATIVE_NAN, differences)
        powers = np.where(np.isnan(differences), differences, fused.exp_on_negative(differences))
        sums = _sums_of_lanes(powers, 8)
        return np.where(np.isnan(sums), sums, fused.flush(powers * (np.float32(1) / sums)))


def _softmax_of_64ths(rows: np.ndarray, beta: float) -> np.ndarray:
    """e * (1 / sum); beta must be 1.

    >>> RULES["binary32_fused_4_lanes"].softmax(np.float32([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        rows = fused.flush(rows)
        powers = fused.exp_on_negative_of_64ths(rows - rows.max(axis=1, keepdims=True))
        whole, length = rows.shape[1] // 4 * 4, rows.shape[1]
        lanes = np.zeros((len(rows), 4), np.float32)
        for first in range(0, whole, 4):
            lanes = lanes + powers[:, first : first + 4]
        sums = (lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3])
        if length - whole >= 2:
            sums = sums + (powers[:, whole] + powers[:, whole + 1])
        if length % 2:
            sums = sums + powers[:, -1]
        return fused.flush(powers * (np.float32(1) / sums[:, None]))


def _sums_of_8_lanes(summands: np.ndarray) -> np.ndarray:
    """Sums of rows in 8 lanes, folded to 4; four, two and one of what is left to the first lanes; folded."""
    rows, length = summands.shape
    whole = length // 8 * 8
    lanes = np.zeros((rows, 8), np.float32)
    for first in range(0, whole, 8):
        lanes = order.sum_or_first_nan(lanes, summands[:, first : first + 8])
    total = order.sum_or_first_nan(lanes[:, :4], lanes[:, 4:])
    for count in (4, 2, 1):
        if (length - whole) & count:
            first = whole + (length - whole) // (2 * count) * (2 * count)
            total[:, :count] = order.sum_or_first_nan(total[:, :count], summands[:, first : first + count])
    pair = order.sum_or_first_nan(total[:, :2], total[:, 2:])
    return np.asarray(order.sum_or_first_nan(pair[:, :1], pair[:, 1:]))


def _softmax_short(rows: np.ndarray, beta: float) -> np.ndarray:
    """e * f16(1 / sum), both rounded to binary16; beta must be 1. A NaN has no payload.

    >>> RULES["binary32_short_8_lanes"].softmax(np.float16([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float32)
        powers = short_functions.exp_on_negative(wide - wide.max(axis=1, keepdims=True))
        sums = _sums_of_8_lanes(powers)
        shares = powers.astype(np.float16).astype(np.float32) * (1 / sums).astype(np.float16).astype(np.float32)
        missing = np.copysign(np.float32(np.nan), _first_nan(wide))
        return np.where(np.isnan(sums), missing, shares).astype(np.float16)


def _softmax_of_halves(rows: np.ndarray, beta: float) -> np.ndarray:
    """f16(1 / sum) e in binary16; beta must be 1.

    >>> RULES["binary16_fused_8_lanes"].softmax(np.float16([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    return np.asarray(flushed_half_functions.softmax(rows.astype(np.float32)).astype(np.float16))


def _no_logarithm(rows: np.ndarray) -> np.ndarray:
    raise NotImplementedError("this rule has no log_softmax")


def _differences(rows: np.ndarray) -> np.ndarray:
    """x - max in binary64, exact to half a unit in the last place; NaN and +infinity give NaN."""
    wide = rows.astype(np.float64)
    return wide - wide.max(axis=1, keepdims=True, initial=-np.inf)


def _softmax_rounded_once(rows: np.ndarray, beta: float) -> np.ndarray:
    """beta must be 1.

    >>> RULES["rounded_once"].softmax(np.float32([[0, 1]]), 1.0).tolist()
    [[0.2689414322376251, 0.7310585975646973]]
    """
    with np.errstate(all="ignore"):
        differences = _differences(rows)
        powers = np.exp(differences)
        value = powers / powers.sum(axis=1, keepdims=True)
        error = np.abs(value) * (2.0**-53 * (rows.shape[1] + 256))

    @in_digits
    def exact(place: int) -> Decimal:
        row = [decimal(x) for x in rows[place // rows.shape[1]] if x != -np.inf]
        x = decimal(rows.reshape(-1)[place])
        largest = max(row)
        return (x - largest).exp() / sum(((other - largest).exp() for other in row), Decimal(0))

    return settle(value, np.where(np.isfinite(error), error, 0), exact)


def _log_softmax_rounded_once(rows: np.ndarray) -> np.ndarray:
    """Logarithms keep their digits where the greatest element is nearly 1.

    >>> RULES["rounded_once"].log_softmax(np.float32([[0, 1]])).tolist()
    [[-1.31326162815094, -0.3132616877555847]]
    """
    with np.errstate(all="ignore"):
        differences = _differences(rows)
        largest = differences == 0
        # The greatest element is 1; the others are summed beside it, so that a small logarithm keeps its digits.
        rest = np.exp(differences).sum(axis=1, keepdims=True, where=~largest) + (largest.sum(axis=1, keepdims=True) - 1)
        logarithm = np.log1p(rest)
        value = differences - logarithm
        error = 2.0**-52 * (np.abs(differences) + logarithm * (rows.shape[1] + 64))

    @in_digits
    def exact(place: int) -> Decimal:
        row = [decimal(x) for x in rows[place // rows.shape[1]] if x != -np.inf]
        x = decimal(rows.reshape(-1)[place])
        largest = max(row)
        return x - largest - sum(((other - largest).exp() for other in row), Decimal(0)).ln()

    return settle(value, np.where(np.isfinite(value), error, 0), exact)


# In binary32, as a double.
_LOG2_E = float(np.float32(1.44269504088896341))


def _sums_of_one_set(summands: np.ndarray, width: int) -> np.ndarray:
    """Sums of rows in 16 or 8 lanes: of 16 the halves, then neighbours of neighbours, then the two quarters.

    In 4 lanes: neighbours of neighbours, then what fills no lanes one by one.
    """
    if width == 4:
        whole = summands.shape[1] // 4 * 4
        by_fours = summands[:, :whole].reshape(len(summands), -1, 4)
        four = np.add.accumulate(np.insert(by_fours, 0, np.float32(0), axis=1), axis=1)[:, -1]
        total = (four[:, :1] + four[:, 1:2]) + (four[:, 2:3] + four[:, 3:])
        return _sums(np.concatenate([total, summands[:, whole:]], axis=1))
    lanes = np.zeros((summands.shape[0], width), np.float32)
    for i in range(0, summands.shape[1], width):
        group = summands[:, i : i + width]
        lanes[:, : group.shape[1]] += group
    halves = (lanes if width == 8 else lanes[:, 8:] + lanes[:, :8]).reshape(-1, 2, 4)
    quarters = (halves[..., 0] + halves[..., 1]) + (halves[..., 2] + halves[..., 3])
    return (quarters[:, 0] + quarters[:, 1])[:, None]


def _softmax_one_set(rows: np.ndarray, beta: float, width: int) -> np.ndarray:
    """e * f32(1 / sum); beta must be 1.

    >>> RULES["binary32_polynomial_16_lanes"].softmax(np.float32([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        powers, sums = _powers_in_one_set(rows - rows.max(axis=1, keepdims=True), width)
        return np.asarray(powers * (np.float32(1) / sums))


def _powers_in_one_set(differences: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Powers and their sums. But with 16 lanes a power is 0 where its exponent, a rounded number, is less than -126."""
    powers = fused_polynomials.exp(differences)
    if width != 16:
        exponents = np.rint(differences.astype(np.float64) * _LOG2_E)
        powers = np.where(exponents < -126, np.float32(0), powers)
    return powers, _sums_of_one_set(powers, width)


def _log_softmax_one_set(rows: np.ndarray, width: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        differences = rows - rows.max(axis=1, keepdims=True)
        return np.asarray(differences - elementary.log(_sums_of_one_set(fused_polynomials.exp(differences), width)))


def _sums_of_pairs(rows: np.ndarray) -> np.ndarray:
    """Sums of rows in 2 lanes, added to each other, then to what is left; a single row has four sets of lanes in turn,
    which are added up as 0 + (1 + (2 + 3)).
    """
    sets = 4 if len(rows) == 1 else 1
    whole = rows.shape[1] // 2 * 2
    pairs = rows[:, :whole].reshape(len(rows), -1, 2).transpose(1, 0, 2)
    lanes = list(pairs[:sets])
    for i in range(sets, len(pairs)):
        lanes[i % sets] = lanes[i % sets] + pairs[i]
    while len(lanes) > 1:
        lanes[-2:] = [lanes[-2] + lanes[-1]]
    total = lanes[0][:, 0] + lanes[0][:, 1] if lanes else np.zeros(len(rows))
    for place in range(whole, rows.shape[1]):
        total = total + rows[:, place]
    return np.asarray(total[:, None])


def _powers_in_pairs(rows: np.ndarray, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """The differences from the largest number and their exponentials; rows lie behind each other."""
    differences = rows - rows.max(axis=1, keepdims=True)
    powers = real_function.RULES[rule].functions["exp"](differences.reshape(-1))
    return differences, powers.reshape(rows.shape)


def _softmax_in_pairs(rows: np.ndarray, beta: float, rule: str = "binary64_in_pairs") -> np.ndarray:
    """beta must be 1.

    >>> RULES["binary64_in_pairs"].softmax(np.float64([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        powers = _powers_in_pairs(rows, rule)[1]
        return np.asarray(powers / _sums_of_pairs(powers))


def _log_softmax_in_pairs(rows: np.ndarray, rule: str = "binary64_in_pairs") -> np.ndarray:
    """(x - max) - log(sum of exp(x - max)).

    >>> RULES["binary64_in_pairs"].log_softmax(np.float64([[0, 0]])).tolist()
    [[-0.6931471805599453, -0.6931471805599453]]
    """
    with np.errstate(all="ignore"):
        differences, powers = _powers_in_pairs(rows, rule)
        # A sum that is NaN counts as the least one.
        sums = np.fmax(_sums_of_pairs(powers)[:, 0], np.float64(np.float32(1e-20)))
        return np.asarray(differences - rational_wide.library_log(sums)[:, None])


def _softmax_of_fours(rows: np.ndarray, beta: float, fused: bool) -> np.ndarray:
    """e * f32(1 / sum): exponentials of all rows, which lie behind each other, in fours.

    >>> RULES["binary32_rational_lanes_4"].softmax(np.float32([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        differences = (rows - rows.max(axis=1, keepdims=True)) * np.float32(beta)
        powers = real_function.EXPONENTIALS[fused](differences.reshape(-1)).reshape(rows.shape)
        rule = order.RULES["four_lanes_twice_by_neighbours" if fused else "four_lanes_twice"]
        assert rule.sums is not None
        sums = rule.sums(powers)[:, None]
        return np.where(np.isnan(sums), _first_nan(rows), powers * (np.float32(1) / sums))


def _log_softmax_of_fours(rows: np.ndarray, fused: bool) -> np.ndarray:
    """(x - max) - log(sum of exp(x - max)): exponentials and sums of every row begin with a vector.

    >>> RULES["binary32_rational_lanes_4"].log_softmax(np.float32([[0, 0]])).tolist()
    [[-0.6931471824645996, -0.6931471824645996]]
    """
    with np.errstate(all="ignore"):
        differences = rows - rows.max(axis=1, keepdims=True)
        whole = rows.shape[1] // 4 * 4
        exponential = real_function.EXPONENTIALS[fused]
        powers = np.empty_like(differences)
        for function, part in ((exponential, np.s_[:, :whole]), (elementary.exp, np.s_[:, whole:])):
            powers[part] = function(differences[part].reshape(-1)).reshape(powers[part].shape)
        sums = order.four_lanes_of_group(powers, 0, fused)[:, None]
        return np.where(np.isnan(sums), _first_nan(rows), differences - elementary.log(sums))


RULES: dict[str, RealSoftmaxRule] = {
    "binary32_in_order": RealSoftmaxRule(
        _softmax,
        _log_softmax,
        "e = exp((x - max) * beta), sums of e from the first element to the last, e / sum; x - max - log(sum)",
        "docs/facts/litert.md 2.5 (for integers); the reference kernels for real numbers, read and run",
    ),
    "binary32_fused_16_lanes": RealSoftmaxRule(
        _softmax_16_lanes,
        _no_logarithm,
        "e = exp_on_negative(x - max) of arithmetic/fused, s = sums of e in 16 lanes (two sets of them in turn while "
        "64 elements are left), lanes folded in halves, e * f32(1 / s)",
        "docs/facts/xnnpack.md 3.7, verified by running",
    ),
    "binary32_fused_8_lanes": RealSoftmaxRule(
        _softmax_8_lanes,
        _no_logarithm,
        "the same with sums of e in 8 lanes (two sets of them in turn while 32 elements are left); max as extreme = "
        "parts_in_8_lanes, a sum that is NaN is the result",
        "docs/facts/xnnpack.md 3.7, verified by running",
    ),
    "binary32_fused_4_lanes": RealSoftmaxRule(
        _softmax_of_64ths,
        _no_logarithm,
        "e = exp_on_negative_of_64ths(x - max) of arithmetic/fused, s = sums of e in 4 lanes, folded by neighbours, "
        "then a pair's sum and a single one, e * f32(1 / s)",
        "docs/facts/xnnpack.md 3.20, verified by running",
    ),
    "binary32_short_8_lanes": RealSoftmaxRule(
        _softmax_short,
        _no_logarithm,
        "of binary16: e = exp_on_negative(x - max) of arithmetic/short_functions, s = sums of e in 8 lanes, folded to "
        "4, with what is left, and folded; f16(e) * f16(1 / s)",
        "docs/facts/xnnpack.md 3.9, verified by running",
    ),
    "binary16_fused_8_lanes": RealSoftmaxRule(
        _softmax_of_halves,
        _no_logarithm,
        "softmax of arithmetic/flushed_half_functions: operations rounded to 16 bits, sums of e in 8 lanes of binary32",
        "docs/facts/xnnpack.md 3.22, verified by running",
    ),
    "rounded_once": RealSoftmaxRule(
        _softmax_rounded_once,
        _log_softmax_rounded_once,
        "e^x / sum of e^x, and its logarithm, as real numbers, rounded once to binary32",
        "the definition of correct rounding; decimal arithmetic with 260 digits",
    ),
    "binary32_polynomial_16_lanes": RealSoftmaxRule(
        partial(_softmax_one_set, width=16),
        partial(_log_softmax_one_set, width=16),
        "e = exp(x - max) of arithmetic/fused_polynomials, s = sums of e in 16 lanes, l + (l + 8), neighbours, "
        "quarters; "
        "e * f32(1 / s), (x - max) - log(s)",
        "a library of vector kernels for x86-64, read; verified by running",
        powers=partial(_powers_in_one_set, width=16),
    ),
    "binary32_polynomial_8_lanes": RealSoftmaxRule(
        partial(_softmax_one_set, width=8),
        partial(_log_softmax_one_set, width=8),
        "the same with sums of e in 8 lanes, neighbours, quarters; e is 0 where the rounded (x - max) log2(e) is "
        "below -126",
        "the same library on processors with vectors of 256 bits; verified by running",
        powers=partial(_powers_in_one_set, width=8),
    ),
    "binary32_polynomial_4_lanes": RealSoftmaxRule(
        partial(_softmax_one_set, width=4),
        partial(_log_softmax_one_set, width=4),
        "the same with sums of e in 4 lanes, neighbours, then what is left one by one",
        "the same library on aarch64, read; verified by running",
        powers=partial(_powers_in_one_set, width=4),
    ),
    "binary32_rational_lanes_4": RealSoftmaxRule(
        partial(_softmax_of_fours, fused=False),
        partial(_log_softmax_of_fours, fused=False),
        "e = exp((x - max) * beta), in fours of arithmetic/rational, behind them of arithmetic/elementary: for softmax "
        "fours of all rows, which lie behind each other, and sums as order = four_lanes_twice; for log_softmax fours "
        "and vectors of each row; e * f32(1 / sum), (x - max) - log(sum)",
        "docs/facts/litert.md 2.8, run: rows of every length from 1 to 70",
        whole=True,
    ),
    "binary32_fused_rational_lanes_4": RealSoftmaxRule(
        partial(_softmax_of_fours, fused=True),
        partial(_log_softmax_of_fours, fused=True),
        "the same with exponentials whose products and sums are rounded once, and sums as order = "
        "four_lanes_twice_by_neighbours",
        "docs/facts/litert.md 2.8, run on aarch64: rows of every length from 1 to 70",
        whole=True,
    ),
    "binary64_in_pairs": RealSoftmaxRule(
        _softmax_in_pairs,
        _log_softmax_in_pairs,
        "e = exp(x - max) of arithmetic/rational_wide, an odd last one of all by the C library; s = sums of e in 2 "
        "lanes (of a single row in four sets of them in turn), then what is left; e / s, (x - max) - log(s)",
        "one runtime's kernel and a linear algebra library, read; verified by running",
        whole=True,
    ),
    "binary64_in_joined_pairs": RealSoftmaxRule(
        partial(_softmax_in_pairs, rule="binary64_in_joined_pairs"),
        partial(_log_softmax_in_pairs, rule="binary64_in_joined_pairs"),
        "as binary64_in_pairs, with fused multiply-adds in exponentials",
        "the same kernel on aarch64; verified by running",
        whole=True,
    ),
}

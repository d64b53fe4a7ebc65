"""Slot `real_sum`: sums of real numbers and functions of them, in binary32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from ..arithmetic.correct_rounding import Exact, decimal, fraction, in_digits, settle

# (rows [outputs, summands], divisor of each output or None) to binary32 [outputs].
Reduction = Callable[[np.ndarray, "np.ndarray | None"], np.ndarray]


@dataclass(frozen=True)
class RealSumRule:
    """`reductions`: what is made of the rows of a binary32 matrix, by name.

    ``sum`` (over a divisor, where one is given), ``sum_square``, ``l1``, ``l2``, ``log_sum``, ``log_sum_exp`` and
    ``prod``.
    """

    reductions: Mapping[str, Reduction]
    formula: str
    source: str


def _sum(rows: np.ndarray, divisor: np.ndarray | None) -> np.ndarray:
    """Exact zeros are +0.

    >>> RULES["rounded_once"].reductions["sum"](np.float32([[2**24, 1, 1], [1, 2, 4]]), np.float64([1, 3])).tolist()
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


def _sum_square(rows: np.ndarray, divisor: np.ndarray | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        value = np.square(rows.astype(np.float64)).sum(axis=1)
    return settle(
        value,
        _margin(value, rows),
        lambda place: sum((fraction(x) ** 2 for x in rows[place]), Fraction(0)),
    )


def _margin(value: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(value), np.abs(value) * ((rows.shape[1] + 64) * 2.0**-52), 0)


def _l1(rows: np.ndarray, divisor: np.ndarray | None) -> np.ndarray:
    return _sum(np.abs(rows), None)


def _l2(rows: np.ndarray, divisor: np.ndarray | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        value = np.sqrt(np.square(rows.astype(np.float64)).sum(axis=1))

    @in_digits
    def exact(place: int) -> Decimal:
        return decimal(sum((fraction(x) ** 2 for x in rows[place]), Fraction(0))).sqrt()

    return settle(value, _margin(value, rows), exact)


def _log_sum(rows: np.ndarray, divisor: np.ndarray | None) -> np.ndarray:
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


def _log_sum_exp(rows: np.ndarray, divisor: np.ndarray | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        largest = wide.max(axis=1, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(largest), largest, 0)
        sums = np.log(np.exp(wide - shift).sum(axis=1))
        value = shift[:, 0] + sums
        error = (np.abs(shift[:, 0]) + np.abs(sums) + rows.shape[1] + 64) * 2.0**-52

    @in_digits
    def exact(place: int) -> Decimal:
        return sum((decimal(x).exp() for x in rows[place] if x != -np.inf), Decimal(0)).ln()

    return settle(value, np.where(np.isfinite(value), error, 0), exact)


def _prod(rows: np.ndarray, divisor: np.ndarray | None) -> np.ndarray:
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


RULES: dict[str, RealSumRule] = {
    "rounded_once": RealSumRule(
        {
            "sum": _sum,
            "sum_square": _sum_square,
            "l1": _l1,
            "l2": _l2,
            "log_sum": _log_sum,
            "log_sum_exp": _log_sum_exp,
            "prod": _prod,
        },
        "the real result rounded once to binary32, ties to even",
        "the definition of correct rounding; fractions and decimal arithmetic with 260 digits",
    ),
}

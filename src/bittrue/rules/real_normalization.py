"""Slot `real_normalization`: rows brought to mean 0 and variance 1, then scaled and shifted, in binary32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from ..arithmetic.correct_rounding import decimal, fraction, in_digits, settle

Rows = np.ndarray


@dataclass(frozen=True)
class RealNormalizationRule:
    """Attributes:
    by_rows: (x [R, n], scale, bias, epsilon, centred) to (result, mean [R], 1 / deviation [R]); scale and bias
        broadcast over [R, n], None stands for 1 and 0; rows that are not `centred` keep their mean and are divided by
        their root mean square.
    by_given: (x, scale, bias, mean, variance, epsilon), the last ones broadcast over x.
    by_length: (x [R, n], p) to x / (sum of |x|^p)^(1/p), p = 1 or 2; rows of zeros stay.
    across: (x [n, channels, rest], size, alpha, beta, bias) to x / (bias + alpha / size * sum of the squares of
        `size` neighbouring channels)^beta.
    """

    by_rows: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
    by_given: Callable[..., np.ndarray]
    by_length: Callable[[np.ndarray, int], np.ndarray]
    across: Callable[..., np.ndarray]
    formula: str
    source: str


def _wide(array: np.ndarray | None, fallback: float, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.asarray(fallback if array is None else array, np.float64), shape)


def _finite(error: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(error), error, 0)


def _rows_rounded_once(
    x: Rows, scale: np.ndarray | None, bias: np.ndarray | None, epsilon: float, centred: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count = x.shape[1]
    unit = 2.0**-52
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        size = np.abs(wide).sum(axis=1, keepdims=True)
        mean = wide.sum(axis=1, keepdims=True) / count if centred else np.zeros((x.shape[0], 1))
        off_mean = size / count * (count + 2) * unit if centred else np.zeros((x.shape[0], 1))
        apart = wide - mean
        off_apart = off_mean + np.abs(apart) * unit
        variance = np.square(apart).sum(axis=1, keepdims=True) / count
        off_variance = (2 * np.abs(apart) * off_apart + np.square(off_apart)).sum(axis=1, keepdims=True) / count
        off_variance = off_variance + variance * (count + 4) * unit
        under = variance + epsilon
        inverse = 1 / np.sqrt(under)
        off_inverse = inverse * (off_variance / under + 4 * unit)
        scales, biases = _wide(scale, 1.0, x.shape), _wide(bias, 0.0, x.shape)
        value = apart * inverse * scales + biases
        off = np.abs(scales) * (off_apart * inverse + np.abs(apart) * off_inverse) * 1.01
        off = off + (np.abs(value) + np.abs(biases)) * 4 * unit

    @in_digits
    def moments(row: int) -> tuple[Fraction, Decimal]:
        values = [fraction(v) for v in x[row]]
        middle = sum(values, Fraction(0)) / count if centred else Fraction(0)
        spread = sum(((v - middle) ** 2 for v in values), Fraction(0)) / count
        return middle, 1 / decimal(spread + fraction(epsilon)).sqrt()

    @in_digits
    def exact(place: int) -> Decimal:
        row, column = divmod(place, count)
        middle, root = moments(row)
        scaled = decimal((fraction(x[row, column]) - middle) * fraction(scales[row, column])) * root
        return scaled + decimal(biases[row, column])

    return (
        settle(value, _finite(off), exact),
        settle(mean[:, 0], _finite(off_mean[:, 0]), lambda row: moments(row)[0]),
        settle(inverse[:, 0], _finite(off_inverse[:, 0]), lambda row: moments(row)[1]),
    )


def _given_rounded_once(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    unit = 2.0**-52
    scales, biases, means, spreads = (_wide(part, 0.0, x.shape) for part in (scale, bias, mean, variance))
    with np.errstate(all="ignore"):
        apart = x.astype(np.float64) - means
        factor = scales / np.sqrt(spreads + epsilon)
        value = apart * factor + biases
        error = np.abs(apart * factor) * 16 * unit + np.abs(value) * unit
    parts = [part.reshape(-1) for part in (x, scales, biases, means, spreads)]

    @in_digits
    def exact(place: int) -> Decimal:
        one, by, shift, middle, spread = (fraction(part[place]) for part in parts)
        return decimal((one - middle) * by) / decimal(spread + fraction(epsilon)).sqrt() + decimal(shift)

    return settle(value, _finite(error), exact)


def _length_rounded_once(x: Rows, p: int) -> np.ndarray:
    """
    >>> RULES["rounded_once"].by_length(np.float32([[3, 4], [0, 0]]), 2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        length = np.abs(wide).sum(axis=1, keepdims=True)
        if p == 2:
            length = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
        value = np.where(length == 0, wide, wide / length)
        error = np.abs(value) * ((x.shape[1] + 8) * 2.0**-52)

    @in_digits
    def exact(place: int) -> Decimal:
        row, column = divmod(place, x.shape[1])
        values = [fraction(v) for v in x[row]]
        whole = decimal(sum((abs(v) ** p for v in values), Fraction(0)))
        return decimal(values[column]) / (whole.sqrt() if p == 2 else whole)

    return settle(value, _finite(error), exact)


def neighbours(channels: int, size: int) -> list[tuple[int, int]]:
    """First channel and end of the window around every channel.

    >>> neighbours(4, 3), neighbours(3, 2)
    ([(0, 2), (0, 3), (1, 4), (2, 4)], [(0, 2), (1, 3), (2, 3)])
    """
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    return [(max(0, c - before), min(channels, c + after + 1)) for c in range(channels)]


def _across_rounded_once(x: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    windows = neighbours(x.shape[1], size)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        squares = np.square(wide)
        sums = np.stack([squares[:, first:end].sum(axis=1) for first, end in windows], axis=1)
        under = bias + alpha / size * sums
        value = wide * np.power(under, -beta)
        shares = (abs(bias) + abs(alpha) / size * sums) / np.abs(under)
        error = np.abs(value) * (abs(beta) * shares * (size + 8) + 64) * 2.0**-52

    @in_digits
    def exact(place: int) -> Decimal:
        n, c, k = (int(i) for i in np.unravel_index(place, x.shape))
        first, end = windows[c]
        found = sum((fraction(v) ** 2 for v in x[n, first:end, k]), Fraction(0))
        base = decimal(fraction(bias) + fraction(alpha) / size * found)
        return decimal(x[n, c, k]) * (-decimal(beta) * base.ln()).exp()

    return settle(value, _finite(error), exact)


RULES: dict[str, RealNormalizationRule] = {
    "rounded_once": RealNormalizationRule(
        _rows_rounded_once,
        _given_rounded_once,
        _length_rounded_once,
        _across_rounded_once,
        "the whole formula as a real number, rounded once to binary32, ties to even",
        "the definition of correct rounding; fractions and decimal arithmetic with 260 digits",
    ),
}

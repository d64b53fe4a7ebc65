"""Slot `sigmoid`: 16-bit logistic and tanh from one table of the logistic function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, powers, tables, transcendental
from ..records import dataclass

_SATURATED = 255  # first interval without a right end in the table


@dataclass(frozen=True, eq=False)
class SigmoidRule:
    """`prepare(scale, largest shift)` gives (multiplier, right shift) of the argument; the others apply the table."""

    prepare: Callable[[float, int], tuple[int, int]]
    table: Callable[[], np.ndarray]
    logistic: Callable[[np.ndarray, int, int, np.ndarray], np.ndarray]
    tanh: Callable[[np.ndarray, int, int, np.ndarray], np.ndarray]
    formula: str
    source: str


def prepare_argument(scale: float, largest_shift: int) -> tuple[int, int]:
    """(multiplier k, right shift r) so that scale * x * 3 * 2^12 ~ (k * x) / 2^r.

    A scale that counts as 2^(n - 12) with 0 <= n <= `largest_shift` gives (3 * 2^n, 0). Otherwise k is the whole part
    of scale * 12288 * 2^r with the first r in 0..31 that makes it exceed 16383.5.
    Raises OverflowError when k * x can leave 32 bits, or when k vanishes.

    >>> prepare_argument(2.0**-12, 0), prepare_argument(2.0**-11, 0), prepare_argument(2.0**-11, 1)
    ((3, 0), (24576, 12), (6, 0))
    """
    exponent, is_power = powers.nearly_power_of_two(scale)
    if is_power and 0 <= exponent + 12 <= largest_shift:
        return 3 << (exponent + 12), 0
    # Exact: a binary32 scale times 12288 needs fewer than 53 bits, doubling is exact.
    value = float(np.float32(scale)) * 4096.0 * 3.0
    right_shift = 0
    while value <= 32767.0 / 2.0 and right_shift <= 30:
        right_shift += 1
        value *= 2.0
    # |k * x| + 2^(r-1) < 2^31 for k < 2^16 without a shift, and for k < 2^15 with one.
    if value < 1 or value >= 65536:
        raise OverflowError(f"input scale {scale!r} is outside [2^-44, 5.33]")
    return int(value), right_shift


def _argument(q: np.ndarray, multiplier: int, right_shift: int) -> np.ndarray:
    return fixed_point.divide_by_power_of_two_up(fixed_point.as_s64(q) * multiplier, right_shift)


def _interpolate(magnitude: np.ndarray, table: np.ndarray, bits: int, saturated: int) -> np.ndarray:
    """Linear between table entries 2^bits apart; `saturated` from the last entry on."""
    index = magnitude >> bits
    inside = np.minimum(index, _SATURATED - 1)
    left, right = table[inside], table[inside + 1]
    value = (left << bits) + (magnitude & ((1 << bits) - 1)) * (right - left)
    return np.where(index >= _SATURATED, saturated, value)


def logistic(q: np.ndarray, multiplier: int, right_shift: int, table: np.ndarray) -> np.ndarray:
    """2^15 / (1 + exp(-x)), rounded up at ties for x >= 0 and down for x < 0; 32767 is the largest result.

    >>> [int(v) for v in logistic(np.int16([0, 1, -1, 32767, -32768]), 3, 0, tables.sigmoid_table_s16())]
    [16384, 16386, 16382, 32757, 11]
    """
    x = _argument(q, multiplier, right_shift)
    value = _interpolate(np.abs(x), table, 9, 0x7FFF << 10)
    return np.where(x >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1) >> 10


def tanh(q: np.ndarray, multiplier: int, right_shift: int, table: np.ndarray) -> np.ndarray:
    """Hyperbolic tangent times 2^15, as 2 * logistic(2 x) - 1, rounded up at ties for x >= 0 and down for x < 0.

    >>> [int(v) for v in tanh(np.int16([0, 1, -1, 32767, -32768]), 3, 0, tables.sigmoid_table_s16())]
    [0, 8, -8, 32767, -32767]
    """
    x = _argument(q, multiplier, right_shift)
    value = _interpolate(np.abs(x), table, 8, 0xFFFF << 8)
    one = 1 << 23
    return np.where(x >= 0, value - one + (1 << 7), -value + one + (1 << 7) - 1) >> 8


def _prepare_or_exponent(scale: float, largest_shift: int) -> tuple[int, int]:
    """(0, n) for a scale that counts as 2^(n - 12) with 0 <= n <= `largest_shift`, else as `prepare_argument`."""
    exponent, is_power = powers.nearly_power_of_two(scale)
    if is_power and 0 <= exponent + 12 <= largest_shift:
        return 0, exponent + 12
    return prepare_argument(scale, largest_shift)


def _logistic_by_polynomial(q: np.ndarray, multiplier: int, right_shift: int, table: np.ndarray) -> np.ndarray:
    """Symmetric around 1/2 but for the largest value, which is 32767.

    >>> rule = RULES["s16_polynomial_or_table_256"]
    >>> [int(v) for v in rule.logistic(np.int16([0, 1, -1]), 0, 0, rule.table())]
    [16384, 16384, 16383]
    """
    if multiplier:
        return logistic(q, multiplier, right_shift, table)
    return transcendental.logistic_s16(fixed_point.as_s64(q))


def _tanh_by_polynomial(q: np.ndarray, multiplier: int, right_shift: int, table: np.ndarray) -> np.ndarray:
    """Odd; the argument saturates when it is doubled.

    >>> rule = RULES["s16_polynomial_or_table_256"]
    >>> [int(v) for v in rule.tanh(np.int16([0, 1, -1]), 0, 0, rule.table())]
    [0, 8, -8]
    """
    if multiplier:
        return tanh(q, multiplier, right_shift, table)
    moved = np.clip(np.left_shift(fixed_point.as_s64(q), right_shift), fixed_point.S16_MIN, fixed_point.S16_MAX)
    return transcendental.tanh_s16(moved, 3)


RULES: dict[str, SigmoidRule] = {
    "s16_table_256_linear": SigmoidRule(
        prepare_argument,
        tables.sigmoid_table_s16,
        logistic,
        tanh,
        "argument rescaled with ties up, 256 samples of the logistic function, linear interpolation",
        "docs/facts/litert.md 2.3 (LOGISTIC and TANH of 16 bits), verified by running",
    ),
    "s16_polynomial_or_table_256": SigmoidRule(
        _prepare_or_exponent,
        tables.sigmoid_table_s16,
        _logistic_by_polynomial,
        _tanh_by_polynomial,
        "input scales that are powers of two (2^-12, for tanh 2^-11, too): exp by polynomial and a Newton reciprocal "
        "in 16-bit fixed point; else as s16_table_256_linear",
        "kernels/internal/optimized/optimized_ops.h (Logistic and Tanh of 16 bits), verified by running",
    ),
}

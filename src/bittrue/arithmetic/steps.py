"""Real multiples of integers, correctly rounded to integers of few bits: a step function of at most 1023 steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bittrue.arithmetic.fixed_point import S64, as_s64

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy.typing as npt

# Results are limited to this magnitude: more than any difference of two 8-bit numbers.
LARGEST = 511


def even_steps(real: Fraction) -> S64:
    """For q = -510..511 the smallest integer n with round_even(n * real) >= q, as far as it fits 62 bits.

    Ties to even. Domain: real > 0.

    >>> from fractions import Fraction
    >>> even_steps(Fraction(1, 2))[[510, 511, 512, 513]].tolist()  # 0, 1, 2 and 3
    [-1, 2, 3, 6]
    """
    found = []
    for q in range(1 - LARGEST, LARGEST + 1):
        numerator, denominator = (2 * q - 1) * real.denominator, 2 * real.numerator
        # The tie q - 1/2 itself goes up to q if that is even.
        found.append(-(-numerator // denominator) if q % 2 == 0 else numerator // denominator + 1)
    return np.array([min(max(n, -(2**62)), 2**62) for n in found], np.int64)


def apply_steps(n: npt.ArrayLike, steps: npt.ArrayLike) -> S64:
    """round_even(n * real), limited to -511..511.

    >>> from fractions import Fraction
    >>> apply_steps([1, 3, -1, -3, 10_000, -10_000], even_steps(Fraction(1, 2))).tolist()
    [0, 2, 0, -2, 511, -511]
    """
    return np.searchsorted(as_s64(steps), as_s64(n), side="right").astype(np.int64) - LARGEST


def nearest_even_quotient(high: npt.ArrayLike, low: npt.ArrayLike, divisor: float) -> S64:
    """round_even((high + low) / divisor) without any other rounding, limited to -2^20..2^20.

    Args:
        high, low: binary64, low being what the sum `high` of two numbers lost by rounding.
        divisor: a finite binary32 number above 0.

    The quotient t of binary64 is within two units of the true one, so only the side of the nearest half-integer h is
    open: h * divisor is exact, and so is its difference to `high` where the two are close.

    >>> nearest_even_quotient([2.5, 2.5, 3.5, 1e300], [0.0, 1e-20, 0.0, 0.0], 1.0).tolist()
    [2, 3, 4, 1048576]
    """
    high, low = np.asarray(high, np.float64), np.asarray(low, np.float64)
    with np.errstate(over="ignore"):
        quotient = np.clip(high / divisor, -(2.0**20), 2.0**20)
        half = np.floor(quotient) + 0.5
        beyond = (high - half * divisor) + low
    tie = np.where(np.floor(half) % 2 == 0, np.floor(half), np.floor(half) + 1)
    nearest = np.where(beyond < 0, np.floor(half), np.where(beyond > 0, np.floor(half) + 1, tie))
    return np.clip(nearest, -(2.0**20), 2.0**20).astype(np.int64)

"""Slot `modulo`: what division toward minus infinity leaves of real numbers, with the sign of the divisor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import plain_range

Modulo = Callable[[np.ndarray, np.ndarray], np.ndarray]


def zero_of_dividend(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact remainder of the truncated quotient, plus b (one rounding) where it is not 0 and their signs differ.

    Domain: any real numbers, NaN where b is 0. Source: run.

    >>> zero_of_dividend(np.float32([-7, -6]), np.float32([3, 3])).tolist()
    [2.0, -0.0]
    """
    with np.errstate(all="ignore"):
        left = np.fmod(a, b)
        moved = np.where((left != 0) & ((b < 0) != (left < 0)), left + b, left)
    return plain_range.with_first_nan(moved, a, b)


def zero_of_divisor(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same, but zeros have the sign of the divisor. Domain: as `zero_of_dividend`. Source: vectors.

    >>> zero_of_divisor(np.float32([-7, -6]), np.float32([3, 3])).tolist()
    [2.0, 0.0]
    """
    with np.errstate(all="ignore"):
        left = np.fmod(a, b)
        moved = np.where((left < 0) != (b < 0), left + b, left)
        return np.where(left == 0, np.copysign(a.dtype.type(0), b), moved)


RULES: dict[str, Modulo] = {"zero_of_dividend": zero_of_dividend, "zero_of_divisor": zero_of_divisor}

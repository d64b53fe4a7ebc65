"""Slot `remainder`: what is left of integers when their quotient is truncated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

RemainderRule = Callable[[np.ndarray, np.ndarray], np.ndarray]


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - trunc(a / b) * b, with the sign of a. Domain: integers of any type, b != 0. Source: the definition.

    >>> exact(np.array([-7, 2**62 + 1]), np.array([3, 2])).tolist()
    [-1, 1]
    """
    with np.errstate(all="ignore"):
        return np.fmod(a, b)


def binary64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact remainder of both numbers rounded to binary64, ties to even. Domain: as exact. Source: run.

    >>> binary64(np.array([-7, 2**62 + 1]), np.array([3, 2])).tolist()
    [-1, 0]
    """
    with np.errstate(all="ignore"):
        return np.fmod(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


RULES: dict[str, RemainderRule] = {"exact": exact, "binary64": binary64}

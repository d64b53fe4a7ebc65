"""Slot `power`: x^y of real numbers, in binary32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import elementary, rounded_functions

Power = Callable[[np.ndarray, np.ndarray, bool], np.ndarray]


def rounded_once(x: np.ndarray, y: np.ndarray, one_exponent: bool) -> np.ndarray:
    """x^y as a real number, rounded to binary32, ties to even.

    >>> rounded_once(np.float32([3, 0.1]), np.float32([3, 3]), False).tolist()
    [27.0, 0.0010000000474974513]
    """
    return rounded_functions.power(x, y)


def binary32_products_or_library(x: np.ndarray, y: np.ndarray, one_exponent: bool) -> np.ndarray:
    """f32(x * x) for an only exponent of 2, f32(f32(x * x) * x) for one of 3, else the C library's power in binary32.

    >>> binary32_products_or_library(np.float32([0.1]), np.float32([3]), True).tolist()
    [0.0010000000474974513]
    """
    with np.errstate(all="ignore"):
        if one_exponent and y.size and y.reshape(-1)[0] in (2, 3):
            square = x * x
            return square if y.reshape(-1)[0] == 2 else square * x
        return elementary.power(x, y)


RULES: dict[str, Power] = {
    "rounded_once": rounded_once,
    "binary32_products_or_library": binary32_products_or_library,
}

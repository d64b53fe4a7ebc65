"""Slot `power`: x^y of real numbers, in binary32 but where a rule says something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic import elementary, floats, rational_wide, rounded_functions
from ..records import dataclass
from . import plain_range

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PowerRule:
    """`apply(x, y, alone)`; `alone(x's shape, y's shape, result's shape)` says whether the rule treats y, an only
    exponent or one for every row, on its own. `as_stored`: operands keep their types and shapes, others come as vectors
    of binary32.
    """

    apply: Callable[[np.ndarray, np.ndarray, bool], np.ndarray]
    alone: Callable[[Shape, Shape, Shape], bool]
    formula: str
    as_stored: bool = False


def _one_of_another_shape(x: Shape, y: Shape, result: Shape) -> bool:
    return set(y) <= {1} and x != y


def _one_for_rows(x: Shape, y: Shape, result: Shape) -> bool:
    return set(y) <= {1} and bool(result) and result[-1] > 1


def _one_for_each_row(x: Shape, y: Shape, result: Shape) -> bool:
    # Last axes of one element in both count for nothing while both have another one.
    while min(len(x), len(y)) > 1 and x[-1] == y[-1] == 1:
        x, y = x[:-1], y[:-1]
    return set(y[-1:]) <= {1} and not set(x[-1:]) <= {1}


def _rounded_once(x: np.ndarray, y: np.ndarray, alone: bool) -> np.ndarray:
    """The definition of correct rounding.

    >>> _rounded_once(np.float32([3, 0.1]), np.float32([3, 3]), False).tolist()
    [27.0, 0.0010000000474974513]
    """
    return rounded_functions.power(x, y)


def _products_or_library(x: np.ndarray, y: np.ndarray, alone: bool) -> np.ndarray:
    """Squares and cubes are products.

    >>> _products_or_library(np.float32([0.1]), np.float32([3]), True).tolist()
    [0.0010000000474974513]
    """
    with np.errstate(all="ignore"):
        if not alone or not np.isin(y, (2, 3)).any():
            return elementary.power(x, y)
        square = x * x
        return np.where(y == 2, square, np.where(y == 3, square * x, elementary.power(x, y)))


def _products_or_wide_library(x: np.ndarray, y: np.ndarray, alone: bool) -> np.ndarray:
    """Squares and cubes are products in the type of x.

    >>> _products_or_wide_library(np.float64([0.1, 2]), np.float64([3]), True).tolist()
    [0.0010000000000000002, 8.0]
    """
    with np.errstate(all="ignore"):
        if not alone:
            return rational_wide.library_power(x, y).astype(x.dtype)
        a, b = np.broadcast_arrays(x, y)
        square = a * a
        found = np.where(b == 2, square, square * a)
        others = (b != 2) & (b != 3)
        found[others] = rational_wide.library_power(a[others], b[others]).astype(x.dtype)
        return found


def _library(x: np.ndarray, y: np.ndarray, alone: bool) -> np.ndarray:
    """A cube that rounded products would give as 14.52340316772461.

    >>> _library(np.float32([2.4398108]), np.float32([3]), True).tolist()
    [14.523404121398926]
    """
    return elementary.power(x, y)


def _near_integer(y: np.float32) -> int:
    """The integer of 1 or more that fits 32 bits and is within 1e-5 of y, else 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        nearest = int(floats.truncate_to_s32(floats.round_away(np.float32(y))))
        near = abs(y - np.float32(nearest)) < np.float32(1e-5)
    return nearest if near and nearest >= 1 else 0


def _finite_products_or_library(x: np.ndarray, y: np.ndarray, alone: bool) -> np.ndarray:
    """Exponents that are integers, or nearly so, are products.

    >>> _finite_products_or_library(np.float32([1e20, 3]), np.float32([2.000001, 2.000001]), True).tolist()
    [3.4028234663852886e+38, 9.0]
    """
    exponent = _near_integer(y.reshape(-1)[0]) if alone and y.size else 0
    if not exponent:
        return elementary.power(x, y)
    low, high = plain_range.type_limits("none", x.dtype)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return plain_range.clamp(plain_range.with_first_nan(a * b, a, b), low, high)

    result = x
    for bit in range(exponent.bit_length() - 2, -1, -1):
        result = product(result, result)
        if exponent >> bit & 1:
            result = product(x, result)
    return result


def _of_integers(x: np.ndarray, y: np.ndarray, alone: bool, limited: bool = False) -> np.ndarray:
    """Squares and cubes wrap; what leaves the type becomes its lowest value, or is `limited` to it. Domain: signed
    integers x.

    >>> _of_integers(np.int32([3, -2, 10, 2]), np.int32([3, -1, 10, 0]), False).tolist()
    [27, 0, -2147483648, 1]
    >>> _of_integers(np.int32([10, -10, -10]), np.float32([10, 11, 0.5]), False, limited=True).tolist()
    [2147483647, -2147483648, 0]
    """
    least = int(np.iinfo(x.dtype).min)
    a, b = np.broadcast_arrays(x, y)
    powers = rational_wide.library_power(a, b)
    inside = (powers >= least) & (powers < -float(least))
    beyond = np.where(powers > 0, -1 - least, np.where(np.isnan(powers), 0, least)) if limited else least
    found = np.where(inside, np.where(inside, powers, 0.0).astype(x.dtype), np.asarray(beyond).astype(x.dtype))
    if not alone or not np.isin(y, (2, 3)).any():
        return found
    with np.errstate(over="ignore"):
        return np.where(b == 2, a * a, np.where(b == 3, a * a * a, found))


RULES: dict[str, PowerRule] = {
    "library": PowerRule(_library, lambda x, y, result: False, "the C library's power in binary32"),
    "rounded_once": PowerRule(_rounded_once, _one_for_rows, "x^y as a real number, rounded to binary32, ties to even"),
    "binary32_products_or_library": PowerRule(
        _products_or_library,
        _one_for_each_row,
        "f32(x * x) for an exponent of 2 that a row has for all its elements, f32(f32(x * x) * x) for one of 3, else "
        "the C library's power in binary32",
    ),
    "binary64_products_or_library": PowerRule(
        _products_or_wide_library,
        _one_for_each_row,
        "x * x for an exponent of 2 that a row has for all its elements, x * x * x for one of 3, in the type of x; "
        "else the C library's power in binary64, rounded to that type",
        as_stored=True,
    ),
    "integers_by_binary64": PowerRule(
        _of_integers,
        _one_for_each_row,
        "x * x for an exponent of 2 that a row has for all its elements, x * x * x for one of 3, both wrapping; else "
        "the C library's power in binary64 without its fraction, the type's lowest value where that does not fit",
        as_stored=True,
    ),
    "integers_by_binary64_limited": PowerRule(
        partial(_of_integers, limited=True),
        _one_for_each_row,
        "as integers_by_binary64, but powers are limited to the type, and what is no number is 0",
        as_stored=True,
    ),
    "finite_products_or_library": PowerRule(
        _finite_products_or_library,
        _one_of_another_shape,
        "an only exponent within 1e-5 of an integer of 1 or more: products from its highest bit on, each one rounded "
        "and limited to finite numbers; else the C library's power in binary32",
    ),
}

"""Exact integer matrix products through a float matrix library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.fixed_point import as_s64

if TYPE_CHECKING:
    import numpy.typing as npt


def product_type(bound: int) -> np.dtype[Any]:
    """Return the type in which `exact_matmul` works for this bound, so that callers can prepare factors in it.

    >>> [product_type(bound).name for bound in (2**24 - 1, 2**24, 2**53)]
    ['float32', 'float64', 'int64']
    """
    return np.dtype(np.float32 if bound < 1 << 24 else np.float64 if bound < 1 << 53 else np.int64)


def exact_matmul(a: npt.ArrayLike, b: npt.ArrayLike, bound: int) -> npt.NDArray[Any]:
    """Return a[..., M, K] @ b[..., K, N] of integers, exact, computed in the fastest sufficient type.

    `bound` is a proven maximum of sum_k |a[m, k]| * |b[k, n]| over all m, n. The result is a binary32 array for
    bound < 2^24, a binary64 array for bound < 2^53, else int64 (which wraps modulo 2^64); floats hold exact integers
    (possibly -0.0), the caller converts them. Arguments may be integers or integral floats, for example packed weights
    that are binary32 already and are then used without a copy.

    Why exact: every product and every partial sum, in any order, with or without fused multiply-add, is an integer of
    magnitude <= bound, and binary32 (binary64) holds all integers up to 2^24 (2^53), so no operation rounds. A factor
    too large to be held meets only zeros, else its product would exceed bound; zero times its neighbour is zero.
    This needs a library that multiplies and adds (not Strassen's method, whose differences could exceed bound).

    No ties, no saturation. Errors: ValueError for a negative bound.
    Source: IEEE 754-2019, 2.1 and 4.3 (exact results are not rounded), read.

    >>> exact_matmul([[127, -128]], [[127], [-128]], 2 * 128 * 128)
    array([[32513.]], dtype=float32)
    >>> exact_matmul([[2**30, 1]], [[2**30], [1]], 2**60 + 1)
    array([[1152921504606846977]])
    """
    if bound < 0:
        raise ValueError(f"bound must not be negative, found {bound}")
    float_type = product_type(bound)
    if float_type.kind == "f":
        return np.asarray(np.matmul(np.asarray(a, dtype=float_type), np.asarray(b, dtype=float_type)))
    return np.asarray(np.matmul(_integers(a), _integers(b)))


def _integers(x: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(x)
    return array.astype(np.int64) if array.dtype.kind == "f" else as_s64(array)

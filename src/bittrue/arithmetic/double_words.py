"""Powers with one exponent for all numbers, by logarithms that are unevaluated sums of two binary32 numbers.

Every operation is rounded to binary32 (ties to even). None is fused; with `joined` polynomials are, and products of two
numbers have lost their second word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from bittrue.arithmetic.floats import fused_multiply_add
from bittrue.arithmetic.rational import EVERY_BIT, exp

if TYPE_CHECKING:
    import numpy.typing as npt

F32 = np.ndarray[Any, np.dtype[Any]]
Pair = tuple[F32, F32]

_f32 = np.float32
_LN2, _ROOT_OF_HALF, _BELOW_HALF = _f32(0.693147180559945309), _f32(0.707106781186547524), _f32(0.49999997)
# log2(1 + x) / x in [sqrt(1/2) - 1, sqrt(2) - 1], the highest power first; the last two are double words.
_LOG2 = tuple(
    _f32(c)
    for c in (
        9.7010828554630279541015625e-02,
        -1.6896486282348632812500000e-01,
        1.7200836539268493652343750e-01,
        -1.7892272770404815673828125e-01,
        2.0505344867706298828125000e-01,
        -2.4046677350997924804687500e-01,
        2.8857553005218505859375000e-01,
        -3.6067414283752441406250000e-01,
        4.8089790344238281250000000e-01,
    )
)
_LAST = (-7.2134751588268664068692714863573e-01, 1.442695041742110273474963832995854)


def _sum(x: F32, y: F32) -> Pair:
    """x + y, where x has the larger exponent: the sum and its error."""
    total = x + y
    return total, y - (total - x)


def _sum_of_pairs(x: Pair, y: Pair) -> Pair:
    total, rest = _sum(x[0], y[0])
    return _sum(total, (y[1] + rest) + x[1])


def _product(x: F32, y: F32, joined: bool) -> Pair:
    """x y and its error, both exact; `joined`: no error."""
    product = x * y
    if joined:
        return product, np.zeros_like(product)
    return product, (x.astype(np.float64) * y - product).astype(np.float32)


def _product_of_pair(x: Pair, y: F32, joined: bool) -> Pair:
    high, low = _product(x[0], y, joined)
    total, rest = _sum(high, x[1] * y)
    return _sum(total, rest + low)


def _log2(m: F32, joined: bool) -> Pair:
    """Domain: sqrt(1/2) <= m < sqrt(2)."""
    x = m - _f32(1)
    p = np.full_like(x, _LOG2[0])
    for c in _LOG2[1:]:
        p = fused_multiply_add(p, x, c) if joined else p * x + c
    pair = _product(x, p, joined)
    for wide in _LAST:
        high = _f32(wide)
        constant = np.full_like(x, high), np.full_like(x, _f32(wide - float(high)))
        pair = _product_of_pair(_sum_of_pairs(constant, pair), x, joined)
    return pair


def _nearest(x: F32) -> F32:
    """The nearest integer, ties away from zero."""
    return np.trunc(x + np.copysign(_BELOW_HALF, x))


def _power_of_positive(x: F32, exponent: np.float32, joined: bool) -> F32:
    """2^(y log2 x) for finite x > 0."""
    y = np.full_like(x, exponent)
    m, whole = np.frexp(x)
    low = m < _ROOT_OF_HALF
    m, e = np.where(low, m * _f32(2), m), (whole - low).astype(np.float32)
    high, rest = _sum_of_pairs(_product(e, y, joined), _product_of_pair(_log2(m, joined), y, joined))
    n = _nearest(high)
    r = (high - n) + rest
    more = _nearest(r)
    n = np.clip(n + more, -400, 400)
    return np.ldexp(exp(_LN2 * (r - more), joined), np.where(np.isnan(n), 0, n).astype(np.int32))


def _products(x: F32, exponent: int) -> F32:
    """By squares, of the reciprocal for negative exponents."""
    result, rest, count = np.ones_like(x), _f32(1) / x if exponent < 0 else x, abs(exponent)
    while count > 1:
        if count % 2:
            result = result * rest
        rest, count = rest * rest, count // 2
    return result * rest if count else result


def power(x: npt.ArrayLike, exponent: SupportsFloat, joined: bool = False) -> F32:
    """x^y for one exponent y, a binary32 number: products for integers y from -3 to 7, else 2^(y log2 x).

    Off by up to 3 units, 5 if `joined`. Signs, zeros and infinities as in C's pow; NaN stays, what is undefined has all
    bits. Domain: |y| < 2^20.
    Source: a linear algebra library's vector power without fused multiply-adds, and `joined` as its build for aarch64
    has it; read; verified by running.

    >>> power([4.0, 0.0, -1.0, 2.0], -0.5).tolist()
    [0.5, inf, nan, 0.7071067690849304]
    >>> [power([1000.0], -1.3, joined).tolist() for joined in (False, True)]
    [[0.00012589257676154375], [0.00012589253310579807]]
    """
    x, y = np.atleast_1d(np.asarray(x, np.float32)), _f32(float(exponent))
    with np.errstate(all="ignore"):
        if y == np.trunc(y) and -3 <= y <= 7:
            return _products(x, int(y))
        size = np.abs(x)
        ordinary = (size > 0) & (size < np.inf)
        result = _power_of_positive(np.where(ordinary, size, _f32(1)), y, joined)
        result = np.where(ordinary, result, np.where((size == 0) == (y < 0), _f32(np.inf), _f32(0)))
        if y == np.trunc(y):
            result = np.where(np.signbit(x) & (y % 2 == 1), -result, result)
            return np.where(np.isnan(x), _f32(np.nan), result)
        return np.where(np.isnan(x), x, np.where((x < 0) & ordinary, EVERY_BIT, result))

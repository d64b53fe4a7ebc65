"""Circular and hyperbolic functions and their inverses in binary32, pinned to the bit as `elementary` pins others.

All follow the GNU C library 2.36 (after fdlibm), read, and are compared with it: sequences of IEEE operations, none of
them fused unless `joined`, which is what `elementary` says. NaN keeps its payload and becomes quiet; what has no result
is a NaN: the positive one of asin and acos, else that of 0 / 0, which x86-64 gives a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittrue.arithmetic.elementary import (
    NEGATIVE_NAN,
    bits_of,
    exp,
    expm1,
    from_bits,
    horner,
    log,
    log1p,
    multiply_add,
    on_vectors,
    quarter_turns,
    without_value,
)

F32 = np.ndarray[Any, np.dtype[Any]]

_f32 = np.float32
_ONE, _TWO, _HALF = _f32(1), _f32(2), _f32(0.5)
_LN2 = _f32(6.9314718246e-01)


def _numbers(*values: float) -> tuple[np.float32, ...]:
    return tuple(map(_f32, values))


def _cut(x: F32) -> F32:
    """Without the last 12 bits."""
    return from_bits(bits_of(x) & 0xFFFFF000)


def _settled(x: F32, within: np.ndarray[Any, np.dtype[np.bool_]], result: F32, outside: np.float32) -> F32:
    """`outside` for what is not within the domain."""
    return np.where(np.isnan(x), x + x, np.where(within, result, outside))


@on_vectors
def cosh(x: F32, joined: bool = False) -> F32:
    """(e^x + e^-x) / 2, by e^|x| - 1 below ln(2) / 2, by e^(|x| / 2) near the largest number.

    >>> cosh([0.0, -1.0, 30.0, 89.0]).tolist()
    [1.0, 1.5430805683135986, 5343237111808.0, 2.2448063889081578e+38]
    """
    size, magnitude = np.abs(x), bits_of(np.abs(x))
    t = expm1(np.where(magnitude < 0x3EB17218, size, _f32(0)), joined=joined)
    near = _ONE + (t * t) / ((_ONE + t) + (_ONE + t))
    e = exp(size)
    root = exp(_HALF * size)
    large = np.where(magnitude < 0x42B17180, _HALF * e, (_HALF * root) * root)
    result = np.where(magnitude < 0x3EB17218, near, np.where(magnitude < 0x41B00000, _HALF * e + _HALF / e, large))
    result = np.where(magnitude < 0x24000000, _ONE, result)
    return np.where(magnitude > 0x42B2D4FC, np.where(np.isnan(x), x + x, _f32(np.inf)), result)


@on_vectors
def sinh(x: F32, joined: bool = False) -> F32:
    """(e^x - e^-x) / 2, by t = e^|x| - 1 below 22, by e^(|x| / 2) near the largest number.

    >>> sinh([0.0, -1.0, 30.0, 89.0]).tolist()
    [0.0, -1.175201177597046, 5343237111808.0, 2.2448063889081578e+38]
    """
    size, magnitude = np.abs(x), bits_of(np.abs(x))
    half = np.copysign(_HALF, x)
    t = expm1(np.where(magnitude < 0x41B00000, size, _f32(0)), joined=joined)
    small = np.where(magnitude < 0x3F800000, half * (_TWO * t - t * t / (t + _ONE)), half * (t + t / (t + _ONE)))
    root = exp(_HALF * size)
    large = np.where(magnitude < 0x42B17180, half * exp(size), (half * root) * root)
    result = np.where(magnitude < 0x41B00000, small, large)
    result = np.where(magnitude < 0x31800000, x, result)
    beyond = np.where(np.isnan(x), x + x, np.copysign(_f32(np.inf), x))
    return np.where(magnitude > 0x42B2D4FC, beyond, result)


@on_vectors
def asinh(x: F32, joined: bool = False) -> F32:
    """ln(|x| + sqrt(x^2 + 1)) with the sign of x: log1p up to 2, ln(2 |x|) beyond 2^14.

    >>> asinh([0.0, -1.0, 100.0, 1e30]).tolist()
    [0.0, -0.8813735842704773, 5.298342227935791, 69.77069854736328]
    """
    size, magnitude = np.abs(x), bits_of(np.abs(x))
    square = size * size
    near = log1p(size + square / (_ONE + np.sqrt(_ONE + square)), joined=joined)
    middle = log(_TWO * size + _ONE / (np.sqrt(square + _ONE) + size))
    result = np.where(magnitude > 0x47000000, log(size) + _LN2, np.where(magnitude > 0x40000000, middle, near))
    result = np.where(magnitude < 0x38000000, x, np.copysign(result, x))
    return np.where(magnitude >= 0x7F800000, x + x, result)


@on_vectors
def acosh(x: F32, joined: bool = False) -> F32:
    """ln(x + sqrt(x^2 - 1)) from 1 on: log1p up to 2, ln(2 x) from 2^28 on.

    >>> acosh([1.0, 1.5, 100.0, 1e30]).tolist()
    [0.0, 0.9624236822128296, 5.29829216003418, 69.77069854736328]
    """
    within = x >= _ONE
    t = x - _ONE
    near = log1p(np.where(within, t + np.sqrt(_TWO * t + t * t), _ONE), joined=joined)
    middle = log(_TWO * x - _ONE / (x + np.sqrt(multiply_add(joined)(x, x, -_ONE))))
    result = np.where(bits_of(x) > 0x40000000, middle, near)
    result = np.where(x >= _f32(2.0**28), log(x) + _LN2, result)
    result = np.where(x == _ONE, _f32(0), np.where(np.isinf(x), x, result))
    return _settled(x, within, result, without_value(joined))


@on_vectors
def atanh(x: F32, joined: bool = False) -> F32:
    """ln((1 + |x|) / (1 - |x|)) / 2 with the sign of x, by log1p.

    >>> atanh([0.0, -0.25, 0.75, 1.0]).tolist()
    [0.0, -0.2554128170013428, 0.9729551076889038, inf]
    """
    size = np.abs(x)
    inner = np.where(size < _ONE, size, _f32(0))
    double = inner + inner
    near = log1p(double + double * inner / (_ONE - inner), joined=joined)
    far = log1p(double / (_ONE - inner), joined=joined)
    result = _HALF * np.where(inner < _HALF, near, far)
    result = np.copysign(np.where(size == _ONE, _f32(np.inf), result), x)
    return _settled(x, size <= _ONE, np.where(size < _f32(2.0**-28), x, result), without_value(joined))


_ASIN = _numbers(1.666675248e-1, 7.495297643e-2, 4.547037598e-2, 2.417951451e-2, 4.216630880e-2)
_ASIN_HIGH, _ASIN_LOW = _numbers(1.57079637050628662109375, -4.37113900018624283e-8)
_QUARTER_PI = _f32(0.785398185253143310546875)


@on_vectors
def asin(x: F32, joined: bool = False) -> F32:
    """Arc sine: a polynomial below 1/2; beyond, pi / 2 less twice that of sqrt((1 - |x|) / 2), in parts below 0.975.

    >>> asin([0.0, -0.25, 0.75, 0.99, 1.0]).tolist()
    [0.0, -0.252680242061615, 0.8480620980262756, 1.4292569160461426, 1.5707963705062866]
    """
    size, magnitude = np.abs(x), bits_of(np.abs(x))
    t = np.where(magnitude < 0x3F000000, x * x, (_ONE - size) * _HALF)
    fma = multiply_add(joined)
    p = t * horner(t, *_ASIN, joined=joined)
    root = np.sqrt(np.where(magnitude <= 0x3F800000, t, _ONE))
    close = _ASIN_HIGH - (_TWO * fma(root, p, root) - _ASIN_LOW)
    w = _cut(root)
    c = fma(-w, w, t) / (root + w)
    split = _QUARTER_PI - (fma(_TWO * root, p, -(_ASIN_LOW - _TWO * c)) - (_QUARTER_PI - _TWO * w))
    far = np.copysign(np.where(magnitude >= 0x3F79999A, close, split), x)
    result = np.where(magnitude < 0x3F000000, fma(x, p, x), far)
    result = np.where(magnitude < 0x32000000, x, result)
    result = np.where(magnitude == 0x3F800000, x * _ASIN_HIGH + x * _ASIN_LOW, result)
    return _settled(x, magnitude <= 0x3F800000, result, -NEGATIVE_NAN)


_ACOS_TOP = _numbers(
    1.6666667163e-01, -3.2556581497e-01, 2.0121252537e-01, -4.0055535734e-02, 7.9153501429e-04, 3.4793309169e-05
)
_ACOS_BOTTOM = _numbers(1, -2.4033949375e00, 2.0209457874e00, -6.8828397989e-01, 7.7038154006e-02)
_ACOS_HIGH, _ACOS_LOW, _PI = _numbers(1.5707962513e00, 7.5497894159e-08, 3.1415925026e00)


@on_vectors
def acos(x: F32, joined: bool = False) -> F32:
    """A quotient of polynomials below 1/2; beyond, 2 asin(sqrt((1 - |x|) / 2)), from pi for negative numbers.

    >>> acos([0.0, -0.25, 0.75, -0.99, 1.0]).tolist()
    [1.5707963705062866, 1.8234765529632568, 0.722734272480011, 3.0000531673431396, 0.0]
    """
    magnitude = bits_of(np.abs(x))
    near = magnitude < 0x3F000000
    z = np.where(near, x * x, np.where(x < 0, _ONE + x, _ONE - x) * _HALF)
    fma = multiply_add(joined)
    ratio = z * horner(z, *_ACOS_TOP, joined=joined) / horner(z, *_ACOS_BOTTOM, joined=joined)
    root = np.sqrt(np.where(magnitude <= 0x3F800000, z, _ONE))
    high = _cut(root)
    low = fma(-high, high, z) / (root + high)
    behind = _PI - _TWO * (root + fma(ratio, root, -_ACOS_LOW))
    before = _TWO * (high + fma(ratio, root, low))
    result = np.where(near, _ACOS_HIGH - (x - fma(-x, ratio, _ACOS_LOW)), np.where(x < 0, behind, before))
    result = np.where(magnitude <= 0x23000000, _ACOS_HIGH + _ACOS_LOW, result)
    end = np.where(x < 0, _PI + _TWO * _ACOS_LOW, _f32(0))
    return _settled(x, magnitude <= 0x3F800000, np.where(magnitude == 0x3F800000, end, result), -NEGATIVE_NAN)


_TAN = _numbers(
    3.3333334327e-01, 1.3333334029e-01, 5.3968254477e-02, 2.1869488060e-02, 8.8632395491e-03, 3.5920790397e-03,
    1.4562094584e-03, 5.8804126456e-04, 2.4646313977e-04, 7.8179444245e-05, 7.1407252108e-05, -1.8558637748e-05,
    2.5907305826e-05,
)  # fmt: skip
_HALF_PI = float.fromhex("0x1.921fb54442d18p0")
_TAN_PI, _TAN_PI_LOW = _numbers(7.8539812565e-01, 3.7748947079e-08)


def _tangent(x: F32, y: F32, odd: np.ndarray[Any, np.dtype[np.bool_]], joined: bool) -> F32:
    """tan(x + y) for |x| up to pi / 4, or -1 / tan(x + y) where `odd`."""
    original, magnitude, fma = x, bits_of(np.abs(x)), multiply_add(joined)
    wide = magnitude >= 0x3F2CA140
    sign, way = np.where(np.signbit(x), _f32(-1), _ONE), np.where(odd, _f32(-1), _ONE)
    x = np.where(wide, (_TAN_PI - sign * x) + (_TAN_PI_LOW - sign * y), x)
    y = np.where(wide, _f32(0), y)
    edge = sign * way * (_ONE - _TWO * way * x)
    z = x * x
    w = z * z
    s = z * x
    r = fma(z, horner(w, *_TAN[2::2], joined=joined), horner(w, *_TAN[1::2], joined=joined))
    r = fma(_TAN[0], s, fma(z, fma(s, r, y), y))
    w = x + r
    turned = sign * (way - _TWO * (x - (w * w / (w + way) - r)))
    z = _cut(w)
    v = r - (z - x)
    a = _f32(-1) / w
    t = _cut(a)
    inverse = fma(a, fma(t, v, fma(t, z, _ONE)), t)
    result = np.where(wide, np.where(np.abs(x) < _f32(2.0**-13), edge, turned), np.where(odd, inverse, w))
    return np.where(magnitude < 0x39000000, np.where(odd, _f32(-1) / original, original), result)


@on_vectors
def tan(x: F32, joined: bool = False) -> F32:
    """The angle less quarter turns in binary64, as a sum of two in binary32; a polynomial, or its negative inverse.

    >>> tan([0.0, 1.0, -2.0, 100.0, 1e10]).tolist()
    [0.0, 1.5574077367782593, 2.185039758682251, -0.587213933467865, -0.558349609375]
    """
    finite, size = np.isfinite(x), np.abs(x)
    n, r = quarter_turns(np.where(finite, x, _f32(0)))
    # Large angles were reduced without their sign; small ones lose their turns by one product and one difference, which
    # are rounded once where they are joined.
    wide = np.where(size < _f32(120), x, _f32(0)).astype(np.float64)
    near = r if joined else wide - np.rint((wide - r) / _HALF_PI) * _HALF_PI
    r = np.where(size < _f32(120), near, np.where(np.signbit(x), -r, r))
    small = bits_of(size) <= 0x3F490FDA
    high = np.where(small, x, r.astype(np.float32))
    low = np.where(small, _f32(0), (r - high).astype(np.float32))
    return _settled(x, finite, _tangent(high, low, ~small & (n & 1 == 1), joined), without_value(joined))

"""exp, expm1 and tanh in binary32, pinned to the bit: each is a fixed sequence of IEEE operations.

C libraries disagree about the last bit of these functions, and NumPy's own binary32 versions depend on the processor.
Here are the sequences that the GNU C library 2.36 runs, as arrays: either a short polynomial in binary64 over a table
(rounded once to binary32), or binary32 steps in a given order. Only additions, multiplications, divisions, square roots
and conversions are used, none of them fused, so the bits do not depend on the machine.

Arguments are converted to binary32; results are binary32 of the same shape. NaN keeps its payload and becomes quiet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

# NumPy's annotations lose the width of floats in most operations, so arrays of floats are declared without it.
F32 = npt.NDArray[Any]
F64 = npt.NDArray[Any]

_f32 = np.float32


def _on_vectors(function: Callable[..., F32]) -> Callable[..., F32]:
    """`function` on arrays of any shape: it sees binary32 vectors, so that no operation meets a lone scalar."""

    @wraps(function)
    def wrapper(*arguments: npt.ArrayLike) -> F32:
        arrays: Any = np.broadcast_arrays(*(np.asarray(x, np.float32) for x in arguments))
        with np.errstate(all="ignore"):
            return function(*(x.reshape(-1) for x in arrays)).reshape(arrays[0].shape)

    return wrapper


def _bits(x: F32) -> npt.NDArray[np.int64]:
    """The 32 bits of each number as an unsigned integer."""
    return x.view(np.uint32).astype(np.int64)


def _from_bits(bits: npt.NDArray[np.int64]) -> F32:
    return (bits & 0xFFFFFFFF).astype(np.uint32).view(np.float32)


def _scale(x: F32, exponent: npt.NDArray[np.int64]) -> F32:
    """x * 2^exponent by adding to the exponent field: x and the result are normal."""
    return _from_bits(_bits(x) + (exponent << 23))


# 2^(i / 32) rounded to binary64, less i / 32 in the exponent field.
# fmt: off
_POWERS = np.array([
    0x3FF0000000000000, 0x3FEFD9B0D3158574, 0x3FEFB5586CF9890F, 0x3FEF9301D0125B51,
    0x3FEF72B83C7D517B, 0x3FEF54873168B9AA, 0x3FEF387A6E756238, 0x3FEF1E9DF51FDEE1,
    0x3FEF06FE0A31B715, 0x3FEEF1A7373AA9CB, 0x3FEEDEA64C123422, 0x3FEECE086061892D,
    0x3FEEBFDAD5362A27, 0x3FEEB42B569D4F82, 0x3FEEAB07DD485429, 0x3FEEA47EB03A5585,
    0x3FEEA09E667F3BCD, 0x3FEE9F75E8EC5F74, 0x3FEEA11473EB0187, 0x3FEEA589994CCE13,
    0x3FEEACE5422AA0DB, 0x3FEEB737B0CDC5E5, 0x3FEEC49182A3F090, 0x3FEED503B23E255D,
    0x3FEEE89F995AD3AD, 0x3FEEFF76F2FB5E47, 0x3FEF199BDD85529C, 0x3FEF3720DCEF9069,
    0x3FEF5818DCFBA487, 0x3FEF7C97337B9B5F, 0x3FEFA4AFA2A490DA, 0x3FEFD0765B6E4540,
], np.int64)
# fmt: on
_POWER_COEFFICIENTS = tuple(
    float.fromhex(c) for c in ("0x1.c6af84b912394p-5", "0x1.ebfce50fac4f3p-3", "0x1.62e42ff0c52d6p-1")
)
_INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
_EXP_OVERFLOW = _f32(float.fromhex("0x1.62e42ep6"))
_EXP_UNDERFLOW = _f32(float.fromhex("-0x1.9fe368p6"))


def _power_of_two(k: F64, r: F64, unit: float) -> F64:
    """2^(k / 32) * 2^(r / (32 unit)): a table entry times a cubic polynomial. k is integral, |r| <= unit / 2."""
    index = k.astype(np.int64)
    factor = (_POWERS[index & 31] + (index << 47)).view(np.float64)
    c3, c2, c1 = (c * unit**power for c, power in zip(_POWER_COEFFICIENTS, (3, 2, 1), strict=True))
    return ((c3 * r + c2) * (r * r) + (c1 * r + 1.0)) * factor


@_on_vectors
def exp(x: F32) -> F32:
    """e^x: 2^(k / 32) * P(32 x / ln 2 - k) in binary64, rounded once to binary32; off by at most 0.502 units.

    Above 0x1.62e42ep6 infinity, below -0x1.9fe368p6 zero.
    Source: glibc 2.36 expf (after Arm's optimized routines), read; run on every binary32 number.

    >>> exp([0.0, 1.0, -1.0, 89.0, -104.0]).tolist()
    [1.0, 2.7182817459106445, 0.3678794503211975, inf, 0.0]
    """
    inside = (x >= _EXP_UNDERFLOW) & (x <= _EXP_OVERFLOW)
    scaled = np.where(inside, x, _f32(0)).astype(np.float64) * (_INVERSE_LN2 * 32)
    k = np.rint(scaled)
    result = _power_of_two(k, scaled - k, 1 / 32).astype(np.float32)
    outside = np.where(x > 0, _f32(np.inf), np.where(x < 0, _f32(0), x + x))
    return np.where(inside, result, outside)


_LN2_HIGH = _f32(6.9313812256e-01)
_LN2_LOW = _f32(9.0580006145e-06)
_EXPM1_INVERSE_LN2 = _f32(1.4426950216e00)
_EXPM1_COEFFICIENTS = tuple(
    _f32(c) for c in (-3.3333335072e-02, 1.5873016091e-03, -7.9365076090e-05, 4.0082177293e-06, -2.0109921195e-07)
)


def _horner(x: F32, *coefficients: np.float32) -> F32:
    """c0 + x (c1 + x (c2 + ...)), from the inside out."""
    result: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        result = c + x * result
    return np.asarray(result)


@_on_vectors
def expm1(x: F32) -> F32:
    """e^x - 1 in binary32 steps: x = k ln 2 + r, a rational approximation of e^r - 1, then 2^k - 1 joined in an order
    that depends on k.

    Source: glibc 2.36 expm1f (after fdlibm), read; run on every binary32 number.

    >>> expm1([0.0, 1.0, -1.0, 1e-10, 89.0, -20.0]).tolist()
    [0.0, 1.7182817459106445, -0.6321205496788025, 1.000000013351432e-10, inf, -1.0]
    """
    one, half = _f32(1), _f32(0.5)
    original, magnitude = x, _bits(np.abs(x))
    negative = np.signbit(x)
    ordinary = (magnitude < 0x42B17218) & ~(negative & (magnitude >= 0x4195B844))
    x = np.where(ordinary, x, _f32(0))
    sign = np.where(negative, _f32(-1), one)
    far = np.trunc(_EXPM1_INVERSE_LN2 * x + sign * half)
    multiple = np.where(magnitude <= 0x3EB17218, _f32(0), np.where(magnitude < 0x3F851592, sign, far))
    k = multiple.astype(np.int64)
    high, low = x - multiple * _LN2_HIGH, multiple * _LN2_LOW
    x = high - low
    correction = (high - x) - low
    # e^x - 1 for |x| <= ln(2) / 2 is x - e.
    half_x = half * x
    half_square = x * half_x
    ratio = _horner(half_square, one, *_EXPM1_COEFFICIENTS)
    t = _f32(3) - ratio * half_x
    e = half_square * ((ratio - t) / (_f32(6) - x * t))
    e = (x * (e - correction) - correction) - half_square
    # 2^k (1 + x - e) - 1; 2^-k is a normal number wherever it is used.
    inner = np.clip(k, 0, 56)
    power = _from_bits((0x7F - inner) << 23)
    small_k = _scale((one - power) - (e - x), inner)
    middle_k = _scale((x - (e + power)) + one, inner)
    other_k = _scale(one - (e - x), k) - one
    result = np.where(k < 23, small_k, middle_k)
    result = np.where((k <= -2) | (k > 56), other_k, result)
    result = np.where(k == 1, np.where(x < _f32(-0.25), _f32(-2) * (e - (x + half)), one + _f32(2) * (x - e)), result)
    result = np.where(k == -1, half * (x - e) - half, result)
    result = np.where(k == 0, np.where(magnitude < 0x33000000, original, x - e), result)
    beyond = np.where(negative, _f32(-1), _f32(np.inf))
    return np.where(ordinary, result, np.where(np.isnan(original), original + original, beyond))


@_on_vectors
def tanh(x: F32) -> F32:
    """Hyperbolic tangent: 1 - 2 / (t + 2) with t = e^(2|x|) - 1 from |x| = 1 on, -t / (t + 2) with t = e^(-2|x|) - 1
    below, the sign of x; from 22 on 1, below 2^-55 x itself. Off by up to 2 units.

    Source: glibc 2.36 tanhf (after fdlibm), read; run on every binary32 number.

    >>> tanh([0.0, 0.5, -1.0, 1e-20, 25.0]).tolist()
    [0.0, 0.46211716532707214, -0.7615941762924194, 9.999999682655225e-21, 1.0]
    """
    one, two = _f32(1), _f32(2)
    magnitude = np.abs(x)
    large = magnitude >= one
    argument = np.where(magnitude < _f32(22), magnitude, _f32(0)) * two
    t = expm1(np.where(large, argument, -argument))
    ratio = np.where(large, two, -t) / (t + two)
    result = np.where(large, one - ratio, ratio)
    result = np.copysign(np.where(magnitude < _f32(22), result, one), x)
    return np.where(magnitude < _f32(2.0**-55), x, np.where(np.isnan(x), x + x, result))

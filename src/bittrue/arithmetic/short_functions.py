"""Elementary functions of numbers that come from binary16: short polynomials in binary32, whose results are good enough
to be rounded to binary16. Fused multiply-adds, or where `apart` products and sums that are each rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittrue.arithmetic.floats import fused_multiply_add
from bittrue.arithmetic.fused import constants
from bittrue.arithmetic.processor_estimates import inverse_of_tables

F32 = np.ndarray[Any, np.dtype[Any]]

_f32 = np.float32
_ONE, _HALF, _ZERO = _f32(1), _f32(0.5), _f32(0)
# A number to which a smaller one is added so that its whole part stands in the lowest bits.
_WHOLE = _f32(1.5 * 2**23)


_NEGATIVE_NAN = np.array([0xFFC00000], np.uint32).view(np.float32)[0]


def _number(x: F32, found: F32) -> F32:
    """`found`, but a NaN stays itself, made quiet."""
    return np.where(np.isnan(x), x + x, found)


def _limited(x: F32, largest: np.float32) -> F32:
    """NaN stays."""
    below = np.where(x > largest, largest, x)
    return np.where(below < -largest, -largest, below)


def _polynomial(x: F32, coefficients: tuple[np.float32, ...], apart: bool) -> F32:
    """Highest power first."""
    result: Any = coefficients[0]
    for c in coefficients[1:]:
        result = x * result + c if apart else fused_multiply_add(x, result, c)
    return np.asarray(result)


_TANH_ODD = constants("0x1.A9p-11", "0x1.B38p-4", 1)
_TANH_EVEN = constants("0x1.CDCp-7", "0x1.C2p-2", 1)


def tanh(x: F32) -> F32:
    """x P(x^2) / Q(x^2) of degrees 5 and 4, x limited to +-4.5; rounded to binary16, fused or apart are the same.

    Source: docs/facts/xnnpack.md 3.9; every binary16 number run.

    >>> tanh(np.float32([0, 1, -1, 9])).astype(np.float16).tolist()
    [0.0, 0.76171875, -0.76171875, 1.0]
    """
    with np.errstate(all="ignore"):
        z = _limited(x, _f32(4.5))
        square = z * z
        return _number(x, _polynomial(square, _TANH_ODD, False) * z / _polynomial(square, _TANH_EVEN, False))


_LOG2_E, _ROUNDING = constants("0x1.715476p0", "0x1.8000FEp23")
_MINUS_LN2, _POWER_2, _POWER_1 = constants("-0x1.62E430p-1", "0x1.FF3A32p-2", "0x1.039E10p0")
_SMALLEST = _f32(-9.703125)


def exp_on_negative(x: F32) -> F32:
    """e^x for x <= 0: s + t s P(t) with s = 2^n, n = x log2(e) rounded, t = x - n ln 2 and P of degree 1; 0 below
    -9.703125.

    >>> exp_on_negative(np.float32([0, -1, -10])).astype(np.float16).tolist()
    [1.0, 0.367919921875, 0.0]
    """
    with np.errstate(all="ignore"):
        biased = fused_multiply_add(x, _LOG2_E, _ROUNDING)
        power = (biased.view(np.uint32) << np.uint32(23)).view(np.float32)
        t = fused_multiply_add(biased - _ROUNDING, _MINUS_LN2, x)
        found = fused_multiply_add(t * power, fused_multiply_add(t, _POWER_2, _POWER_1), power)
        return np.where(x < _SMALLEST, _ZERO, found)


def logistic(x: F32) -> F32:
    """e times an estimate of 1 / (1 + e), or 1 less that, e = `exp_on_negative` of -|x|.

    Source: docs/facts/xnnpack.md 3.9; every binary16 number run.

    >>> logistic(np.float32([0, -1, 1, 20])).astype(np.float16).tolist()
    [0.5, 0.26904296875, 0.73095703125, 1.0]
    """
    with np.errstate(all="ignore"):
        e = exp_on_negative(-np.abs(x))
        share = np.where(-np.abs(x) < _SMALLEST, _ZERO, e * inverse_of_tables(e + _ONE))
        # The sign bit of -|x| stays in a NaN.
        return np.where(np.isnan(x), -np.abs(x + x), np.where(np.signbit(x), share, _ONE - share))


_SINE = constants("-0x1.A102BCp-13", "0x1.111360p-7", "-0x1.555554p-3", 1)
_INVERSE_PI, _INVERSE_HALF_PI = constants("0x1.45F306p-2", "0x1.45F306p-1")
# Parts of pi.
_FUSED_PI = constants("0x1.921FB6p1", "-0x1.777A5Cp-24", "-0x1.EE59DAp-49")
_PI_APART = constants("0x1.92p1", "0x1.FB4p-11", "0x1.444p-23", "0x1.68Cp-38", "0x1.1A8p-53")
_HALF_PI = constants("0x1.921FB6p0")[0]


def _reduced(x: F32, inverse: np.float32, share: np.float32, apart: bool) -> tuple[F32, F32]:
    """x less a whole multiple of pi times `share`, and the number in whose lowest bits that multiple stands."""
    biased = x * inverse + _WHOLE
    whole = biased - _WHOLE
    for part in _PI_APART if apart else _FUSED_PI:
        x = x - whole * (part * share) if apart else fused_multiply_add(-whole, part * share, x)
    return x, biased


def _sine(x: F32, rest: F32, flip: npt.NDArray[np.uint32], apart: bool) -> F32:
    """The sine of `rest`, its sign changed where the uppermost bit of `flip` is set; infinities x give a NaN."""
    rest = (rest.view(np.uint32) ^ (flip & np.uint32(0x80000000))).view(np.float32)
    found = _polynomial(rest * rest, _SINE, apart) * rest
    return _number(x, np.where(np.isinf(x), _NEGATIVE_NAN, found))


def sin(x: F32, apart: bool = False) -> F32:
    """r P(r^2) of degree 7, r = x less multiples of pi, taken off in three parts (apart: five).

    Source: docs/facts/xnnpack.md 3.9; every binary16 number run.

    >>> sin(np.float32([0, 1, -1])).astype(np.float16).tolist()
    [0.0, 0.84130859375, -0.84130859375]
    """
    with np.errstate(all="ignore"):
        rest, biased = _reduced(x, _INVERSE_PI, _ONE, apart)
        return _sine(x, rest, biased.view(np.uint32) << np.uint32(31), apart)


def cos(x: F32, apart: bool = False) -> F32:
    """The same polynomial of x + pi / 2 less multiples of pi / 2; odd ones leave pi / 2 - |r|.

    >>> cos(np.float32([0, 1, -1])).astype(np.float16).tolist()
    [1.0, 0.54052734375, 0.54052734375]
    """
    with np.errstate(all="ignore"):
        rest, biased = _reduced(x, _INVERSE_HALF_PI, _HALF, apart)
        quarters = (biased + _ONE).view(np.uint32)
        rest = np.where(quarters & np.uint32(1), _HALF_PI - np.abs(rest), rest)
        return _sine(x, rest, quarters << np.uint32(30), apart)


_GELU_ODD = constants("0x1.1D21DCp-8", "0x1.2F575Cp-3", "0x1.9863E2p-1")
_GELU_EVEN = constants("0x1.4E6884p-5", "0x1.67BC2Cp-2", 1)


def gelu_by_tanh(x: F32, apart: bool = False) -> F32:
    """x / 2 (1 + z P(z^2) / Q(z^2)) of degrees 5 and 4, z = x limited to +-3.263671875 (apart: +-3.26953125).

    Source: docs/facts/xnnpack.md 3.9; every binary16 number run.

    >>> gelu_by_tanh(np.float32([0, 1, -1])).astype(np.float16).tolist()
    [0.0, 0.84130859375, -0.1588134765625]
    """
    with np.errstate(all="ignore"):
        z = _limited(x, _f32(3.26953125 if apart else 3.263671875))
        square = z * z
        quotient = z * _polynomial(square, _GELU_ODD, apart) / _polynomial(square, _GELU_EVEN, apart)
        return _number(x, x * _HALF * (quotient + _ONE))


def _half(x: F32) -> F32:
    """Rounded to binary16."""
    return x.astype(np.float16).astype(np.float32)


_EXACT_ODD = tuple(_half(np.array([4.5998394489e-03, 1.5397867560e-01, 7.9763203859e-01], np.float32)))
_EXACT_EVEN = tuple(_half(np.array([4.2862996459e-02, 3.5756936669e-01, 1], np.float32)))


def gelu(x: F32) -> F32:
    """x / 2 (1 + z P(z^2) / Q(z^2)) of degrees 5 and 4, z = x limited to +-3.5; every operation is rounded to binary16,
    a product and the sum behind it once. NaN loses its payload.

    Source: docs/facts/xnnpack.md 3.9; every binary16 number run.

    >>> gelu(np.float32([0, 1, -1])).tolist()
    [0.0, 0.841796875, -0.158447265625]
    """

    def polynomial(square: F32, coefficients: tuple[F32, ...]) -> F32:
        result: Any = coefficients[0]
        for c in coefficients[1:]:
            # In binary32 the product of two binary16 numbers is exact.
            result = _half(square * result + c)
        return np.asarray(result)

    with np.errstate(all="ignore"):
        z = _limited(x, _f32(3.5))
        square = _half(z * z)
        quotient = _half(_half(z * polynomial(square, _EXACT_ODD)) / polynomial(square, _EXACT_EVEN))
        found = _half(x * _HALF) * _half(quotient + _ONE)
        return np.where(np.isnan(x), np.copysign(_f32(np.nan), x), found)

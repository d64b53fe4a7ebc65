"""Elementary functions in binary16 as Arm processors compute them: every operation rounded once, fused ones too;
numbers and results below 2^-14 are zeros of their sign.

Binary16 numbers are given and returned in binary32. What is no number becomes the default NaN, a positive one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bittrue.arithmetic.reciprocal_estimate import estimate

F32 = np.ndarray[Any, np.dtype[Any]]

_f32 = np.float32
_ONE, _HALF, _ZERO = _f32(1), _f32(0.5), _f32(0)
_LEAST = 2.0**-14


def flush(x: npt.ArrayLike) -> F32:
    """Subnormal numbers become zeros of their sign; binary64 is rounded to binary16 behind that.

    >>> flush(np.float32([2.0**-15, -(2.0**-15), 1.0])).tolist()
    [0.0, -0.0, 1.0]
    """
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        flushed = np.where(np.abs(x) < _LEAST, np.copysign(x.dtype.type(0), x), x)
        return flushed.astype(np.float16).astype(np.float32)


def _add(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    return flush(np.add(a, b, dtype=np.float64))


def _multiply(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    return flush(np.multiply(a, b, dtype=np.float64))


def _fused(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> F32:
    """a b + c; in binary64 the sum is no tie of binary16 that it was not before."""
    return flush(np.multiply(a, b, dtype=np.float64) + np.asarray(c, np.float64))


def _halves(*bits: int) -> tuple[np.float32, ...]:
    """Binary16 numbers from their bits."""
    return tuple(np.array(bits, np.uint16).view(np.float16).astype(np.float32))


def _bits(x: F32) -> npt.NDArray[np.uint16]:
    return x.astype(np.float16).view(np.uint16)


def _of_bits(bits: npt.NDArray[np.uint16]) -> F32:
    return bits.view(np.float16).astype(np.float32)


def _polynomial(x: F32, coefficients: tuple[np.float32, ...]) -> F32:
    """Highest power first."""
    result: Any = coefficients[0]
    for c in coefficients[1:]:
        result = _fused(x, result, c)
    return np.asarray(result)


def _number(x: F32, found: F32) -> F32:
    """`found`; a NaN stays itself, made quiet, and what else is none becomes a positive one."""
    return np.where(np.isnan(x), x + x, np.where(np.isnan(found), _f32(np.nan), found))


def _quotient(x: F32, largest: np.float32, odd: tuple[np.float32, ...], even: tuple[np.float32, ...]) -> F32:
    """z P(z^2) / Q(z^2), z = x limited."""
    z = np.where(x > largest, largest, np.where(x < -largest, -largest, x))
    square = _multiply(z, z)
    return flush(_multiply(z, _polynomial(square, odd)) / _polynomial(square, even))


_TANH = _halves(0x4480)[0], _halves(0x12A4, 0x2ECE, 0x3C00), _halves(0x2337, 0x3708, 0x3C00)
_GELU = _halves(0x4300)[0], _halves(0x1CB6, 0x30ED, 0x3A62), _halves(0x297D, 0x35B9, 0x3C00)
_GELU_BY_TANH = _halves(0x4287)[0], _halves(0x1C75, 0x30BD, 0x3A62), _halves(0x293A, 0x359F, 0x3C00)


def tanh(x: F32) -> F32:
    """z P(z^2) / Q(z^2) of degrees 5 and 4, z = x limited to +-4.5.

    Source: docs/facts/xnnpack.md 3.22; every binary16 number run.

    >>> tanh(np.float32([0, 1, -1, 9])).tolist()
    [0.0, 0.76220703125, -0.76220703125, 1.0009765625]
    """
    with np.errstate(all="ignore"):
        x = flush(x)
        return _number(x, _quotient(x, *_TANH))


def gelu(x: F32, approximate: bool) -> F32:
    """x / 2 (1 + z P(z^2) / Q(z^2)) of degrees 5 and 4, z = x limited to +-3.5 (approximate: +-3.263671875).

    Source: docs/facts/xnnpack.md 3.22; every binary16 number run.

    >>> gelu(np.float32([0, 1, -1]), False).tolist()
    [0.0, 0.841796875, -0.158447265625]
    """
    with np.errstate(all="ignore"):
        x = flush(x)
        gate = _add(_quotient(x, *(_GELU_BY_TANH if approximate else _GELU)), _ONE)
        return _number(x, _multiply(_multiply(x, _HALF), gate))


_WHOLE, _LESS_WHOLE, _INVERSE_PI, _INVERSE_HALF_PI = _halves(0x6600, 0xE600, 0x3518, 0x3918)
_MINUS_PI, _MINUS_HALF_PI, _HALF_PI = _halves(0xC248, 0x93ED), _halves(0xBE48, 0x8FED), _halves(0x3E48)[0]
_SINE = _halves(0x8A84, 0x2044, 0xB155, 0x3C00)


def _reduced(x: F32, inverse: np.float32, parts: tuple[np.float32, ...]) -> tuple[F32, F32]:
    """x less a whole multiple of what `parts` add up to, and the number in whose lowest bits that multiple stands."""
    biased = _add(_multiply(x, inverse), _WHOLE)
    whole, rest = _add(biased, _LESS_WHOLE), x
    for part in parts:
        rest = _fused(whole, part, rest)
    # A NaN goes through both.
    return np.where(np.isnan(x), x + x, rest), np.where(np.isnan(x), x + x, biased)


def _sine(x: F32, rest: F32, flip: npt.NDArray[np.uint16]) -> F32:
    """The sine of `rest`, its sign changed where the uppermost bit of `flip` is set, of NaN, too."""
    rest = _of_bits(_bits(rest) ^ (flip & np.uint16(0x8000)))
    found = _multiply(_polynomial(_multiply(rest, rest), _SINE), rest)
    return np.where(np.isnan(x), rest, np.where(np.isnan(found), _f32(np.nan), found))


def sin(x: F32) -> F32:
    """r P(r^2) of degree 7, r = x less multiples of pi, taken off in two parts.

    Source: docs/facts/xnnpack.md 3.22; every binary16 number run.

    >>> sin(np.float32([0, 1, -1])).tolist()
    [0.0, 0.841796875, -0.841796875]
    """
    with np.errstate(all="ignore"):
        x = flush(x)
        rest, biased = _reduced(x, _INVERSE_PI, _MINUS_PI)
        return _sine(x, rest, _bits(biased) << np.uint16(15))


def cos(x: F32) -> F32:
    """The same polynomial of x + pi / 2 less multiples of pi / 2; odd ones leave pi / 2 - |r|.

    >>> cos(np.float32([0, 1, -1])).tolist()
    [1.0, 0.54052734375, 0.54052734375]
    """
    with np.errstate(all="ignore"):
        x = flush(x)
        rest, biased = _reduced(x, _INVERSE_HALF_PI, _MINUS_HALF_PI)
        quarters = _bits(_add(biased, _ONE))
        turned = np.where(np.isnan(rest), np.abs(rest), _add(_HALF_PI, -np.abs(rest)))
        rest = np.where(quarters & np.uint16(1), turned, rest)
        return _sine(x, rest, quarters << np.uint16(14))


_LOG2_E, _ROUNDING, _LESS_ROUNDING, _SMALLEST = _halves(0x3DC5, 0x660F, 0xE60F, 0xC8DA)
_MINUS_LN2, _POWERS = _halves(0xB98C, 0x0AF4), _halves(0x37F9, 0x3C0E)


def exp_on_negative(x: F32) -> F32:
    """e^x for x <= 0: s + t s P(t) with s = 2^n, n = x log2(e) rounded, t = x - n ln 2 in two parts and P of degree 1;
    0 below -9.703125.

    >>> exp_on_negative(np.float32([0, -1, -10])).tolist()
    [1.0, 0.367919921875, 0.0]
    """
    with np.errstate(all="ignore"):
        biased = _fused(x, _LOG2_E, _ROUNDING)
        power = _of_bits(_bits(biased) << np.uint16(10))
        whole, t = _add(biased, _LESS_ROUNDING), x
        for part in _MINUS_LN2:
            t = _fused(whole, part, t)
        return np.where(x < _SMALLEST, _ZERO, _fused(_multiply(t, power), _polynomial(t, _POWERS), power))


def logistic(x: F32) -> F32:
    """e / (1 + e) below 0, else 1 less that, e = `exp_on_negative` of -|x|; the inverse is an estimate with one step.

    Source: docs/facts/xnnpack.md 3.22; every binary16 number run.

    >>> logistic(np.float32([0, -1, 1, 20])).tolist()
    [0.5, 0.26904296875, 0.73095703125, 1.0]
    """
    with np.errstate(all="ignore"):
        x = flush(x)
        e = exp_on_negative(-np.abs(x))
        under = _add(e, _ONE)
        inverse = estimate(under)
        inverse = _fused(inverse, _fused(-under, inverse, _ONE), inverse)
        share = np.where(-np.abs(x) < _SMALLEST, _ZERO, _multiply(e, inverse))
        return _number(np.abs(x), np.where(x < 0, share, _add(_ONE, -share)))


def softmax(rows: F32) -> F32:
    """f16(1 / s) e, e = `exp_on_negative` of x - max, s their sum in binary32: in 8 lanes, folded to 2, what is left by
    pairs and a single one to them; folded.

    Source: docs/facts/xnnpack.md 3.22; run.

    >>> softmax(np.float32([[0, 0, 0, 0]])).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        rows = flush(rows)
        powers = exp_on_negative(_add(rows, -rows.max(axis=1, keepdims=True)))
        whole, length = rows.shape[1] // 8 * 8, rows.shape[1]
        lanes = np.zeros((len(rows), 8), np.float32)
        for first in range(0, whole, 8):
            lanes = lanes + powers[:, first : first + 8]
        folded = lanes[:, :4] + lanes[:, 4:]
        pair = folded[:, :2] + folded[:, 2:]
        pairs = (length - whole) // 2
        for first in range(whole, whole + 2 * pairs, 2):
            pair = pair + powers[:, first : first + 2]
        if length % 2:
            pair[:, 0] += powers[:, -1]
        sums = pair[:, :1] + pair[:, 1:]
        return _number(np.broadcast_to(_first_nan(rows), rows.shape), _multiply(powers, flush(_ONE / sums)))


def _first_nan(rows: F32) -> F32:
    """The first NaN of each row, or 0."""
    first = np.take_along_axis(rows, np.isnan(rows).argmax(axis=1)[:, None], axis=1)
    return np.where(np.isnan(first), first, _ZERO)

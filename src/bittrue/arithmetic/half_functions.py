"""Functions of binary16 numbers, every operation rounded to binary16, as vectors of eight have them.

Operands and results are binary16 numbers in binary32. A product and the sum behind it are fused; reciprocals begin with
a processor's estimate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import bittrue.arithmetic.elementary as elementary
from bittrue.arithmetic.floats import fused_multiply_add as fma
from bittrue.arithmetic.floats import fused_multiply_add_16 as fma_16

F32 = npt.NDArray[np.float32]
LANES = 8
_ONE, _HALF = np.float32(1), np.float32(0.5)


def rounded(x: npt.ArrayLike) -> F32:
    """The nearest binary16 number, ties to even.

    >>> rounded([0.1, 65520.0]).tolist()
    [0.0999755859375, inf]
    """
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def estimate(x: F32) -> F32:
    """The instruction FRECPE of aarch64: 8 bits, from the upper 8 bits of the fraction.

    Domain: 1 to 2^14. Source: the manual of the architecture (RecipEstimate), read; run under emulation.

    >>> estimate(np.float32([1, 3, 100])).tolist()
    [0.998046875, 0.3330078125, 0.009979248046875]
    """
    exponent = np.frexp(x)[1] - 1
    interval = 2 * np.floor(np.ldexp(x, 8 - exponent)).astype(np.int64) + 1
    return np.asarray(np.ldexp(((1 << 19) // interval + 1) // 2, -9 - exponent), np.float32)


def reciprocal(x: F32) -> F32:
    """The estimate e times 2 - x e, fused, twice. Domain: 1 to 2^14. Source: as `estimate`.

    >>> reciprocal(np.float32([1, 3, 100])).tolist()
    [1.0, 0.333251953125, 0.01000213623046875]
    """
    result = estimate(x)
    for _ in range(2):
        result = rounded(result * fma_16(-x, result, 2))
    return result


def _polynomial(x: F32, *coefficients: float) -> F32:
    """Of fused multiply-adds, the highest power first."""
    result: F32 = np.full_like(x, rounded(coefficients[0]))
    for coefficient in coefficients[1:]:
        result = fma_16(result, x, rounded(coefficient))
    return result


def _exp_of_minus(x: F32) -> F32:
    """About e^-x: a quotient of two polynomials of degree 2, whose square is rounded by itself."""
    x = np.minimum(x, np.float32(6))
    square = rounded(x * x)
    over, below = (
        fma_16(rounded(c2), square, fma_16(rounded(c1), x, rounded(c0)))
        for c0, c1, c2 in ((1.33, -0.39, 0.0288), (1.338, 0.848, 0.467))
    )
    return rounded(over * reciprocal(below))


_TERMS = (0.2505, -0.2881, 1.4102, -1.423, 1.0547)
_ERF_SCALE = rounded(0.328)


def erf(x: F32) -> F32:
    """About the error function: sign(x) (1 - p(t) e^-x^2), t = 1 / (1 + 0.328 |x|); beyond 4 the sign.

    Domain: all of binary16. Source: a library of vector kernels for aarch64, read; run on all numbers.

    >>> erf(np.float32([0, -0.5, 1, 5])).tolist()
    [0.0010051727294921875, -0.51953125, 0.8447265625, 1.0]
    """
    with np.errstate(all="ignore"):
        sign = np.where(x < 0, -_ONE, _ONE)
        size = np.minimum(np.abs(x), np.float32(4))
        t = reciprocal(fma_16(_ERF_SCALE, np.where(np.isnan(x), _ONE, size), _ONE))
        power, total = t, rounded(rounded(_TERMS[0]) * t)
        for term in _TERMS[1:]:
            power = rounded(power * t)
            total = fma_16(rounded(term), power, total)
        share = fma_16(-total, _exp_of_minus(rounded(size * size)), _ONE)
        share = np.clip(share * sign, -_ONE, _ONE)
        return np.where(np.isnan(x), x, np.where(np.abs(x) < 4, share, sign))


def erf_alone(x: F32) -> F32:
    """The same of what no vector holds: in binary32 with the C library's exponential, rounded last.

    A NaN becomes negative. Domain: all of binary16. Source: as `erf`.

    >>> erf_alone(np.float32([0, -0.5, 1, 5])).tolist()
    [-0.00439453125, -0.52099609375, 0.84375, 1.0]
    """
    with np.errstate(all="ignore"):
        size, sign = np.abs(x), np.where(x < 0, -_ONE, _ONE)
        t = _ONE / fma(size, _ERF_SCALE, _ONE)
        terms = rounded(_TERMS)
        total = fma(t, terms[0], t * terms[1] * t)
        total = fma(terms[2] * t * t, t, total)
        total = fma(t * terms[3] * t * t, t, total)
        total = fma(t * terms[4] * t * t * t, t, total)
        share = np.clip(fma(-total, elementary.exp(-size * size), _ONE) * sign, -_ONE, _ONE)
        return np.where(np.isnan(x), _ONE * -size, rounded(np.where(size > 4, sign, share)))


def _tanh(x: F32) -> F32:
    """A quotient of two polynomials of x^2, whose coefficients are tiny: they are counted in 2^-24."""
    limit = np.float32(3.515625)
    x = np.where(np.isnan(x), x, np.clip(x, -limit, limit))
    square = rounded(x * x)
    over, below = (
        _polynomial(square, *(np.ldexp(float(c), -24) for c in coefficients))
        for coefficients in ((1, 249, 10688, 82112), (20, 1989, 38048, 82112))
    )
    return rounded(rounded(over * x) / below)


_ROOT_OF_HALF, _ROOT_OF_TWO_OVER_PI = np.float32(0.7071067811865476), np.float32(0.7978845608028654)
_CUBE = np.float32(0.035677408136300125)


def gelu(x: F32, approximate: bool) -> F32:
    """About x (1/2 (erf(x / sqrt 2) + 1)), or tanh of x (c x^2 + sqrt(2 / pi)), limited to 5, in place of erf.

    Domain: all of binary16. Source: as `erf`.

    >>> gelu(np.float32([-1, 1, 3]), False).tolist()
    [-0.158447265625, 0.841796875, 2.99609375]
    """
    with np.errstate(all="ignore"):
        if approximate:
            inner = rounded(x * fma_16(rounded(_CUBE), rounded(x * x), rounded(_ROOT_OF_TWO_OVER_PI)))
            gate = _tanh(np.clip(inner, np.float32(-5), np.float32(5)))
        else:
            gate = erf(rounded(x * rounded(_ROOT_OF_HALF)))
        return rounded(x * rounded(rounded(gate + _ONE) * _HALF))


def gelu_alone(x: F32, approximate: bool) -> F32:
    """The same of what no vector holds: in binary32 but for the argument and the value of erf or tanh; NaN loses all
    but its sign, which erf makes negative. Domain: all of binary16. Source: as `erf`.

    >>> gelu_alone(np.float32([-1, 1, 3]), False).tolist()
    [-0.158203125, 0.841796875, 2.99609375]
    """
    with np.errstate(all="ignore"):
        if approximate:
            gate = _tanh(rounded(np.clip(fma(x * _CUBE, x, _ROOT_OF_TWO_OVER_PI) * x, np.float32(-5), np.float32(5))))
        else:
            gate = erf_alone(rounded(x * _ROOT_OF_HALF))
        nan = np.copysign(np.float32(np.nan), x if approximate else -_ONE)
        return np.where(np.isnan(x), nan, rounded(_HALF * x * (gate + _ONE)))


def in_eights(whole: Callable[..., F32], rest: Callable[..., F32]) -> Callable[..., F32]:
    """A function of a vector: `whole` of what fills eights, `rest` of what is left.

    >>> in_eights(np.negative, np.square)(np.full(9, 3, np.float32)).tolist()[-2:]
    [-3.0, 9.0]
    """

    def apply(x: F32, *more: bool) -> F32:
        end = x.size // LANES * LANES
        return np.concatenate([whole(x[:end], *more), rest(x[end:], *more)])

    return apply

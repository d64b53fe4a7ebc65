"""Elementary functions in binary32 by polynomials of fused multiply-adds, with subnormal numbers and NaN kept.

Every operation is rounded to binary32 (ties to even), a fused one once. Polynomials are evaluated from the highest
power on. Clamps keep NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.floats import fused_multiply_add as fma
from bittrue.arithmetic.fused import constants, polynomial

if TYPE_CHECKING:
    import numpy.typing as npt

F32 = np.ndarray[Any, np.dtype[Any]]
_f32 = np.float32
_ONE, _HALF = _f32(1), _f32(0.5)


def _on_vectors(function: Callable[..., F32]) -> Callable[..., F32]:
    """`function` on binary32 vectors, so that no operation meets a lone scalar."""

    @wraps(function)
    def wrapper(x: npt.ArrayLike, *more: Any) -> F32:
        array = np.asarray(x, np.float32)
        with np.errstate(all="ignore"):
            return np.asarray(function(array.reshape(-1), *more)).reshape(array.shape)

    return wrapper


def _clamp(x: F32, low: np.float32, high: np.float32) -> F32:
    raised = np.where(x < low, low, x)
    return np.where(raised > high, high, raised)


def _scale(x: F32, exponent: F32) -> F32:
    """x * 2^exponent, rounded once; NaN stays."""
    whole = np.where(np.isfinite(exponent), np.clip(exponent, -400, 400), 0).astype(np.int32)
    return np.ldexp(x.astype(np.float64), whole).astype(np.float32)


_ROUNDING_BIAS = _f32(12582912)
_LOG2_E, _LN2_HIGH, _LN2_LOW = constants(1.44269504088896341, -6.93145752e-1, -1.42860677e-6)
_EXP_SMALLEST, _EXP_LARGEST, _EXP_NEGATIVE_SMALLEST = constants(-103.9720840454, 88.7762626647950, -88.3762626647949)
_EXP = constants("0x1.694000p-10", "0x1.125edcp-7", "0x1.555b5ap-5", "0x1.555450p-3", "0x1.fffff6p-2", 1, 1)


def _exp(x: F32, coefficients: tuple[np.float32, ...]) -> F32:
    n = fma(x, _LOG2_E, _ROUNDING_BIAS) - _ROUNDING_BIAS
    t = fma(n, _LN2_LOW, fma(n, _LN2_HIGH, x))
    return _scale(polynomial(t, coefficients), n)


@_on_vectors
def exp(x: F32) -> F32:
    """2^n P(x - n ln 2), n = x log2(e) rounded, P of degree 6, x limited to -103.97208..88.77626.

    >>> exp([0.0, 1.0, -1.0, 100.0, -200.0]).tolist()
    [1.0, 2.7182817459106445, 0.3678794503211975, inf, 0.0]
    """
    return _exp(_clamp(x, _EXP_SMALLEST, _EXP_LARGEST), _EXP)


@_on_vectors
def exp_of_difference(x: F32) -> F32:
    """The same for x <= 0, x limited to -88.37626 from below.

    >>> exp_of_difference([0.0, -1.0, -200.0]).tolist()
    [1.0, 0.3678794503211975, 4.15602843873158e-39]
    """
    return _exp(np.where(x < _EXP_NEGATIVE_SMALLEST, _EXP_NEGATIVE_SMALLEST, x), _EXP)


_LOGISTIC_ODD = constants(
    4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05, 8.51377133304701e-03, 2.48287947061529e-01
)
_LOGISTIC_EVEN = constants(
    6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06, 1.70198817374094e-03, 1.16817656904453e-01,
    9.93151921023180e-01,
)  # fmt: skip


@_on_vectors
def logistic(x: F32) -> F32:
    """x P(x^2) / Q(x^2) + 1/2 of degrees 9 and 10, at least 0; x limited to +-18. Of 20 x it is one unit above 1.

    >>> logistic([0.0, 1.0, -1.0, 30.0, 17.695677]).tolist()
    [0.5, 0.7310585975646973, 0.2689414322376251, 1.0, 1.0000001192092896]
    """
    x = _clamp(x, _f32(-18), _f32(18))
    square = x * x
    return _clamp(x * polynomial(square, _LOGISTIC_ODD) / polynomial(square, _LOGISTIC_EVEN) + _HALF, _f32(0), _f32(2))


_TANH_ODD = constants(
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
    6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_EVEN = constants(1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


@_on_vectors
def tanh(x: F32) -> F32:
    """x P(x^2) / Q(x^2) of degrees 13 and 6, x limited to +-9.

    >>> tanh([0.0, 1.0, -1.0, 30.0]).tolist()
    [0.0, 0.7615941762924194, -0.7615941762924194, 1.0]
    """
    x = _clamp(x, _f32(-9), _f32(9))
    square = x * x
    return x * polynomial(square, _TANH_ODD) / polynomial(square, _TANH_EVEN)


_ERF_LARGEST, _ERF_SPLIT = constants(3.925, 0.921875)
_ERF_SMALL = constants(-5.99104969e-4, 4.99339588e-3, -2.67667342e-2, 1.12818025e-1, -3.76124859e-1, 1.28379151e-1)
_ERF_BIG = constants(
    1.72948930e-5, -3.83208680e-4, 3.88393435e-3, -2.42545605e-2, 1.06777847e-1, 6.34846687e-1, 1.28717512e-1
)
_ERF_EXP = constants(1.38319808e-3, 8.37550033e-3, 4.16689515e-2, 1.66664466e-1, 4.99999851e-1, 1, 1)


@_on_vectors
def erf(x: F32) -> F32:
    """a + a P(a^2) for a = |x| up to 0.921875, else 1 - e^-(a + a Q(a)), a limited to 3.925; the sign of x.

    >>> erf([0.0, 0.5, -1.0, 30.0]).tolist()
    [0.0, 0.5204998850822449, -0.8427007794380188, 1.0]
    """
    a = np.abs(x)
    a = np.where(a > _ERF_LARGEST, _ERF_LARGEST, a)
    small = fma(polynomial(a * a, _ERF_SMALL), a, a)
    big = _ONE - _exp(-fma(polynomial(a, _ERF_BIG), a, a), _ERF_EXP)
    return np.where(np.isnan(x), x + x, np.copysign(np.where(a > _ERF_SPLIT, big, small), x))

"""Functions as short sequences of binary64 operations, without tables.

Every operation is rounded to binary64 (ties to even); with `fused`, a product and the sum that it is part of are
rounded once. Vectors of two numbers go through them; beside them stand the C library's functions, which a number
without a neighbour gets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import bittrue.arithmetic.wide_elementary as wide_elementary
from bittrue.arithmetic.floats import fused_multiply_add_64

if TYPE_CHECKING:
    import numpy.typing as npt

F64 = np.ndarray[Any, np.dtype[Any]]

_EVERY_BIT = np.full(1, 0xFFFFFFFFFFFFFFFF, np.uint64).view(np.float64)[0]
_SIGN = np.uint64(1 << 63)

_LOG2_E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6
_EXP_LARGEST, _EXP_SMALLEST = 709.784, -745.519
_EXP_TOP = (1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1)
_EXP_BOTTOM = (3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0)

_ROOT_OF_HALF = 0.70710678118654752440
_LOG_TOP = (
    (1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854),
    (1.44989225341610930846e1, 1.79368678507819816313e1, 7.70838733755885391666),
)
_LOG_BOTTOM = (
    (1.0, 1.12873587189167450590e1, 4.52279145837532221105e1),
    (8.29875266912776603211e1, 7.11544750618563894466e1, 2.31251620126765340583e1),
)

_TANH_LARGEST, _FUSED_TANH_LARGEST = 17.714196154005176, 17.6610191624600077  # from here on the quotient is 1
_TANH_ODD = (
    2.6158007860482230e-23,
    7.6534862268749319e-19,
    3.1309488231386680e-15,
    4.2303918148209176e-12,
    2.4618379131293676e-09,
    6.8644367682497074e-07,
    9.3839087674268880e-05,
    5.9809711724441161e-03,
    1.5184719640284322e-01,
)
_TANH_EVEN = (
    6.463747022670968018e-21,
    5.782506856739003571e-17,
    1.293019623712687916e-13,
    1.123643448069621992e-10,
    4.492975677839633985e-08,
    8.785185266237658698e-06,
    8.295161192716231542e-04,
    3.437448108450402717e-02,
    4.851805297361760360e-01,
    1.0,
)

_QUARTER_TURNS = 0.63661977236758134307553505349006
_TURN = (-1.570796325802803, -9.920935184482005e-10, -6.123234014771656e-17, 1.903488962019325e-25)
_SPLIT = float(1 << 24)
_MEDIUM, _HUGE = 15.0, 1e14
_COS_TOP = (80737373.0, -13853547000.0, 727718024880.0, -11275015752000.0, 23594700729600.0)
_COS_BOTTOM = (147173.0, 39328920.0, 5772800880.0, 522334612800.0, 23594700729600.0)
_SIN_TOP = (4585922449.0, -1066023933480.0, 83284044283440.0, -2303682236856000.0, 15605159573203200.0)
_SIN_BOTTOM = (1029037.0, 345207016.0, 61570292784.0, 6603948711360.0, 346781323848960.0)


def _joiner(fused: bool) -> Callable[[Any, Any, Any], F64]:
    """(a, b, c) to a b + c."""
    return fused_multiply_add_64 if fused else lambda a, b, c: np.asarray(a * b + c)


def _polynomial(x: F64, coefficients: tuple[float, ...], fused: bool) -> F64:
    """((c0 x + c1) x + ...): the highest power's coefficient comes first."""
    add, result = _joiner(fused), np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        result = add(result, x, c)
    return result


def exp(x: F64, fused: bool = False) -> F64:
    """2^m (1 + 2 P / (Q - P)) with m = x / ln 2 to even, r = x - m ln 2, P and Q of degrees 5 and 6 in r.

    0 below -745.519, infinite from 709.784 on; NaN stays as it is. Source: a linear algebra library's vector
    exponential, read; verified by running.

    >>> exp(np.float64([0.0, -1.0, -750.0])).tolist()
    [1.0, 0.3678794411714423, 0.0]
    >>> [exp(np.float64([12.328125]), fused).tolist() for fused in (False, True)]
    [[225962.6502011402], [225962.65020114023]]
    """
    with np.errstate(all="ignore"):
        add = _joiner(fused)
        limited = np.where(x > _EXP_LARGEST, _EXP_LARGEST, x)
        m = np.rint(limited * _LOG2_E)
        r = add(m, -_LN2_LOW, add(m, -_LN2_HIGH, limited))
        square = r * r
        top = _polynomial(square, _EXP_TOP, fused) * r
        p = top / (_polynomial(square, _EXP_BOTTOM, fused) - top) * 2.0 + 1.0
        # A power below the smallest normal number is rounded once: halves of its exponent are multiplied in turn.
        whole = np.where(np.isnan(m), 0, np.clip(m, -1100, 1100)).astype(np.int32)
        power = np.where(x < _EXP_SMALLEST, 0.0, np.ldexp(p, whole))
        return np.where(np.isnan(x), x, power)


def log(x: F64, fused: bool = False) -> F64:
    """e ln 2 + (t + (t^3 P(t) / Q(t) - t^2 / 2)) with x = 2^e m, sqrt(1/2) <= m < sqrt(2), t = m - 1.

    P and Q have degree 5, in two halves. 0 gives -infinity; negative numbers and NaN give the NaN of all bits, the mask
    of a comparison. Source: a linear algebra library's vector logarithm, read; verified by running.

    >>> log(np.float64([1.0, 2.0, 0.0, 10.0])).tolist()
    [0.0, 0.6931471805599453, -inf, 2.3025850929940455]
    >>> [log(np.float64([0.09375]), fused).tolist() for fused in (False, True)]
    [[-2.3671236141316165], [-2.367123614131617]]
    """
    with np.errstate(all="ignore"):
        add = _joiner(fused)
        m, e = np.frexp(x)
        low = m < _ROOT_OF_HALF
        t = (m - 1.0) + np.where(low, m, 0.0)
        square = t * t
        cube = square * t
        top, bottom = (
            add(_polynomial(t, high, fused), cube, _polynomial(t, rest, fused))
            for high, rest in (_LOG_TOP, _LOG_BOTTOM)
        )
        logarithm = t + (top * cube / bottom - square * 0.5)
        result = add((e - low).astype(np.float64), _LN2, logarithm)
        result = np.where(x == 0, -np.inf, np.where(x == np.inf, x, result))
        return np.where(x >= 0, result, _EVERY_BIT)


def tanh(x: F64, fused: bool = False) -> F64:
    """(x^3 P(x^2) + x) / Q(x^2) of degrees 19 and 18, x limited to +-17.714196154005176, fused to +-17.66101916246. NaN
    stays NaN, -0 stays -0.

    Source: a linear algebra library's hyperbolic tangent, read; verified by running.

    >>> tanh(np.float64([0.0, 1.0, -100.0])).tolist()
    [0.0, 0.7615941559557649, -1.0]
    >>> [tanh(np.float64([1.5]), fused).tolist() for fused in (False, True)]
    [[0.9051482536448663], [0.9051482536448665]]
    """
    largest = _FUSED_TANH_LARGEST if fused else _TANH_LARGEST
    with np.errstate(all="ignore"):
        x = np.where(x > largest, largest, np.where(x < -largest, -largest, x))
        square = x * x
        top = _joiner(fused)(square * x, _polynomial(square, _TANH_ODD, fused), x)
        return np.asarray(top / _polynomial(square, _TANH_EVEN, fused))


def _logistic(x: F64, exponential: Callable[[F64], F64]) -> F64:
    """1 / (1 + e^-|x|) where x is positive, else 1 less that."""
    with np.errstate(all="ignore"):
        upper = 1.0 / (1.0 + exponential(-np.abs(x)))
        return np.where(x > 0, upper, 1.0 - upper)


def logistic(x: F64, fused: bool = False) -> F64:
    """1 / (1 + e^-|x|), and 1 less that where x is not positive. Source: a runtime's kernel, verified by running.

    >>> logistic(np.float64([0.0, -1.0, 40.0])).tolist()
    [0.5, 0.2689414213699951, 1.0]
    """
    return _logistic(x, partial(exp, fused=fused))


def _reduced(x: F64, medium: F64, fused: bool) -> tuple[F64, npt.NDArray[Any]]:
    """|x| - q pi/2 and q; `medium`: with pi/2 in four parts and q in two, else in two parts."""
    size, add = np.abs(x), _joiner(fused)
    high = np.floor(size * (_QUARTER_TURNS / _SPLIT)) * _SPLIT
    low = np.trunc((size * _QUARTER_TURNS - high) + 0.5)
    far = size
    for part in _TURN[:3]:
        far = add(part, low, add(part, high, far))
    far = add(_TURN[3], low + high, far)
    whole = np.trunc(size * _QUARTER_TURNS + 0.5)
    near = add(_TURN[1], whole, add(_TURN[0], whole, size))
    turns = np.where(medium, low, whole)
    return np.where(medium, far, near), np.where(np.isfinite(turns), turns, 0).astype(np.int64).view(np.uint64)


def _circular(x: F64, cosine: bool, library: Callable[[F64], F64], fused: bool) -> F64:
    """Quotients of two polynomials of degree 8 in the angle that is left; a pair with an angle of 15 or more gets the
    longer reduction for both. The C library has what is beyond 10^14.
    """
    with np.errstate(all="ignore"):
        medium = np.repeat((np.abs(x) >= _MEDIUM).reshape(-1, 2).any(axis=1), 2)
        r, turns = _reduced(x, medium, fused)
        square = r * r
        cosines = _polynomial(square, _COS_TOP, fused) / _polynomial(square, _COS_BOTTOM, fused)
        sines = r * _polynomial(square, _SIN_TOP, fused) / (45.0 * _polynomial(square, _SIN_BOTTOM, fused))
        result = np.where((turns & np.uint64(1) == 0) == cosine, cosines, sines)
        flip = turns + np.uint64(1) if cosine else turns
        signs = flip << np.uint64(62) if cosine else x.view(np.uint64) ^ flip << np.uint64(62)
        result = (result.view(np.uint64) ^ signs & _SIGN).view(np.float64)
        huge = (np.abs(x) > _HUGE) & np.isfinite(x)
        if huge.any():
            result[huge] = library(x[huge])
        return result


def sin(x: F64, fused: bool = False) -> F64:
    """Sine; the size is even. Source: a linear algebra library's vector sine, read; verified by running.

    >>> sin(np.float64([0.5, -20.0])).tolist()
    [0.479425538604203, -0.9129452507276277]
    >>> [sin(np.float64([10.25, 10.5]), fused).tolist()[0] for fused in (False, True)]
    [-0.7346984304047957, -0.7346984304047958]
    """
    return _circular(x, False, library_sin, fused)


def cos(x: F64, fused: bool = False) -> F64:
    """Cosine; the size is even. Source: a linear algebra library's vector cosine, read; verified by running.

    >>> cos(np.float64([0.5, -20.0])).tolist()
    [0.8775825618903728, 0.40808206181339196]
    >>> [cos(np.float64([16.25, 16.5]), fused).tolist()[0] for fused in (False, True)]
    [-0.8566597458288425, -0.8566597458288423]
    """
    return _circular(x, True, library_cos, fused)


def _as_signed(function: Callable[..., F64]) -> Callable[..., F64]:
    """The C library's function: what is no number has the sign that x86-64 gives it."""

    def apply(*x: F64) -> F64:
        found = function(*x)
        arises = np.isnan(found) & ~np.logical_or.reduce([np.isnan(v) for v in x])
        return np.where(arises, -np.nan, found)

    return apply


library_exp, library_tanh, library_log = wide_elementary.exp, wide_elementary.tanh, wide_elementary.log
library_sin, library_cos = _as_signed(wide_elementary.sin), _as_signed(wide_elementary.cos)


def library_logistic(x: F64) -> F64:
    """As `logistic`, with the C library's exponential."""
    return _logistic(x, library_exp)


_power = _as_signed(wide_elementary.power)


def library_power(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> F64:
    """The C library's x^y in binary64, element by element, with broadcasting."""
    a, b = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    return _power(a, b)

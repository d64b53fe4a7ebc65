"""Functions as short sequences of binary32 operations, without tables.

Every operation is rounded to binary32 (ties to even); polynomials are evaluated in the order that is written. With
`fused`, a product and the sum that it is part of are rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.elementary import quarter_turns, without_value
from bittrue.arithmetic.floats import fused_multiply_add
from bittrue.arithmetic.reciprocal_estimate import refined

if TYPE_CHECKING:
    import numpy.typing as npt

F32 = np.ndarray[Any, np.dtype[Any]]

_f32 = np.float32

_LOGISTIC_LARGEST = _f32(16.6355324)  # from here on e^x / (1 + e^x) is 1
_LOGISTIC_SMALLEST = _f32(-104.0)
_LOG2_E = _f32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = _f32(-0.693359375), _f32(2.12194440e-4)
_EXP_2, _EXP_3 = _f32(0.49999141693115234375), _f32(0.16666877269744873046875)
_EXP_4, _EXP_5 = _f32(4.1898667812347412109375e-2), _f32(8.33471305668354034423828125e-3)

_TANH_LARGEST = _f32(7.90738964080810547)  # from here on the quotient is 1
_FUSED_TANH_LARGEST = _f32(8.01773357391357421875)  # the same of fused operations
_TANH_ODD = tuple(_f32(c) for c in (1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1))
_TANH_EVEN = tuple(_f32(c) for c in (8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0))


def logistic(x: npt.ArrayLike, fused: bool = False) -> F32:
    """e^x / (1 + e^x) with e^x = (2^m P(r))^2, m = floor(x / (2 ln 2) + 1/2), r = x / 2 - m ln 2, P of degree 5.

    x is limited to 16.6355324 from above; below -104 the result is 0. NaN stays NaN. No ties beyond those of the single
    operations. Source: a linear algebra library's vector logistic function, read; verified by running.

    >>> logistic([0.0, -200.0, 20.0, 1.0]).tolist()
    [0.5, 0.0, 1.0, 0.7310585379600525]
    >>> [logistic([0.84375], fused).tolist() for fused in (False, True)]
    [[0.6992543935775757], [0.6992544531822205]]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    add = _joiner(fused)
    with np.errstate(all="ignore"):
        half = np.where(x > _LOGISTIC_LARGEST, _LOGISTIC_LARGEST, x) * _f32(0.5)
        half = np.where(x < _LOGISTIC_SMALLEST, _f32(0), half)
        m = np.floor(add(half, _LOG2_E, _f32(0.5)))
        r = add(m, _LN2_LOW, add(m, _LN2_HIGH, half))
        r2 = r * r
        even, odd = add(r2, _EXP_4, _EXP_2), add(r2, _EXP_5, _EXP_3)
        p = add(r2, add(r, odd, even), r + _f32(1))
        # 2^m is normal, and so is the product.
        e = p * np.ldexp(_f32(1), np.where(np.isnan(m), 0, m).astype(np.int32))
        e = e * e
        return np.where(x < _LOGISTIC_SMALLEST, _f32(0), e / (_f32(1) + e))


def tanh(x: npt.ArrayLike, fused: bool = False) -> F32:
    """(x^3 P(x^2) + x) / Q(x^2) of degrees 9 and 8, x limited to +-7.9073896, fused to +-8.0177336. NaN stays NaN, -0
    stays -0.

    Source: a linear algebra library's hyperbolic tangent, read; verified by running.

    >>> tanh([0.0, 1.0, -1.0, 100.0]).tolist()
    [0.0, 0.7615941762924194, -0.7615941762924194, 1.0]
    >>> [tanh([0.375], fused).tolist() for fused in (False, True)]
    [[0.35835739970207214], [0.35835736989974976]]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        largest = _FUSED_TANH_LARGEST if fused else _TANH_LARGEST
        x = np.where(x > largest, largest, np.where(x < -largest, -largest, x))
        x2 = x * x
        p, q = _polynomial(x2, _TANH_ODD, fused), _polynomial(x2, _TANH_EVEN, fused)
        return np.asarray(_joiner(fused)(x2 * x, p, x) / q)


EVERY_BIT = np.full(1, 0xFFFFFFFF, np.uint32).view(np.float32)
_EXP_LARGEST = _f32(88.723)
_EXP = tuple(
    _f32(c)
    for c in (
        0.49999988079071044921875,
        0.16666518151760101318359375,
        4.166965186595916748046875e-2,
        8.36894474923610687255859375e-3,
        1.37449637986719608306884765625e-3,
    )
)
_ERFC_CENTRE = tuple(
    _f32(c)
    for c in (
        5.61802298761904239654541015625e-04,
        -4.91381669417023658752441406250e-03,
        2.67075151205062866210937500000e-02,
        -1.12800106406211853027343750000e-01,
        3.76122951507568359375000000000e-01,
        -1.12837910652160644531250000000e00,
    )
)
_ERFC_TOP = tuple(
    _f32(c)
    for c in (
        1.0208116471767425537109375e-01,
        4.2920666933059692382812500e-01,
        3.2379078865051269531250000e-01,
        5.3971976041793823242187500e-02,
    )
)
_ERFC_BOTTOM = tuple(
    _f32(c)
    for c in (
        1.7251677811145782470703125e-02,
        3.9137163758277893066406250e-01,
        1.0000000000000000000000000e00,
        6.2173241376876831054687500e-01,
        9.5662862062454223632812500e-02,
    )
)


def _joiner(fused: bool) -> Callable[[Any, Any, Any], F32]:
    """(a, b, c) to a b + c."""
    return fused_multiply_add if fused else lambda a, b, c: np.asarray(a * b + c)


def _polynomial(x: F32, coefficients: tuple[np.float32, ...], fused: bool = False) -> F32:
    """((c0 x + c1) x + ...): the highest power's coefficient comes first."""
    add, result = _joiner(fused), np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        result = add(result, x, c)
    return result


def exp(x: npt.ArrayLike, fused: bool = False) -> F32:
    """2^m P(r) with m = floor(x / ln 2 + 1/2), r = x - m ln 2, P of degree 6; 0 below -104, infinite from
    88.723 on. Off by up to 2 units. NaN stays NaN.

    Source: a linear algebra library's vector exponential, read; verified by running.

    >>> exp([0.0, -1.0, -104.5]).tolist()
    [1.0, 0.3678794503211975, 0.0]
    >>> [exp([-0.5234375], fused).tolist() for fused in (False, True)]
    [[0.5924804210662842], [0.5924803614616394]]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        limited: F32 = np.minimum(x, _EXP_LARGEST)
        add = _joiner(fused)
        m = np.floor(add(limited, _LOG2_E, _f32(0.5)))
        r = add(m, _LN2_LOW, add(m, _LN2_HIGH, limited))
        r2 = r * r
        even = add(r2, add(r2, _EXP[4], _EXP[2]), _EXP[0])
        p = add(r2, add(r, add(r2, _EXP[3], _EXP[1]), even), r + _f32(1))
        whole = np.where(np.isnan(m), 0, np.clip(m, -200, 200)).astype(np.int32)
        powers = np.where(limited < _LOGISTIC_SMALLEST, _f32(0), np.ldexp(p, whole))
        return np.where(limited >= _EXP_LARGEST, _f32(np.inf), powers)


def _divided_one(x: F32) -> F32:
    return np.asarray(_f32(1) / x)


def erfc(
    x: npt.ArrayLike,
    exponential: Callable[[F32], F32],
    fused: bool = False,
    reciprocal: Callable[[F32], F32] = _divided_one,
) -> F32:
    """1 + x S(x^2) up to |x| = 1, beyond that e^(-x^2) P(1 / x^2) / (x Q(1 / x^2)), plus 2 for negative x.

    x is limited to +-11; `exponential` gives e^(-h) of the rounded square h, whose rounding error l enters as
    e^(-h) - e^(-h) l; `reciprocal` gives 1 / x^2. Source: a linear algebra library's complementary error function,
    read; verified by running.

    >>> erfc([0.0, 0.5, -2.0, 20.0], exp).tolist()
    [1.0, 0.4795001149177551, 1.9953222274780273, 0.0]
    >>> [erfc([0.9375], exp, fused).tolist() for fused in (False, True)]
    [[0.18489760160446167], [0.18489757180213928]]
    """
    add = _joiner(fused)
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        x = np.where(x > 11, _f32(11), np.where(x < -11, _f32(-11), x))
        square = x * x
        small = add(x, _polynomial(square, _ERFC_CENTRE, fused), _f32(1))
        wide = x.astype(np.float64)
        error = (wide * wide - square).astype(np.float32)
        power = exponential(-square)
        power = fused_multiply_add(-power, error, power) if fused else power - power * error
        inverse = reciprocal(square)
        quotient = _polynomial(inverse, _ERFC_TOP, fused) / (x * _polynomial(inverse, _ERFC_BOTTOM, fused))
        large = add(power, quotient, np.where(x < 0, _f32(2), _f32(0)))
        return np.where(square > 1, large, small)


_LOG_OVER = tuple(_f32(c) for c in (0.18256296349849254, 1.0000000190281063, 1.0000000190281136))
_LOG_UNDER = tuple(_f32(c) for c in (0.049616247954120038, 0.59923249590823520, 1.4999999999999927, 1.0))
_LN2, _ROOT_OF_HALF = _f32(0.693147180559945), _f32(0.707106781186547524)


def log(x: npt.ArrayLike, fused: bool = False) -> F32:
    """e ln 2 + t P(t) / Q(t) with x = 2^e m, sqrt(1/2) <= m < sqrt(2), t = m - 1, P and Q of degrees 2 and 3.

    0 gives -infinity; negative numbers and NaN give the NaN of all bits, the mask of a comparison.

    Source: a linear algebra library's vector logarithm, read; verified by running.

    >>> log([1.0, 2.0, 0.0, 10.0]).tolist()
    [0.0, 0.6931471824645996, -inf, 2.3025851249694824]
    >>> [log([0.796875], fused).tolist() for fused in (False, True)]
    [[-0.22705745697021484], [-0.22705742716789246]]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        m, e = np.frexp(x)
        low = m < _ROOT_OF_HALF
        t = (m - _f32(1)) + np.where(low, m, _f32(0))
        exponent = (e - low).astype(np.float32)
        add = _joiner(fused)
        over = add(add(t, _LOG_OVER[0], _LOG_OVER[1]), t, _LOG_OVER[2]) * t
        under = add(add(add(t, _LOG_UNDER[0], _LOG_UNDER[1]), t, _LOG_UNDER[2]), t, _LOG_UNDER[3])
        result = add(exponent, _LN2, over / under)
        result = np.where(x == 0, _f32(-np.inf), np.where(x == np.inf, x, result))
        return np.where(x >= 0, result, EVERY_BIT)


def log1p(x: npt.ArrayLike) -> F32:
    """x (log(1 + x) / ((1 + x) - 1)), or x where 1 + x is 1 or infinite.

    Source: a linear algebra library's vector form, read; verified by running.

    >>> log1p([0.0, 1e-9, 1.0]).tolist()
    [0.0, 9.999999717180685e-10, 0.6931471824645996]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        moved = x + _f32(1)
        logarithm = log(moved)
        return np.where((moved == 1) | (moved == logarithm), x, x * (logarithm / (moved - _f32(1))))


_QUARTER_TURNS = _f32(0.636619746685028076171875)  # 2 / pi
# Adding it leaves the nearest integer in the lowest bits.
_TO_INTEGER = _f32(1.5 * 2**23)
# -pi / 2 in parts; products with small integers are exact but for the last one.
_TURN_BACK = tuple(
    _f32(c)
    for c in (
        -1.5703125,
        -4.83989715576171875e-4,
        1.62865035235881805419921875e-7,
        5.5644315544167710640977020375430583953857421875e-11,
    )
)
# The same where a product and the difference are rounded once.
_FUSED_TURN_BACK = tuple(
    _f32(c)
    for c in (
        -1.57079601287841796875,
        -3.1391647326017846353352069854736328125e-7,
        -5.390302529957764765544681040410068817436695098876953125e-15,
    )
)
_COSINE = tuple(
    _f32(c)
    for c in (
        2.4372266125283204019069671630859375e-5,
        -1.38865201734006404876708984375e-3,
        4.1666619479656219482421875e-2,
        -0.5,
        1,
    )
)
_SINE = tuple(
    _f32(c)
    for c in (
        -1.959234114083702898469196984621021329076029360294342041015625e-4,
        8.33268736556161516937179974879e-3,
        -1.666666203982298255503735617821803e-1,
    )
)


def _sine_or_cosine(x: npt.ArrayLike, is_sine: bool, far: np.float32, fused: bool) -> F32:
    """sin(r) or cos(r) with |x| = n pi / 2 + r, by a polynomial; from `far` on r comes from integers."""
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        size = np.abs(x)
        add = _joiner(fused)
        shifted = add(size, _QUARTER_TURNS, _TO_INTEGER)
        turns, n, r = shifted.view(np.int32), shifted - _TO_INTEGER, size
        for part in _FUSED_TURN_BACK if fused else _TURN_BACK:
            r = add(n, part, r)
        large = (size >= far) & (size < np.inf)
        whole, rest = quarter_turns(np.where(large, size, _f32(0)))
        turns = np.where(large, whole.astype(np.int32), turns)
        r = np.where(large, rest.astype(np.float32), np.where(size == np.inf, _f32(np.nan), r))
        square = r * r
        cosine = _polynomial(square, _COSINE, fused)
        sine = add(_polynomial(square, _SINE, fused) * square, r, r)
        found = np.where((turns & 1 == 0) == is_sine, sine, cosine).view(np.int32)
        negative = (turns & 2) << 30 ^ x.view(np.int32) if is_sine else (turns + 1 & 2) << 30
        # Of infinity comes the processor's NaN, whose sign changes, too.
        found = np.where(size == np.inf, np.int32(0x7FC00000 if fused else -(2**22)), found)
        return (found ^ negative & np.int32(-(2**31))).view(np.float32)


def sin(x: npt.ArrayLike, fused: bool = False) -> F32:
    """Polynomials of degrees 7 and 8 in r, |x| = n pi / 2 + r; n is the nearest integer to |x| f32(2 / pi), n pi / 2 is
    taken off in four parts, from 25966 on exactly; fused in three, from 117435.992 on. The sign of NaN goes by the bits
    of its fraction, too.

    Source: a linear algebra library's vector sine, read; verified by running.

    >>> sin([0.0, 1.0, -2.0, 1e10]).tolist()
    [0.0, 0.8414709568023682, -0.9092974066734314, -0.48750603199005127]
    >>> [sin([0.1875], fused).tolist() for fused in (False, True)]
    [[0.1864033043384552], [0.186403289437294]]
    """
    return _sine_or_cosine(x, True, _f32(117435.992 if fused else 25966), fused)


def cos(x: npt.ArrayLike, fused: bool = False) -> F32:
    """The same of the cosine; exactly from 18838 on, fused from 71476.0625 on.

    Source: a linear algebra library's vector cosine, read; verified by running.

    >>> cos([0.0, 1.0, -2.0, 1e10]).tolist()
    [1.0, 0.5403022766113281, -0.41614681482315063, 0.873119592666626]
    >>> [cos([0.236328125], fused).tolist() for fused in (False, True)]
    [[0.9722042083740234], [0.9722042679786682]]
    """
    return _sine_or_cosine(x, False, _f32(71476.0625 if fused else 18838), fused)


_HALF_PI = _f32(np.pi / 2)
_ACOS_EVEN = tuple(map(_f32, (2.36423197202384471893310546875e-3, 2.717843465507030487060546875e-2,
                              8.8804088532924652099609375e-2, 1.57079637050628662109375)))  # fmt: skip
_ACOS_ODD = tuple(map(_f32, (-1.1368644423782825469970703125e-2, -4.8969544470310211181640625e-2,
                             -0.214591205120086669921875)))  # fmt: skip
_ASIN = tuple(map(_f32, (5.08838854730129241943359375e-2, 3.95139865577220916748046875e-2,
                         7.550220191478729248046875e-2, 0.16664917767047882080078125,
                         1.00000011920928955078125)))  # fmt: skip
_ATAN_TOP = tuple(map(_f32, (1.12026982009410858154296875e-01, 7.296695709228515625e-01, 8.109951019287109375e-01)))
_ATAN_BOTTOM = tuple(map(_f32, (1.00917108356952667236328125e-02, 2.8318560123443603515625e-01, 1,
                                8.109951019287109375e-01)))  # fmt: skip


def acos(x: npt.ArrayLike, fused: bool = False) -> F32:
    """sqrt(1 - |x|) P(|x|) of degree 6, from pi for negative numbers. Outside of -1..1 the NaN that arises: a negative
    one, fused a positive one.

    Source: a linear algebra library's vector arc cosine, read; verified by running.

    >>> acos([0.0, -0.25, 0.75, 1.0]).tolist()
    [1.5707963705062866, 1.823476791381836, 0.722734272480011, 0.0]
    >>> [acos([0.096923828125], fused).tolist() for fused in (False, True)]
    [[1.4737200736999512], [1.4737199544906616]]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    with np.errstate(all="ignore"):
        size, square = np.abs(x), x * x
        odd, even = (_polynomial(square, part, fused) for part in (_ACOS_ODD, _ACOS_EVEN))
        result = np.sqrt(_f32(1) - size) * _joiner(fused)(odd, size, even)
        result = np.where(np.signbit(x), _f32(np.pi) - result, result)
        return np.where(np.isnan(x), x + x, np.where(size > _f32(1), without_value(fused), result))


def asin(x: npt.ArrayLike, fused: bool = False) -> F32:
    """Arc sine: x P(x^2) of degree 4 up to 1/2; beyond, pi / 2 less twice that of sqrt((1 - |x|) / 2).

    Outside of -1..1 all bits are set.

    Source: a linear algebra library's vector arc sine, read; verified by running.

    >>> asin([0.0, -0.25, 0.75, 1.0]).tolist()
    [0.0, -0.2526802718639374, 0.8480621576309204, 1.5707963705062866]
    >>> [asin([0.23046875], fused).tolist() for fused in (False, True)]
    [[0.23255935311317444], [0.23255938291549683]]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    size = np.abs(x)
    with np.errstate(all="ignore"):
        large = size > _f32(0.5)
        part = np.where(large, np.sqrt(_f32(0.5) - _f32(0.5) * size), size)
        result = _polynomial(part * part, _ASIN, fused) * part
        result = np.copysign(np.where(large, _HALF_PI - _f32(2) * result, result), x)
    return np.where(size > _f32(1), EVERY_BIT, result)


def atan(x: npt.ArrayLike, fused: bool = False) -> F32:
    """Arc tangent: x (P(x^2) / Q(x^2)) of degrees 2 and 3 up to 1; beyond, pi / 2 less that of 1 / |x|, signed as x.
    With `fused`, 1 / |x| is `reciprocal_estimate.refined`.

    Source: a linear algebra library's vector arc tangent, read; verified by running.

    >>> atan([0.0, 1.0, -2.0, 1e38]).tolist()
    [0.0, 0.7853981256484985, -1.1071488857269287, 1.5707963705062866]
    >>> [atan([0.1923828125], fused).tolist() for fused in (False, True)]
    [[0.19006071984767914], [0.19006073474884033]]
    """
    x = np.atleast_1d(np.asarray(x, np.float32))
    size = np.abs(x)
    with np.errstate(all="ignore"):
        large = size > _f32(1)
        part = np.where(large, refined(size) if fused else _f32(1) / size, size)
        square = part * part
        result = part * (_polynomial(square, _ATAN_TOP, fused) / _polynomial(square, _ATAN_BOTTOM, fused))
        return np.copysign(np.where(large, _HALF_PI - result, result), x)

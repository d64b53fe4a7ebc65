"""Elementary functions in binary32 as quotients of polynomials, or polynomials, of fused multiply-adds.

Every operation is rounded to binary32 (ties to even), a fused one once. Polynomials are evaluated from the highest
power on. Subnormal arguments count as zeros, and subnormal results become zeros of their sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.floats import fused_multiply_add
from bittrue.arithmetic.reciprocal_estimate import refined

if TYPE_CHECKING:
    import numpy.typing as npt

F32 = np.ndarray[Any, np.dtype[Any]]

_f32 = np.float32
_ONE, _HALF, _ZERO = _f32(1), _f32(0.5), _f32(0)
_NEGATIVE_NAN, _SIGNALLED_NAN = np.array([0xFFC00000, 0x7FC00001], np.uint32).view(np.float32)


# Powers of two from 1 to below 2, as bits, and what rounds to such parts of one.
_POWERS_OF_64THS, _POWERS_OF_16THS = (np.exp2(np.arange(n) / n).astype(np.float32).view(np.uint32) for n in (64, 16))
_BIAS_OF_64THS, _BIAS_OF_16THS = _f32(float.fromhex("0x1.8p17")), _f32(float.fromhex("0x1.8p19"))
_SQUARE_OF_64THS = _f32(float.fromhex("0x1.FFFF0Ap-2"))
_ELU_CUBE_OF_16THS, _ELU_SQUARE_OF_16THS = _f32(float.fromhex("0x1.55561Cp-3")), _f32(float.fromhex("0x1.0001ECp-1"))


def flush(x: F32) -> F32:
    """Subnormal numbers become zeros of their sign.

    >>> flush(np.float32([1e-40, -1e-40, 1.0, np.inf])).tolist()
    [0.0, -0.0, 1.0, inf]
    """
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(_ZERO, x), x)


def _flushed(function: Callable[..., F32]) -> Callable[..., F32]:
    """`function` between flushed arguments and results, on binary32 vectors, so that no operation meets a scalar."""

    @wraps(function)
    def wrapper(x: npt.ArrayLike, *more: Any) -> F32:
        array = np.asarray(x, np.float32)
        with np.errstate(all="ignore"):
            return flush(function(flush(array.reshape(-1)), *more)).reshape(array.shape)

    return wrapper


def constants(*values: float | str) -> tuple[np.float32, ...]:
    """Binary32 numbers from decimal ones or hexadecimal text."""
    return tuple(_f32(float.fromhex(v) if isinstance(v, str) else v) for v in values)


def polynomial(x: F32, coefficients: tuple[np.float32, ...]) -> F32:
    """Highest power first."""
    result: Any = coefficients[0]
    for c in coefficients[1:]:
        result = fused_multiply_add(x, result, c)
    return np.asarray(result)


def _smaller(a: Any, b: F32) -> F32:
    """NaN in b stays."""
    return np.where(a < b, a, b)


def _larger(a: Any, b: F32) -> F32:
    """NaN in b stays."""
    return np.where(a > b, a, b)


def _power_of_two(biased: F32) -> F32:
    """The number whose exponent field is the low bits of a number near 2^23."""
    return (biased.view(np.uint32) << np.uint32(23)).view(np.float32)


def _odd_quotient(x: F32, odd: tuple[np.float32, ...], even: tuple[np.float32, ...]) -> F32:
    """x P(x^2) / Q(x^2)."""
    square = x * x
    return x * polynomial(square, odd) / polynomial(square, even)


_TANH_LARGEST = _f32(7.9807181358)
_TANH_ODD = constants(1.4248920266e-08, 2.1235626264e-05, 3.5330520477e-03, 1.3412411511e-01, 1)
_TANH_EVEN = constants(8.1365948290e-07, 3.3472978976e-04, 2.6018999517e-02, 4.6745735407e-01, 1)


@_flushed
def tanh(x: F32) -> F32:
    """x P(x^2) / Q(x^2) of degrees 9 and 8, x limited to +-7.9807181. NaN stays NaN.

    Source: docs/facts/xnnpack.md 3.6, read; verified by running.

    >>> tanh([0.0, 1.0, -1.0, 100.0]).tolist()
    [0.0, 0.7615941762924194, -0.7615941762924194, 1.0]
    """
    return _odd_quotient(_larger(-_TANH_LARGEST, _smaller(_TANH_LARGEST, x)), _TANH_ODD, _TANH_EVEN)


_GELU = (
    _f32(5.1638283730),
    constants(
        4.5835321316e-08, 1.2609783880e-05, 3.2973114867e-04, 9.3065137044e-03, 6.6972173750e-02, 7.9788452387e-01
    ),
    constants(1.1988805682e-06, 7.2267655923e-05, 1.8622842617e-03, 2.8431978077e-02, 2.5060352683e-01, 1),
)  # fmt: skip
_GELU_BY_TANH = (
    _f32(4.84974098),
    constants(
        4.9544411240e-08, 1.4302649106e-05, 2.6887017884e-04, 7.2898347862e-03, 6.0803253204e-02, 7.9788458347e-01
    ),
    constants(1.3433452750e-06, 7.6477612311e-05, 1.3060354395e-03, 2.4381054565e-02, 2.4369759858e-01, 1),
)  # fmt: skip


@_flushed
def gelu(x: F32, approximate: bool) -> F32:
    """x / 2 * (1 + z P(z^2) / Q(z^2)) of degrees 11 and 10, z = x limited to +-5.1638284 (approximate: +-4.849741).

    >>> gelu([0.0, 1.0, -1.0], False).tolist(), gelu([1.0], True).tolist()
    ([0.0, 0.8413447141647339, -0.1586552858352661], [0.8411920070648193])
    """
    largest, odd, even = _GELU_BY_TANH if approximate else _GELU
    quotient = _odd_quotient(_larger(-largest, _smaller(largest, x)), odd, even)
    return x * _HALF * (quotient + _ONE)


_LOG2_E = _f32(1.44269504089)
_EXP_OVER = constants(5.5375634693e-03, 4.8078041524e-02, 6.9314718246e-01)
_EXP_UNDER = constants(2.3987604305e-02, -2.7721086144e-01, 1)


@_flushed
def exp(x: F32) -> F32:
    """2^z (1 + r P(r) / Q(r)) with t = x log2(e) limited to -127..128, z = t rounded, r = t - z, degrees 2.

    The rounded t makes it off by up to 60 units where |x| is large. NaN gives 0.

    >>> exp([0.0, 1.0, -1.0, 100.0, -100.0]).tolist()
    [1.0, 2.7182817459106445, 0.3678794503211975, inf, 0.0]
    """
    scaled = x * _LOG2_E
    scaled = np.where(scaled > _f32(-127), scaled, _f32(-127))
    scaled = np.where(scaled < _f32(128), scaled, _f32(128))
    whole = (scaled + _f32(12582912)) - _f32(12582912)
    rest = scaled - whole
    fraction = rest * polynomial(rest, _EXP_OVER) / polynomial(rest, _EXP_UNDER)
    return (fraction + _ONE) * _power_of_two(whole + _f32(8388735))


# Two numbers whose product is exactly 1.
_ROOT_OF_TWO, _ROOT_OF_HALF = _f32(1.4142134190), _f32(7.0710688829e-01)
_LN2 = _f32(0.69314718055994531)
_LOG_OVER = constants(1.824996918440e-01, 1, 1)
_LOG_UNDER = constants(0.049584995955, 0.599170029163, 1.5, 1)


@_flushed
def log(x: F32) -> F32:
    """n ln 2 + y P(y) / Q(y) of degree 3, where x sqrt(2) = 2^n m, 1 <= m < 2, y = m / sqrt(2) - 1.

    Zeros give -infinity, negative numbers NaN.

    >>> log([1.0, 2.0, 0.0, 100.0]).tolist()
    [0.0, 0.6931471824645996, -inf, 4.605170249938965]
    """
    scaled = x * _ROOT_OF_TWO
    exponent = (np.frexp(np.abs(scaled))[1] - 1).astype(np.float32)
    exponent = np.where(np.isinf(scaled), _f32(np.inf), exponent)
    exponent = np.where(scaled == 0, _f32(-np.inf), np.where(scaled < 0, _SIGNALLED_NAN, exponent))
    mantissa = ((scaled.view(np.uint32) & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32)
    y = mantissa * _ROOT_OF_HALF - _ONE
    quotient = y * polynomial(y, _LOG_OVER) / polynomial(y, _LOG_UNDER)
    result = np.where(scaled < 0, _SIGNALLED_NAN, fused_multiply_add(exponent, _LN2, quotient))
    return np.where(np.isnan(x), x + x, result)


_PI = _f32(3.1415927)
_INVERSE_TWO_PI = _f32(0.15915494)
_TWO_PI_HIGH, _TWO_PI_LOW = _f32(6.28125), _f32(1.9353072e-3)
_HALF_PI_HIGH, _HALF_PI_LOW = _f32(1.5707963705), _f32(-4.3711388e-08)
_SINE_ODD = constants(3.2340581529e-03, -1.3314664364e-01, 1)
_SINE_EVEN = constants(4.8770775902e-04, 3.3519912511e-02, 1)


def _sine(x: F32, cosine: bool) -> F32:
    turns = np.rint(x * _INVERSE_TWO_PI)
    angle = fused_multiply_add(-turns, _TWO_PI_HIGH, x)
    angle = fused_multiply_add(-turns, _TWO_PI_LOW, angle)
    if cosine:
        angle = (_HALF_PI_HIGH - angle) + _HALF_PI_LOW
    angle = _smaller(angle, _PI - angle)
    angle = _larger(angle, -_PI - angle)
    angle = _smaller(angle, _PI - angle)
    result = _odd_quotient(angle, _SINE_ODD, _SINE_EVEN)
    return np.where(np.isnan(x), x + x, np.where(np.isinf(x), _NEGATIVE_NAN, result))


@_flushed
def sin(x: F32) -> F32:
    """a P(a^2) / Q(a^2) of degrees 5 and 4, a = x without whole turns (taken off in two steps), mirrored into
    -pi / 2..pi / 2.

    >>> sin([0.0, 1.0, -1.0]).tolist()
    [0.0, 0.8414708971977234, -0.8414708971977234]
    """
    return _sine(x, False)


@_flushed
def cos(x: F32) -> F32:
    """The sine's quotient of pi / 2 - x.

    >>> cos([0.0, 1.0]).tolist()
    [1.0, 0.5403023362159729]
    """
    return _sine(x, True)


@_flushed
def neg(x: F32) -> F32:
    """0 - x: zeros of both signs give 0, NaN keeps its sign.

    >>> neg([1.0, -2.0, 0.0]).tolist()
    [-1.0, 2.0, 0.0]
    """
    return _ZERO - x


def exp_of_numbers(x: npt.ArrayLike) -> F32:
    """As `exp`, but a NaN stays, made quiet.

    >>> exp_of_numbers([0.0, np.nan]).tolist()
    [1.0, nan]
    """
    array = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        return np.where(np.isnan(array), array + array, exp(array))


def neg_by_sign(x: npt.ArrayLike) -> F32:
    """Every number with its sign changed, NaN and subnormal ones included.

    >>> neg_by_sign([1.0, 0.0]).tolist()
    [-1.0, -0.0]
    """
    return (np.asarray(x, np.float32).view(np.uint32) ^ np.uint32(0x80000000)).view(np.float32)


_SIXTH = _f32(float.fromhex("0x1.555556p-3"))


@_flushed
def hard_swish(x: F32) -> F32:
    """x * clamp(fma(x, 1/6, 1/2), 0, 1); NaN stays NaN.

    >>> hard_swish([-4.0, -1.0, 1.0, 4.0]).tolist()
    [-0.0, -0.3333333134651184, 0.6666666865348816, 4.0]
    """
    gate = fused_multiply_add(x, _SIXTH, _HALF)
    gate = np.where(gate > 0, gate, _ZERO)
    return np.where(gate < _ONE, gate, _ONE) * x


# fmt: off
# 2^(i / 32) rounded to binary32, but for some last bits.
_POWERS = constants(
    "0x1.000000p+0", "0x1.059B0Ep+0", "0x1.0B5586p+0", "0x1.11301Ep+0", "0x1.172B84p+0", "0x1.1D4874p+0",
    "0x1.2387A6p+0", "0x1.29E9E0p+0", "0x1.306FE0p+0", "0x1.371A74p+0", "0x1.3DEA64p+0", "0x1.44E086p+0",
    "0x1.4BFDAEp+0", "0x1.5342B6p+0", "0x1.5AB07Ep+0", "0x1.6247ECp+0", "0x1.6A09E6p+0", "0x1.71F75Ep+0",
    "0x1.7A1148p+0", "0x1.82589Ap+0", "0x1.8ACE54p+0", "0x1.93737Cp+0", "0x1.9C4918p+0", "0x1.A5503Cp+0",
    "0x1.AE89FAp+0", "0x1.B7F770p+0", "0x1.C199BEp+0", "0x1.CB720Ep+0", "0x1.D5818Ep+0", "0x1.DFC974p+0",
    "0x1.EA4AFAp+0", "0x1.F50766p+0",
)
# fmt: on
_TABLE = np.array(_POWERS, np.float32)
_TABLE_BIAS = _f32(1.5 * 2.0**18)
_FULL_LOG2_E = constants("0x1.715476p0")[0]
_MINUS_LN2, _LOGISTIC_LN2_LOW, _LOGISTIC_1 = constants("-0x1.62E430p-1", "0x1.05C61p-29", "0x1.0000F6p0")


@_flushed
def logistic(x: F32) -> F32:
    """e / (1 + e) for the negative side, 1 less that for the other, e = e^-|x| = 2^n T[k] (1 + t (1 + t / 2)).

    n + k / 32 is -|x| log2(e) rounded to a multiple of 1 / 32, t what remains of -|x|; T has 32 entries. From |x| of
    about 10^28 on t is so large that the result is NaN, until n becomes infinite. NaN becomes negative.

    >>> logistic([0.0, -1.0, 1.0, 200.0]).tolist()
    [0.5, 0.2689414322376251, 0.7310585975646973, 1.0]
    """
    z = -np.abs(x)
    parts = fused_multiply_add(z, _FULL_LOG2_E, _TABLE_BIAS)
    entry = _TABLE[parts.view(np.uint32) & np.uint32(31)]
    n = parts - _TABLE_BIAS
    t = fused_multiply_add(n, _MINUS_LN2, z)
    t = fused_multiply_add(n, _LOGISTIC_LN2_LOW, t)
    p = fused_multiply_add(t, _HALF, _LOGISTIC_1)
    p = fused_multiply_add(t * entry, p, entry)
    # Below -300 the power of two is 0 for every finite p, and an infinite one stays.
    e = flush(np.ldexp(p, np.floor(np.where(n > -300, n, _f32(-300))).astype(np.int32)))
    e = np.where(np.isinf(n), _ZERO, e)
    share = e / (e + _ONE)
    result = np.where(np.signbit(x), share, _ONE - share)
    return np.where(np.isnan(x), -np.abs(x + x), np.where(np.isnan(result), _NEGATIVE_NAN, result))


_ELU_SMALLEST = constants("-0x1.154246p+4")[0]
_ROUNDING_BIAS = constants("0x1.8000FEp23")[0]
_ELU = constants("0x1.6B7338p-10", "0x1.12278Ep-7", "0x1.555716p-5", "0x1.5554B0p-3", "0x1.FFFFFEp-2")


@_flushed
def elu(x: F32) -> F32:
    """(2^n - 1) + 2^n (t + t^2 P(t)), n = x log2(e) rounded, t = x - n ln 2, P of degree 4; x itself from 0 on.

    x is limited to -17.328678 from below.

    >>> elu([1.5, -1.0, -100.0]).tolist()
    [1.5, -0.6321205496788025, -1.0]
    """
    z = _larger(_ELU_SMALLEST, x)
    biased = fused_multiply_add(z, _FULL_LOG2_E, _ROUNDING_BIAS)
    power = _power_of_two(biased)
    t = fused_multiply_add(biased - _ROUNDING_BIAS, _MINUS_LN2, z)
    p = polynomial(t, _ELU) * t
    scaled = t * power
    return np.where(x < 0, fused_multiply_add(p, scaled, scaled) + (power - _ONE), x * _ONE)


_SOFTMAX_SMALLEST = constants("-0x1.5D589Ep6")[0]
_LN2_HIGH, _LN2_LOW = constants("-0x1.62E400p-1", "-0x1.7F7D1Cp-20")
_POWER_5 = constants("0x1.0F9F9Cp-7", "0x1.573A1Ap-5", "0x1.555A80p-3", "0x1.FFFDC6p-2", "0x1.FFFFF6p-1")


@_flushed
def exp_on_negative(x: F32) -> F32:
    """e^x for x <= 0: 2^n + t 2^n P(t), n = x log2(e) rounded, t = x - n ln 2 in two steps, P of degree 4; 0 below
    -87.336545.

    >>> exp_on_negative([0.0, -1.0, -90.0]).tolist()
    [1.0, 0.3678794801235199, 0.0]
    """
    biased = fused_multiply_add(x, _FULL_LOG2_E, _ROUNDING_BIAS)
    power = _power_of_two(biased)
    n = biased - _ROUNDING_BIAS
    t = fused_multiply_add(n, _LN2_HIGH, x)
    t = fused_multiply_add(n, _LN2_LOW, t)
    result = fused_multiply_add(flush(t * power), polynomial(t, _POWER_5), power)
    return np.where(x < _SOFTMAX_SMALLEST, _ZERO, result)


def exp_on_negative_of_64ths(x: F32) -> F32:
    """e^x for x <= 0: s + s p with s = 2^n from a table of 64 numbers, n = x log2(e) rounded to 64ths, t = x - n ln 2
    in one step and p = t + t (t / 2 nearly); 0 below -87.336545. Subnormal numbers are none here.

    Source: XNNPACK's exponential of softmax for aarch64, read; docs/facts/xnnpack.md 3.20.

    >>> exp_on_negative_of_64ths(np.float32([0.0, -1.0, -90.0])).tolist()
    [1.0, 0.3678794503211975, 0.0]
    """
    biased = fused_multiply_add(x, _FULL_LOG2_E, _BIAS_OF_64THS)
    places = biased.view(np.uint32)
    power = (((places >> np.uint32(6)) << np.uint32(23)) + _POWERS_OF_64THS[places & np.uint32(63)]).view(np.float32)
    t = fused_multiply_add(biased - _BIAS_OF_64THS, _MINUS_LN2, x)
    result = fused_multiply_add(power, fused_multiply_add(t, t * _SQUARE_OF_64THS, t), power)
    return np.where(x < _SOFTMAX_SMALLEST, _ZERO, result)


@_flushed
def logistic_of_64ths(x: F32) -> F32:
    """As `logistic`, but e = `exp_on_negative_of_64ths` of -|x|, times the refined estimate of 1 / (1 + e).

    Source: XNNPACK's kernel for aarch64, read; docs/facts/xnnpack.md 3.20.

    >>> logistic_of_64ths([0.0, -1.0, 1.0, 200.0]).tolist()
    [0.5, 0.2689414620399475, 0.7310585379600525, 1.0]
    """
    e = exp_on_negative_of_64ths(-np.abs(x))
    share = e * refined(e + _ONE)
    return np.where(x < 0, share, _ONE - share)


@_flushed
def logistic_by_exponent(x: F32) -> F32:
    """As `logistic`, but e = 2^n + t 2^n P(t) with n = -|x| log2(e) rounded, t = -|x| - n ln 2 in one step and the
    polynomial of `exp_on_negative`; e / (1 + e) is 0 where -|x| is below -87.336545. NaN becomes negative.

    >>> logistic_by_exponent([0.0, -1.0, 1.0, 200.0]).tolist()
    [0.5, 0.2689414322376251, 0.7310585975646973, 1.0]
    """
    z = -np.abs(x)
    biased = fused_multiply_add(z, _FULL_LOG2_E, _ROUNDING_BIAS)
    power = _power_of_two(biased)
    t = fused_multiply_add(biased - _ROUNDING_BIAS, _MINUS_LN2, z)
    e = flush(fused_multiply_add(flush(t * power), polynomial(t, _POWER_5), power))
    share = np.where(z < _SOFTMAX_SMALLEST, _ZERO, flush(e / (e + _ONE)))
    return np.where(np.isnan(x), -np.abs(x + x), np.where(np.signbit(x), share, _ONE - share))


# 2^(i / 4) in binary32, less i / 4 in the exponent.
_QUARTER_POWERS = np.array(
    constants("0x1.000000p+0", "0x1.F06FE0p-1", "0x1.EA09E6p-1", "0x1.EE89FAp-1"), np.float32
).view(np.uint32)
_QUARTER_BIAS = constants("0x1.8p21")[0]
_ELU_4 = constants("0x1.554F9Ap-5", "0x1.557082p-3", "0x1.000002p-1")


@_flushed
def elu_by_exponent(x: F32) -> F32:
    """As `elu`, but n is rounded to quarters, whose powers are four numbers, and P is of degree 2; -0 gives 0.

    >>> elu_by_exponent([1.5, -1.0, -100.0]).tolist()
    [1.5, -0.6321205496788025, -1.0]
    """
    z = _larger(_ELU_SMALLEST, x)
    biased = fused_multiply_add(z, _FULL_LOG2_E, _QUARTER_BIAS)
    places = biased.view(np.uint32)
    power = ((places << np.uint32(21)) + _QUARTER_POWERS[places & np.uint32(3)]).view(np.float32)
    t = fused_multiply_add(biased - _QUARTER_BIAS, _MINUS_LN2, z)
    p = polynomial(t, _ELU_4) * t
    scaled = t * power
    below = fused_multiply_add(p, scaled, scaled) + (power - _ONE)
    return np.where(np.isnan(x), x + x, np.where(np.signbit(x), below, x))


@_flushed
def elu_of_16ths(x: F32) -> F32:
    """As `elu`, but n is rounded to 16ths, whose powers are 16 numbers, and P is of degree 1; -0 stays.

    Source: XNNPACK's kernel for aarch64, read; docs/facts/xnnpack.md 3.20.

    >>> elu_of_16ths([1.5, -1.0, -100.0]).tolist()
    [1.5, -0.6321205496788025, -1.0]
    """
    z = np.where(np.isnan(x), x, np.maximum(x, _ELU_SMALLEST))
    biased = fused_multiply_add(z, _FULL_LOG2_E, _BIAS_OF_16THS)
    places = biased.view(np.uint32)
    power = (((places >> np.uint32(4)) << np.uint32(23)) + _POWERS_OF_16THS[places & np.uint32(15)]).view(np.float32)
    t = fused_multiply_add(biased - _BIAS_OF_16THS, _MINUS_LN2, z)
    p = fused_multiply_add(t, _ELU_CUBE_OF_16THS, _ELU_SQUARE_OF_16THS) * t
    scaled = t * power
    return np.where(x < 0, fused_multiply_add(p, scaled, scaled) + (power - _ONE), x)


@_flushed
def log_by_exponent(x: F32) -> F32:
    """As `log`, but n is what the exponent's bits say, 128 of infinity and NaN.

    >>> log_by_exponent([1.0, 2.0, 0.0, 100.0]).tolist()
    [0.0, 0.6931471824645996, -inf, 4.605170249938965]
    """
    scaled = x * _ROOT_OF_TWO
    scaled = np.where(scaled == 0, -np.abs(scaled), scaled)
    places = ((scaled.view(np.int32) & np.int32(-0x800000)) >> 8) | np.float32(256).view(np.int32)
    exponent = places.view(np.float32) - _f32(383)
    mantissa = ((scaled.view(np.uint32) & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32)
    y = mantissa * _ROOT_OF_HALF - _ONE
    quotient = y * polynomial(y, _LOG_OVER) / polynomial(y, _LOG_UNDER)
    return fused_multiply_add(exponent, _LN2, quotient)


_QUOTIENT_LARGEST = _f32(18)
_QUOTIENT_ODD = constants(
    4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05, 8.51377133304701e-03, 2.48287947061529e-01
)
_QUOTIENT_EVEN = constants(
    6.10247389755681e-13,
    5.76102136993427e-09,
    6.29106785017040e-06,
    1.70198817374094e-03,
    1.16817656904453e-01,
    9.93151921023180e-01,
)


def logistic_quotient(x: npt.ArrayLike) -> F32:
    """max(0, x P(x^2) / Q(x^2) + 1/2) of degrees 9 and 10, x limited to +-18. Subnormal numbers count; NaN stays NaN.

    The result may be one unit above 1. Source: docs/facts/onnxruntime.md 3.3; verified by running, 2 300 000
    arguments, equal in all bits.

    >>> logistic_quotient([0.0, 1.0, -1.0, 100.0, -100.0]).tolist()
    [0.5, 0.7310585975646973, 0.2689414322376251, 1.0, 0.0]
    """
    array = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        limited = np.clip(array.reshape(-1), -_QUOTIENT_LARGEST, _QUOTIENT_LARGEST)
        square = limited * limited
        quotient = polynomial(square, _QUOTIENT_ODD) * limited / polynomial(square, _QUOTIENT_EVEN)
        return np.maximum(quotient + _HALF, _ZERO).reshape(array.shape)

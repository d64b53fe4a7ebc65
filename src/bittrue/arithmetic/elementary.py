"""Elementary functions in binary32, pinned to the bit: each is a fixed sequence of IEEE operations.

C libraries disagree about the last bit of these functions, and NumPy's own binary32 versions depend on the processor.
Here are the sequences that the GNU C library 2.36 runs, as arrays: either a short polynomial in binary64 over a table
(rounded once to binary32), or binary32 steps in a given order. Only additions, multiplications, divisions and
conversions are used, none of them fused, so the bits do not depend on the machine. Where that library has a form for
processors with fused multiply-add which differs (12 arguments of sin, 22 of cos, 2 of exp), the fused form is pinned.

`joined` asks for what that library is where its compiler joins products and sums (aarch64): the same steps, but each
product that is added to something is not rounded by itself, and a NaN that arises has its sign bit clear. Functions
without it are the same there; docs/aarch64.md has what was compared.

Arguments are converted to binary32; results are binary32 of the same shape. NaN keeps its payload and becomes quiet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.floats import fused_multiply_add

if TYPE_CHECKING:
    import numpy.typing as npt

# NumPy's annotations lose the width of floats in most operations, so arrays of floats are declared without it.
F32 = np.ndarray[Any, np.dtype[Any]]
F64 = np.ndarray[Any, np.dtype[Any]]

_f32 = np.float32
NEGATIVE_NAN = np.array([0xFFC00000], np.uint32).view(np.float32)[0]
MultiplyAdd = Callable[[Any, Any, Any], F32]


def on_vectors(function: Callable[..., F32]) -> Callable[..., F32]:
    """`function` on arrays of any shape: it sees binary32 vectors, so that no operation meets a lone scalar."""

    @wraps(function)
    def wrapper(*arguments: npt.ArrayLike, **how: bool) -> F32:
        arrays: Any = np.broadcast_arrays(*(np.asarray(x, np.float32) for x in arguments))
        with np.errstate(all="ignore"):
            return function(*(x.reshape(-1) for x in arrays), **how).reshape(arrays[0].shape)

    return wrapper


def multiply_add(joined: bool) -> MultiplyAdd:
    """a b + c, rounded once where `joined`, else twice.

    >>> one = np.float32([1 + 2**-12])
    >>> [multiply_add(joined)(one, one, np.float32(-1 - 2**-11))[0].item() for joined in (False, True)]
    [0.0, 5.960464477539063e-08]
    """
    return fused_multiply_add if joined else lambda a, b, c: a * b + c


def without_value(joined: bool) -> np.float32:
    """The NaN that arises from numbers: x86-64 sets its sign, aarch64 does not.

    >>> np.signbit([without_value(joined) for joined in (False, True)]).tolist()
    [True, False]
    """
    return -NEGATIVE_NAN if joined else NEGATIVE_NAN


def bits_of(x: F32) -> npt.NDArray[np.int64]:
    """The 32 bits of each number as an unsigned integer."""
    return x.view(np.uint32).astype(np.int64)


def from_bits(bits: npt.NDArray[np.int64]) -> F32:
    """The numbers with these 32 bits."""
    return (bits & 0xFFFFFFFF).astype(np.uint32).view(np.float32)


def _scale(x: F32, exponent: npt.NDArray[np.int64]) -> F32:
    """x * 2^exponent by adding to the exponent field: x and the result are normal."""
    return from_bits(bits_of(x) + (exponent << 23))


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
# 32 / ln 2 in two parts whose products with a binary32 number are exact, so that remainders are rounded once.
_INVERSE_LN2 = (float.fromhex("0x1.7154765p+5"), float.fromhex("0x1.5c17fp-26"))
_EXP_OVERFLOW = _f32(float.fromhex("0x1.62e42ep6"))
_EXP_UNDERFLOW = _f32(float.fromhex("-0x1.9fe368p6"))


def _power_of_two(k: F64, r: F64, unit: float) -> F64:
    """2^(k / 32) * 2^(r / (32 unit)): a table entry times a cubic polynomial. k is integral, |r| <= unit / 2."""
    index = k.astype(np.int64)
    factor = (_POWERS[index & 31] + (index << 47)).view(np.float64)
    c3, c2, c1 = (c * unit**power for c, power in zip(_POWER_COEFFICIENTS, (3, 2, 1), strict=True))
    return ((c3 * r + c2) * (r * r) + (c1 * r + 1.0)) * factor


@on_vectors
def exp(x: F32) -> F32:
    """e^x: 2^(k / 32) * P(32 x / ln 2 - k) in binary64, rounded once to binary32; off by at most 0.502 units.

    Above 0x1.62e42ep6 infinity, below -0x1.9fe368p6 zero.
    Source: glibc 2.36 expf (after Arm's optimized routines), read; run on every binary32 number.

    >>> exp([0.0, 1.0, -1.0, 89.0, -104.0]).tolist()
    [1.0, 2.7182817459106445, 0.3678794503211975, inf, 0.0]
    """
    inside = (x >= _EXP_UNDERFLOW) & (x <= _EXP_OVERFLOW)
    wide = np.where(inside, x, _f32(0)).astype(np.float64)
    high, low = wide * _INVERSE_LN2[0], wide * _INVERSE_LN2[1]
    k = np.rint(high + low)
    result = _power_of_two(k, (high - k) + low, 1 / 32).astype(np.float32)
    outside = np.where(x > 0, _f32(np.inf), np.where(x < 0, _f32(0), x + x))
    return np.where(inside, result, outside)


_LN2_HIGH = _f32(6.9313812256e-01)
_LN2_LOW = _f32(9.0580006145e-06)
_EXPM1_INVERSE_LN2 = _f32(1.4426950216e00)
_EXPM1_COEFFICIENTS = tuple(
    _f32(c) for c in (-3.3333335072e-02, 1.5873016091e-03, -7.9365076090e-05, 4.0082177293e-06, -2.0109921195e-07)
)


def horner(x: F32, *coefficients: np.float32, joined: bool = False) -> F32:
    """c0 + x (c1 + x (c2 + ...)), from the inside out."""
    result: Any = coefficients[-1]
    fma = multiply_add(joined)
    for c in coefficients[-2::-1]:
        result = fma(x, result, c)
    return np.asarray(result)


@on_vectors
def expm1(x: F32, joined: bool = False) -> F32:
    """e^x - 1 in binary32 steps: x = k ln 2 + r, a rational approximation of e^r - 1, then 2^k - 1 joined in an order
    that depends on k.

    Source: glibc 2.36 expm1f (after fdlibm), read; run on every binary32 number.

    >>> expm1([0.0, 1.0, -1.0, 1e-10, 89.0, -20.0]).tolist()
    [0.0, 1.7182817459106445, -0.6321205496788025, 1.000000013351432e-10, inf, -1.0]
    """
    one, half, fma = _f32(1), _f32(0.5), multiply_add(joined)
    original, magnitude = x, bits_of(np.abs(x))
    negative = np.signbit(x)
    ordinary = (magnitude < 0x42B17218) & ~(negative & (magnitude >= 0x4195B844))
    x = np.where(ordinary, x, _f32(0))
    sign = np.where(negative, _f32(-1), one)
    far = np.trunc(_EXPM1_INVERSE_LN2 * x + sign * half)
    multiple = np.where(magnitude <= 0x3EB17218, _f32(0), np.where(magnitude < 0x3F851592, sign, far))
    k = multiple.astype(np.int64)
    high, low = fma(-multiple, _LN2_HIGH, x), multiple * _LN2_LOW
    x = high - low
    correction = (high - x) - low
    # e^x - 1 for |x| <= ln(2) / 2 is x - e.
    half_x = half * x
    half_square = x * half_x
    ratio = horner(half_square, one, *_EXPM1_COEFFICIENTS, joined=joined)
    t = fma(-ratio, half_x, _f32(3))
    e = half_square * ((ratio - t) / fma(-x, t, _f32(6)))
    unreduced = fma(x, e, -half_square)
    e = fma(x, e - correction, -correction) - half_square
    # 2^k (1 + x - e) - 1; 2^-k is a normal number wherever it is used.
    inner = np.clip(k, 0, 56)
    power = from_bits((0x7F - inner) << 23)
    small_k = _scale((one - power) - (e - x), inner)
    middle_k = _scale((x - (e + power)) + one, inner)
    other_k = _scale(one - (e - x), k) - one
    result = np.where(k < 23, small_k, middle_k)
    result = np.where((k <= -2) | (k > 56), other_k, result)
    result = np.where(k == 1, np.where(x < _f32(-0.25), _f32(-2) * (e - (x + half)), one + _f32(2) * (x - e)), result)
    result = np.where(k == -1, half * (x - e) - half, result)
    result = np.where(k == 0, np.where(magnitude < 0x33000000, original, x - unreduced), result)
    beyond = np.where(negative, _f32(-1), _f32(np.inf))
    return np.where(ordinary, result, np.where(np.isnan(original), original + original, beyond))


@on_vectors
def tanh(x: F32, joined: bool = False) -> F32:
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
    t = expm1(np.where(large, argument, -argument), joined=joined)
    ratio = np.where(large, two, -t) / (t + two)
    result = np.where(large, one - ratio, ratio)
    result = np.copysign(np.where(magnitude < _f32(22), result, one), x)
    return np.where(magnitude < _f32(2.0**-55), x, np.where(np.isnan(x), x + x, result))


@on_vectors
def logistic(x: F32) -> F32:
    """1 / (1 + e^-x) in binary32 steps; from 16.619047 upwards 1, below -9 e^x.

    Source: docs/facts/litert.md 2.3 (LOGISTIC f32), read; LiteRT's reference kernel, run.

    >>> logistic([0.0, -1.0, 17.0, -20.0]).tolist()
    [0.5, 0.2689414322376251, 1.0, 2.06115369216775e-09]
    """
    one = _f32(1)
    small = x < _f32(-9)
    power = exp(np.where(small, x, -x))
    result = np.where(small, power, one / (one + power))
    return np.where(x > _f32(16.619047164916992188), one, result)


# c near 1 / z and -ln(c) for 16 intervals of z, and polynomials of ln(1 + r) and log2(1 + r).
# fmt: off
_INVERSES = np.array([float.fromhex(c) for c in (
    "0x1.661ec79f8f3bep+0", "0x1.571ed4aaf883dp+0", "0x1.49539f0f010bp+0", "0x1.3c995b0b80385p+0",
    "0x1.30d190c8864a5p+0", "0x1.25e227b0b8eap+0", "0x1.1bb4a4a1a343fp+0", "0x1.12358f08ae5bap+0",
    "0x1.0953f419900a7p+0", "0x1p+0", "0x1.e608cfd9a47acp-1", "0x1.ca4b31f026aap-1",
    "0x1.b2036576afce6p-1", "0x1.9c2d163a1aa2dp-1", "0x1.886e6037841edp-1", "0x1.767dcf5534862p-1",
)])
_LOGARITHMS = np.array([float.fromhex(c) for c in (
    "-0x1.57bf7808caadep-2", "-0x1.2bef0a7c06ddbp-2", "-0x1.01eae7f513a67p-2", "-0x1.b31d8a68224e9p-3",
    "-0x1.6574f0ac07758p-3", "-0x1.1aa2bc79c81p-3", "-0x1.a4e76ce8c0e5ep-4", "-0x1.1973c5a611cccp-4",
    "-0x1.252f438e10c1ep-5", "0x0p+0", "0x1.aa5aa5df25984p-5", "0x1.c5e53aa362eb4p-4",
    "0x1.526e57720db08p-3", "0x1.bc2860d22477p-3", "0x1.1058bc8a07ee1p-2", "0x1.4043057b6ee09p-2",
)])
_BINARY_LOGARITHMS = np.array([float.fromhex(c) for c in (
    "-0x1.efec65b963019p-2", "-0x1.b0b6832d4fca4p-2", "-0x1.7418b0a1fb77bp-2", "-0x1.39de91a6dcf7bp-2",
    "-0x1.01d9bf3f2b631p-2", "-0x1.97c1d1b3b7afp-3", "-0x1.2f9e393af3c9fp-3", "-0x1.960cbbf788d5cp-4",
    "-0x1.a6f9db6475fcep-5", "0x0p+0", "0x1.338ca9f24f53dp-4", "0x1.476a9543891bap-3",
    "0x1.e840b4ac4e4d2p-3", "0x1.40645f0c6651cp-2", "0x1.88e9c2c1b9ff8p-2", "0x1.ce0a44eb17bccp-2",
)])
# fmt: on
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_LOG_COEFFICIENTS = tuple(
    float.fromhex(c) for c in ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2")
)
_LOG2_COEFFICIENTS = tuple(
    float.fromhex(c)
    for c in (
        "0x1.27616c9496e0bp-2",
        "-0x1.71969a075c67ap-2",
        "0x1.ec70a6ca7baddp-2",
        "-0x1.7154748bef6c8p-1",
        "0x1.71547652ab82bp0",
    )
)


def _split(x: F32) -> tuple[npt.NDArray[np.int64], F64, npt.NDArray[np.int64]]:
    """(k, r, i) of x = 2^k z with r = z * inverse[i] - 1, for positive finite x; z lies in [0.699, 1.398)."""
    normal = x >= _f32(2.0**-126)
    bits = np.where(normal, bits_of(x), bits_of(x * _f32(2.0**23)) - (23 << 23))
    distance = bits - 0x3F330000
    i, k = (distance >> 19) & 15, distance >> 23
    z = from_bits(bits - (k << 23)).astype(np.float64)
    return k, z * _INVERSES[i] - 1.0, i


@on_vectors
def log(x: F32, joined: bool = False) -> F32:
    """ln x: k ln 2 + ln c + a cubic polynomial, in binary64, rounded once to binary32; off by at most 0.82 units.

    0 gives minus infinity, negative numbers NaN.
    Source: glibc 2.36 logf (after Arm's optimized routines), read; run on every binary32 number.

    >>> log([1.0, 2.0, 1e-45, 0.0, -1.0]).tolist()
    [0.0, 0.6931471824645996, -103.2789306640625, -inf, nan]
    """
    positive = (x > 0) & (x < np.inf)
    k, r, i = _split(np.where(positive, x, _f32(1)))
    a, b, c = _LOG_COEFFICIENTS
    square = r * r
    result = ((a * square + (b * r + c)) * square + ((_LOGARITHMS[i] + k * _LN2) + r)).astype(np.float32)
    outside = np.where(x == 0, _f32(-np.inf), np.where(x < 0, without_value(joined), x + x))
    return np.where(positive, result, outside)


_POWER_OVERFLOW = float.fromhex("0x1.fffffffd1d571p+6")


@on_vectors
def power(x: F32, y: F32, joined: bool = False) -> F32:
    """x^y: 2^(y log2 x) in binary64, rounded once to binary32; off by at most 0.82 units.

    x^0 and 1^y are 1, whatever the other is (but for signalling NaN). Negative x needs a whole y: otherwise the result
    is NaN.
    Source: glibc 2.36 powf (after Arm's optimized routines), read; run on 2^28 pairs, of which one differs:
    that library's form for processors with fused multiply-add is one unit lower for (9.1e-06, 1.64).

    >>> power([2.0, 2.0, -2.0, -8.0, 0.0], [0.5, -149.0, 3.0, 0.5, -1.0]).tolist()
    [1.4142135381698608, 1.401298464324817e-45, -8.0, nan, inf]
    """
    one, zero, infinity = _f32(1), _f32(0), _f32(np.inf)
    size = np.abs(x)
    ordinary = (size > 0) & (size < infinity) & (np.abs(y) < infinity)
    k, r, i = _split(np.where(ordinary, size, one))
    a, b, c, d, e = _LOG2_COEFFICIENTS
    square = r * r
    tail = (c * r + d) * square + (e * r + (_BINARY_LOGARITHMS[i] + k))
    product = np.where(ordinary, y, zero).astype(np.float64) * ((a * r + b) * (square * square) + tail)
    inside = (product > -150.0) & (product <= _POWER_OVERFLOW)
    argument = np.where(inside, product, 0.0)
    rounded = np.rint(argument * 32)
    finite = _power_of_two(rounded, argument - rounded / 32, 1.0).astype(np.float32)
    result = np.where(inside, finite, np.where(product > 0, infinity, zero))
    # Zero and infinity to a finite power, anything to an infinite one.
    result = np.where(ordinary, result, np.where((size < one) == (y > zero), zero, infinity))
    result = np.where((size == one) & np.isinf(y), one, result)
    negative, whole = np.signbit(x) & ~np.isinf(y), np.trunc(y) == y
    result = np.where(np.isnan(x), x + x, result)
    # This meets negative NaN, too.
    result = np.where(negative & (np.fmod(np.abs(y), _f32(2)) == one), -result, result)
    result = np.where(negative & ~whole & ordinary, without_value(joined), result)
    result = np.where(np.isnan(y), np.where(np.isnan(x), x + x, y + y), result)
    # A signalling NaN has the highest bit of its fraction clear.
    quiet = ~(np.isnan(x) & (bits_of(x) & 0x400000 == 0)) & ~(np.isnan(y) & (bits_of(y) & 0x400000 == 0))
    return np.where(quiet & ((y == zero) | (x == one)), one, result)


_SINE_COEFFICIENTS = tuple(
    float.fromhex(c) for c in ("-0x1.555545995a603p-3", "0x1.1107605230bc4p-7", "-0x1.994eb3774cf24p-13")
)
_COSINE_COEFFICIENTS = tuple(
    float.fromhex(c)
    for c in (
        "0x1p0",
        "-0x1.ffffffd0c621cp-2",
        "0x1.55553e1068f19p-5",
        "-0x1.6c087e89a359dp-10",
        "0x1.99343027bf8c3p-16",
    )
)
_QUARTER_TURNS = float.fromhex("0x1.45f306dc9c883p+23")  # 2^24 * 2 / pi
# pi / 2 in two parts whose products with small integers are exact, so that remainders are rounded once.
_QUARTER_TURN = (float.fromhex("0x1.921fb54442dp0"), float.fromhex("0x1.8p-48"))
_TINY_TURN = float.fromhex("0x1.921fb54442d18p-62")  # pi / 2^63
# Windows of 32 bits into 4 / pi, each 8 bits after the one before.
# fmt: off
_FOUR_OVER_PI = np.array([
    0xA2, 0xA2F9, 0xA2F983, 0xA2F9836E, 0xF9836E4E, 0x836E4E44, 0x6E4E4415, 0x4E441529,
    0x441529FC, 0x1529FC27, 0x29FC2757, 0xFC2757D1, 0x2757D1F5, 0x57D1F534, 0xD1F534DD, 0xF534DDC0,
    0x34DDC0DB, 0xDDC0DB62, 0xC0DB6295, 0xDB629599, 0x6295993C, 0x95993C43, 0x993C4390, 0x3C439041,
], np.uint64)
# fmt: on


def quarter_turns(x: F32) -> tuple[npt.NDArray[np.int64], F64]:
    """(n, r) with x = n pi / 2 + r for |x| < 120, and |x| = n pi / 2 + r for larger finite ones; n modulo 4.

    Source: as sin.

    >>> n, r = quarter_turns(np.float32([1.0, 3.0, -1e10]))
    >>> n.tolist(), r.round(8).tolist()
    ([1, 2, 0], [-0.57079633, -0.14159265, -0.50923107])
    """
    bits = bits_of(np.abs(x))
    small = bits < 0x42F00000
    near = np.where(small, x, _f32(0)).astype(np.float64)
    n = ((near * _QUARTER_TURNS).astype(np.int64) + 0x800000) >> 24
    r = (near - n * _QUARTER_TURN[0]) - n * _QUARTER_TURN[1]
    # Fixed point with 62 fractional bits of quarter turns, modulo 4; wraps in 64 bits.
    window = (bits >> 26) & 15
    mantissa = (((bits & 0xFFFFFF) | 0x800000) << ((bits >> 23) & 7)).astype(np.uint64) & np.uint64(0xFFFFFFFF)
    thirty_two, sixty_two = np.uint64(32), np.uint64(62)
    first, middle, last = (mantissa * _FOUR_OVER_PI[window + offset] for offset in (0, 4, 8))
    turns = ((last >> thirty_two) | (first << thirty_two)) + middle
    far = (turns + np.uint64(1 << 61)) >> sixty_two
    rest = (turns - (far << sixty_two)).view(np.int64).astype(np.float64) * _TINY_TURN
    return np.where(small, n, far.astype(np.int64)) & 3, np.where(small, r, rest)


def _sine_or_cosine(r: F64, sign: F64, cosine: npt.NDArray[np.bool_], negated: npt.NDArray[np.bool_]) -> F32:
    """The sine of sign * r, or the cosine of r, perhaps negated."""
    square = r * r
    a, b, c = _SINE_COEFFICIENTS
    x = r * sign
    cube = x * square
    sine = (x + cube * a) + (cube * square) * (b + square * c)
    c0, c1, c2, c3, c4 = _COSINE_COEFFICIENTS
    fourth = square * square
    even = ((c0 + square * c1) + fourth * c2) + (fourth * square) * (c3 + square * c4)
    return np.asarray(np.where(cosine, np.where(negated, -even, even), sine).astype(np.float32))


@on_vectors
def sin(x: F32, joined: bool = False) -> F32:
    """Sine: reduction to a quarter turn, then a polynomial, in binary64, rounded once; off by at most 0.56 units.

    Infinity gives NaN. Below 2^-12 the result is x.
    Source: glibc 2.36 sinf (after Arm's optimized routines), read; run on every binary32 number.

    >>> sin([0.0, 1.0, -2.0, 1e10]).tolist()
    [0.0, 0.8414709568023682, -0.9092974066734314, -0.48750603199005127]
    """
    finite = np.abs(x) < np.inf
    n, r = quarter_turns(np.where(finite, x, _f32(0)))
    turned = n + np.where((np.abs(x) >= _f32(120)) & np.signbit(x), 2, 0)
    # The sine is odd: large arguments were reduced without their sign.
    sign = np.where((turned & 3 == 0) | (turned & 3 == 3), 1.0, -1.0)
    result = _sine_or_cosine(r, sign, n & 1 == 1, turned & 2 == 2)
    result = np.where(np.abs(x) < _f32(2.0**-12), x, result)
    return np.where(finite, result, np.where(np.isnan(x), x + x, without_value(joined)))


@on_vectors
def cos(x: F32, joined: bool = False) -> F32:
    """Cosine: reduction to a quarter turn, then a polynomial, in binary64, rounded once; off by at most 0.56 units.

    Infinity gives NaN.
    Source: glibc 2.36 cosf (after Arm's optimized routines), read; run on every binary32 number.

    >>> cos([0.0, 1.0, -2.0, 1e10]).tolist()
    [1.0, 0.5403022766113281, -0.416146844625473, 0.8731196522712708]
    """
    finite = np.abs(x) < np.inf
    n, r = quarter_turns(np.where(finite, x, _f32(0)))
    sign = np.where((n == 0) | (n == 3), 1.0, -1.0)
    result = _sine_or_cosine(r, sign, n & 1 == 0, n & 2 == 2)
    result = np.where(np.abs(x) < _f32(2.0**-12), _f32(1), result)
    return np.where(finite, result, np.where(np.isnan(x), x + x, without_value(joined)))


_ATAN_HIGH = np.array([4.6364760399e-01, 7.8539812565e-01, 9.8279368877e-01, 1.5707962513e00], np.float32)
_ATAN_LOW = np.array([5.0121582440e-09, 3.7748947079e-08, 3.4473217170e-08, 7.5497894159e-08], np.float32)
_ATAN_EVEN = tuple(
    _f32(c)
    for c in (
        3.3333334327e-01,
        1.4285714924e-01,
        9.0908870101e-02,
        6.6610731184e-02,
        4.9768779427e-02,
        1.6285819933e-02,
    )
)
_ATAN_ODD = tuple(
    _f32(c) for c in (-2.0000000298e-01, -1.1111110449e-01, -7.6918758452e-02, -5.8335702866e-02, -3.6531571299e-02)
)


@on_vectors
def atan(x: F32, joined: bool = False) -> F32:
    """Arc tangent in binary32 steps: reduction by the angles of 0, 1/2, 1, 3/2 and infinity, then a polynomial.

    Source: glibc 2.36 atanf (after fdlibm), read; run on every binary32 number.

    >>> atan([0.0, 1.0, -2.0, 1e38]).tolist()
    [0.0, 0.7853981852531433, -1.1071487665176392, 1.5707963705062866]
    """
    one, two, half_three, fma = _f32(1), _f32(2), _f32(1.5), multiply_add(joined)
    original, size = x, np.abs(x)
    limits = np.array([0.4375, 0.6875, 1.1875, 2.4375], np.float32)
    interval = np.searchsorted(limits, np.where(np.isnan(size), one, size), side="right")
    x = np.choose(
        interval,
        [
            x,
            (two * size - one) / (two + size),
            (size - one) / (size + one),
            (size - half_three) / fma(half_three, size, one),
            _f32(-1) / size,
        ],
    )
    z = x * x
    w = z * z
    total = fma(z, horner(w, *_ATAN_EVEN, joined=joined), w * horner(w, *_ATAN_ODD, joined=joined))
    angle = np.maximum(interval - 1, 0)
    far = _ATAN_HIGH[angle] - ((x * total - _ATAN_LOW[angle]) - x)
    far = np.where(size >= _f32(2.0**25), _ATAN_HIGH[3] + _ATAN_LOW[3], far)
    result = np.where(interval == 0, x - x * total, np.copysign(far, original))
    result = np.where(size < _f32(2.0**-29), original, result)
    return np.where(np.isnan(original), original + original, result)


_PI, _HALF_PI, _QUARTER_PI = _f32(3.1415927410e00), _f32(1.5707963705e00), _f32(7.8539818525e-01)
_PI_LOW = _f32(-8.7422776573e-08)


@on_vectors
def atan2(y: F32, x: F32, joined: bool = False) -> F32:
    """The angle of the point (x, y): atan |y / x|, moved to its quadrant.

    Source: glibc 2.36 atan2f (after fdlibm), read; run on 2^28 pairs.

    >>> atan2([0.0, 1.0, -1.0, -0.0], [1.0, 1.0, -1.0, -1.0]).tolist()
    [0.0, 0.7853981852531433, -2.356194496154785, -3.1415927410125732]
    """
    one, zero = _f32(1), _f32(0)
    # The difference of the exponents, with the mantissas' borrow.
    k = (bits_of(np.abs(y)) - bits_of(np.abs(x))) >> 23
    backwards = np.signbit(x)
    angle = np.where(backwards & (k < -60), zero, atan(np.abs(y / x), joined=joined))
    angle = np.where(k > 60, _HALF_PI + _f32(0.5) * _PI_LOW, angle)
    turned = _PI - (angle - _PI_LOW)
    result = np.where(backwards, turned, angle)
    result = np.where(np.isinf(y), _HALF_PI, result)
    result = np.where(np.isinf(x), np.where(backwards, _PI, zero), result)
    diagonal = np.where(backwards, _f32(3) * _QUARTER_PI, _QUARTER_PI)
    result = np.where(np.isinf(x) & np.isinf(y), diagonal, result)
    result = np.where(x == zero, _HALF_PI, result)
    result = np.where(y == zero, np.where(backwards, _PI, zero), result)
    result = np.copysign(result, y)
    result = np.where(x == one, atan(y, joined=joined), result)
    # Of two NaNs one stays.
    missing = np.where(np.isnan(y) & (joined | ~np.isnan(x)), y + y, x + x)
    return np.where(np.isnan(x) | np.isnan(y), missing, result)


_ERFC_CENTRE = tuple(
    tuple(_f32(c) for c in row)
    for row in (
        (1.2837916613e-01, -3.2504209876e-01, -2.8481749818e-02, -5.7702702470e-03, -2.3763017452e-05),
        (1.0, 3.9791721106e-01, 6.5022252500e-02, 5.0813062117e-03, 1.3249473704e-04, -3.9602282413e-06),
    )
)
_ERFC_MIDDLE = tuple(
    tuple(_f32(c) for c in row)
    for row in (
        (-2.3621185683e-03, 4.1485610604e-01, -3.7220788002e-01, 3.1834661961e-01, -1.1089469492e-01, 3.5478305072e-02,
         -2.1663755178e-03),
        (1.0, 1.0642088205e-01, 5.4039794207e-01, 7.1828655899e-02, 1.2617121637e-01, 1.3637083583e-02,
         1.1984500103e-02),
    )
)  # fmt: skip
_ERFC_OUTER = tuple(
    tuple(_f32(c) for c in row)
    for row in (
        (-9.8649440333e-03, -6.9385856390e-01, -1.0558626175e+01, -6.2375331879e+01, -1.6239666748e+02,
         -1.8460508728e+02, -8.1287437439e+01, -9.8143291473e+00),
        (1.0, 1.9651271820e+01, 1.3765776062e+02, 4.3456588745e+02, 6.4538726807e+02, 4.2900814819e+02,
         1.0863500214e+02, 6.5702495575e+00, -6.0424413532e-02),
        (-9.8649431020e-03, -7.9928326607e-01, -1.7757955551e+01, -1.6063638306e+02, -6.3756646729e+02,
         -1.0250950928e+03, -4.8351919556e+02),
        (1.0, 3.0338060379e+01, 3.2579251099e+02, 1.5367296143e+03, 3.1998581543e+03, 2.5530502930e+03,
         4.7452853394e+02, -2.2440952301e+01),
    )
)  # fmt: skip
_ERF_OF_ONE = _f32(8.4506291151e-01)  # about


@on_vectors
def erfc(x: F32, joined: bool = False) -> F32:
    """1 - erf(x) in binary32 steps: rational functions on four intervals, times exponentials in the outer two.

    Source: glibc 2.36 erfcf (after fdlibm), read; run on every binary32 number.

    >>> erfc([0.0, 0.5, 1.0, -3.0, 10.0]).tolist()
    [1.0, 0.4795001149177551, 0.15729920566082, 1.999977946281433, 2.802596928649634e-45]
    """

    def fraction(x: F32, coefficients: tuple[tuple[np.float32, ...], ...]) -> F32:
        top, bottom = (horner(x, *c, joined=joined) for c in coefficients)
        return np.asarray(top / bottom)

    half, one, two = _f32(0.5), _f32(1), _f32(2)
    size = np.abs(x)
    z = x * x
    y = fraction(z, _ERFC_CENTRE)
    result = np.where(x < _f32(0.25), one - (x + x * y), half - (x * y + (x - half)))
    s = size - one
    ratio = fraction(s, _ERFC_MIDDLE)
    middle = np.where(x > 0, (one - _ERF_OF_ONE) - ratio, one + (_ERF_OF_ONE + ratio))
    result = np.where(size >= _f32(0.84375), middle, result)
    q = one / (size * size)
    bits = bits_of(size)
    further = bits >= 0x4036DB6D  # 1 / 0.35
    ratio = np.where(further, fraction(q, _ERFC_OUTER[2:]), fraction(q, _ERFC_OUTER[:2]))
    short = from_bits(bits & 0xFFFFE000)
    r = exp(-short * short - _f32(0.5625)) * exp(multiply_add(joined)(short - size, short + size, ratio))
    outer = np.where(x > 0, r / size, np.where(size >= _f32(6), two, two - r / size))
    result = np.where(size >= _f32(1.25), outer, result)
    result = np.where(size >= _f32(28), np.where(x > 0, _f32(0), two), result)
    return np.where(np.isnan(x), x + x, result)


_LN2_HIGH, _LN2_LOW = _f32(6.9313812256e-01), _f32(9.0580006145e-06)
_LOG1P = tuple(map(_f32, (6.6666668653e-01, 4.0000000596e-01, 2.8571429849e-01, 2.2222198546e-01, 1.8183572590e-01,
                          1.5313838422e-01, 1.4798198640e-01)))  # fmt: skip


@on_vectors
def log1p(x: F32, joined: bool = False) -> F32:
    """log(1 + x) for 0 <= x <= 1 (or NaN), by u = 1 + x = 2^k (1 + f) and what the sum lost.

    Source: GNU C library 2.36, s_log1pf.c, read; compared with it.

    >>> log1p([0.0, 1e-9, 0.5, 1.0]).tolist()
    [0.0, 9.999999717180685e-10, 0.40546509623527527, 0.6931471824645996]
    """
    one, half, fma = _f32(1), _f32(0.5), multiply_add(joined)
    near = x < np.uint32(0x3ED413D7).view(np.float32)
    u = one + x
    k = (bits_of(u) >> 23) - 127
    lost = np.where(k > 0, one - (u - x), x - (u - one)) / u
    fraction = bits_of(u) & 0x7FFFFF
    small = fraction < 0x3504F7
    reduced = from_bits(fraction | np.where(small, 0x3F800000, 0x3F000000))
    k = np.where(near, 0, k + ~small).astype(np.float32)
    zero = np.where(near, False, np.where(small, fraction, (0x00800000 - fraction) >> 2) == 0)
    f = np.where(near, x, reduced - one)
    lost = np.where(near, _f32(0), lost)
    square = half * f * f
    s = f / (_f32(2) + f)
    z = s * s
    r = s * fma(z, horner(z, *_LOG1P, joined=joined), square)
    rest = fma(k, _LN2_LOW, lost)
    general = np.where(k == 0, f - (square - r), fma(k, _LN2_HIGH, -((square - (r + rest)) - f)))
    straight = square * fma(-_f32(2 / 3), f, one)
    exact = np.where(f == 0, fma(k, _LN2_HIGH, rest), fma(k, _LN2_HIGH, -((straight - rest) - f)))
    tiny = np.where(x < 2.0**-54, x, x - x * x * half)
    result = np.where(zero, exact, general)
    return np.where(np.isnan(x), x + x, np.where(x < 2.0**-29, tiny, result))

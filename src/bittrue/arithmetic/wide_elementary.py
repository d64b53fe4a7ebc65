"""Elementary functions in binary64, pinned to the bit: each is a fixed sequence of IEEE operations.

Here are the sequences that the GNU C library 2.36 runs where products are joined to sums: on aarch64, and on x86-64
with fused multiply-add. They are a table and a short polynomial each, but for the hyperbolic tangent (`hyperbolic`).
500,000 results of each function on aarch64 and 2,000,000 on x86-64 with fused multiply-add were the same.

Arguments are converted to binary64; results are binary64 of the same shape. NaN keeps its payload and becomes quiet;
one that arises from numbers has its sign bit clear, as on aarch64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

import bittrue.arithmetic.hyperbolic as hyperbolic
from bittrue.arithmetic.floats import fused_multiply_add_64 as fma
from bittrue.arithmetic.wide_tables import CIRCLE, LOGARITHMS, LONG_LOGARITHMS, POWERS, TURNS

if TYPE_CHECKING:
    import numpy.typing as npt

F64 = np.ndarray[Any, np.dtype[Any]]
S64 = np.ndarray[Any, np.dtype[np.int64]]
Truth = np.ndarray[Any, np.dtype[np.bool_]]

_from_hex = float.fromhex


def _on_vectors(function: Callable[..., F64]) -> Callable[..., F64]:
    """`function` on arrays of any shape: it sees binary64 vectors."""

    @wraps(function)
    def wrapper(*arguments: npt.ArrayLike) -> F64:
        arrays: Any = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in arguments))
        with np.errstate(all="ignore"):
            return function(*(np.ascontiguousarray(x).reshape(-1) for x in arrays)).reshape(arrays[0].shape)

    return wrapper


def _bits(x: F64) -> S64:
    return x.view(np.int64)


_INVERSE_LN2 = _from_hex("0x1.71547652b82fep+7")
_LN2_128TH = (_from_hex("-0x1.62e42fefa0000p-8"), _from_hex("-0x1.cf79abc9e3b3ap-47"))
_EXP = tuple(
    map(_from_hex, ("0x1.ffffffffffdbdp-2", "0x1.555555555543cp-3", "0x1.55555cf172b91p-5", "0x1.1111167a4d017p-7"))
)


def _power_of_e(x: F64, rest: F64) -> F64:
    """e^(x + rest): 2^(k / 128) and a polynomial of degree 5 in what is left of x; infinity from 1024 ln 2 on."""
    near, far = np.abs(x) < 2.0**-54, np.abs(x) >= 1024
    inside = np.where(near | far, 1.0, x)
    scaled = inside * _INVERSE_LN2
    # Ties go away from zero, but there are none.
    k = np.rint(scaled)
    whole = k.astype(np.int64)
    r = fma(k, _LN2_128TH[1], fma(k, _LN2_128TH[0], inside)) + np.where(near | far, 0.0, rest)
    entry = POWERS[whole & 127]
    exponent = whole >> 7
    # A number from 1 to 2; powers of two come later, where nothing is lost.
    factor = (entry[:, 1] + ((whole & 127) << 45).view(np.uint64)).view(np.float64)
    tail = np.ascontiguousarray(entry[:, 0]).view(np.float64)
    square = r * r
    part = fma(fma(_EXP[1], r, _EXP[0]), square, r + tail)
    part = fma(square * square, fma(_EXP[3], r, _EXP[2]), part)
    result = np.ldexp(fma(part, factor, factor), exponent.astype(np.int32))
    # Of what is perhaps below the smallest normal number the product is rounded, and the sum once.
    small = (inside <= -512) & (whole < 0)
    factor = np.ldexp(factor, np.where(small, exponent + 1022, 0).astype(np.int32))
    product = factor * part
    y = factor + product
    lost, total = factor - y + product, 1.0 + y
    y = np.where(y < 1, (total + (1.0 - total + y + lost)) - 1.0, y)
    result = np.where(small, np.ldexp(y, -1022), result)
    return np.where(near, 1.0 + x, np.where(far, np.where(x < 0, 0.0, np.inf), result))


@_on_vectors
def exp(x: F64) -> F64:
    """e^x; off by at most 0.51 units.

    Source: glibc 2.36 exp (after Arm's optimized routines), read in machine code, and run.

    >>> exp([0.0, 1.0, -1.0, 710.0, -745.0]).tolist()
    [1.0, 2.718281828459045, 0.36787944117144233, inf, 5e-324]
    """
    return np.where(np.isnan(x), x + x, _power_of_e(np.where(np.isnan(x), 0.0, x), np.zeros_like(x)))


_LN2 = (_from_hex("0x1.62e42fefa3800p-1"), _from_hex("0x1.ef35793c76730p-45"))
_LOG = tuple(
    map(
        _from_hex,
        (
            "-0x1.0000000000001p-1",
            "0x1.555555551305bp-2",
            "-0x1.fffffffeb4590p-3",
            "0x1.999b324f10111p-3",
            "-0x1.55575e506c89fp-3",
        ),
    )
)
_LOG_NEAR = tuple(
    map(
        _from_hex,
        (
            "-0x1p-1",
            "0x1.5555555555577p-2",
            "-0x1.ffffffffffdcbp-3",
            "0x1.999999995dd0cp-3",
            "-0x1.55555556745a7p-3",
            "0x1.24924a344de30p-3",
            "-0x1.fffffa4423d65p-4",
            "0x1.c7184282ad6cap-4",
            "-0x1.999eb43b068ffp-4",
            "0x1.78182f7afd085p-4",
            "-0x1.5521375d145cdp-4",
        ),
    )
)


def _near_one(x: F64) -> F64:
    """ln x for 0.9375 <= x < 1.0647."""
    c = _LOG_NEAR
    r = x - 1.0
    square = r * r
    cube = r * square
    total = fma(c[10], cube, fma(c[9], square, fma(c[8], r, c[7])))
    total = fma(total, cube, fma(c[6], square, fma(c[5], r, c[4])))
    total = fma(total, cube, fma(c[3], square, fma(c[2], r, c[1])))
    # r in two parts, so that half of the first one's square is exact.
    upper = fma(-r, 2.0**27, fma(r, 2.0**27, r))
    lower, half = r - upper, upper * upper
    high = fma(half, c[0], r)
    low = fma(c[0] * lower, r + upper, fma(half, c[0], r - high))
    return np.where(x == 1, 0.0, high + fma(total, cube, low))


def _split(x: F64, first: int) -> tuple[F64, F64, S64]:
    """(k, z, i) with x = 2^k z, z from the number with the bits `first` on and in the i-th of 128 intervals."""
    bits = np.where(x < 2.0**-1022, _bits(x * 2.0**52) - (52 << 52), _bits(x))
    distance = bits - first
    k = distance >> 52
    return k.astype(np.float64), (bits - (k << 52)).view(np.float64), distance >> 45 & 127


@_on_vectors
def log(x: F64) -> F64:
    """ln x; off by at most 0.52 units. 0 gives minus infinity, negative numbers NaN.

    Source: glibc 2.36 log (after Arm's optimized routines), read in machine code, and run.

    >>> log([1.0, 2.0, 5e-324, 0.0, -1.0]).tolist()
    [0.0, 0.6931471805599453, -744.4400719213812, -inf, nan]
    """
    positive = (x > 0) & (x < np.inf)
    near = (x >= 1 - 2.0**-4) & (x < 1 + _from_hex("0x1.09p-4"))
    k, z, i = _split(np.where(positive, x, 2.0), 0x3FE6000000000000)
    inverse, logarithm = LOGARITHMS[i].T
    r, w = fma(z, inverse, -1.0), fma(k, _LN2[0], logarithm)
    high, square = r + w, r * r
    low = fma(_LOG[0], square, fma(k, _LN2[1], w - high + r))
    total = fma(fma(_LOG[4], r, _LOG[3]), square, fma(_LOG[2], r, _LOG[1]))
    result = fma(r * square, total, low) + high
    result = np.where(near, _near_one(np.where(near, x, 1.0)), result)
    outside = np.where(x == 0, -np.inf, np.where(x < 0, np.nan, x + x))
    return np.where(positive, result, outside)


_POWER = tuple(
    map(
        _from_hex,
        (
            "-0x1p-1",
            "-0x1.5555555555560p-1",
            "0x1.0000000000006p-1",
            "0x1.999999959554ep-1",
            "-0x1.555555529a47ap-1",
            "-0x1.2495b9b4845e9p+0",
            "0x1.0002b8b263fc3p+0",
        ),
    )
)


def _long_logarithm(x: F64) -> tuple[F64, F64]:
    """ln x for positive finite x, in two parts."""
    c = _POWER
    k, z, i = _split(x, 0x3FE6955500000000)
    inverse, logarithm, lost = LONG_LOGARITHMS[i].T
    r, first = fma(z, inverse, -1.0), fma(k, _LN2[0], logarithm)
    whole, halves = first + r, c[0] * r
    squares = r * halves
    high = whole + squares
    low = fma(k, _LN2[1], lost) + (first - whole + r)
    low = low + fma(halves, r, -squares) + (whole - high + squares)
    inner = fma(squares, fma(r, c[6], c[5]), fma(r, c[4], c[3]))
    low = fma(r * squares, fma(squares, inner, fma(r, c[2], c[1])), low)
    total = high + low
    return total, high - total + low


def _signalling(x: F64) -> Truth:
    return np.isnan(x) & (_bits(x) >> 51 & 1 == 0)


@_on_vectors
def power(x: F64, y: F64) -> F64:
    """x^y; off by at most 0.52 units.

    x^0 and 1^y are 1, whatever the other is (but for signalling NaN). Negative x needs a whole y: otherwise the result
    is NaN.
    Source: glibc 2.36 pow (after Arm's optimized routines), read in machine code, and run.

    >>> power([2.0, 2.0, -2.0, -8.0, 0.0], [0.5, -1074.0, 3.0, 0.5, -1.0]).tolist()
    [1.4142135623730951, 5e-324, -8.0, nan, inf]
    """
    size, large = np.abs(x), np.abs(y) >= 2.0**63
    ordinary = (size > 0) & (size < np.inf) & ~large & (np.abs(y) >= 2.0**-65)
    base, exponent = np.where(ordinary, size, 1.0), np.where(ordinary, y, 1.0)
    high, low = _long_logarithm(base)
    product = exponent * high
    result = _power_of_e(product, fma(exponent, low, fma(exponent, high, -product)))
    # Zero, infinity, and exponents of which the size alone counts.
    grows = (size > 1) == (y > 0)
    beyond = np.where(grows, np.inf, 0.0)
    result = np.where(ordinary, result, np.where(large | (size == 0) | np.isinf(size), beyond, 1.0))
    result = np.where((size == 1) & large, 1.0, result)
    odd = np.abs(np.fmod(y, 2.0)) == 1
    missing = np.isnan(x) & np.isfinite(y)
    result = np.where(missing, x + x, result)
    # A NaN's sign changes, too.
    result = np.where(np.signbit(x) & odd, -result, result)
    result = np.where((x < 0) & (size < np.inf) & np.isfinite(y) & (np.trunc(y) != y), np.nan, result)
    result = np.where(np.isnan(y) | np.isnan(x) & ~missing, x + y, result)
    result = np.where(y == 0, np.where(_signalling(x), x + y, 1.0), result)
    return np.where((x == 1) & (y != 0), np.where(_signalling(y), x + y, 1.0), result)


_HALF_PI, _HALF_PI_LOW = _from_hex("0x1.921fb54442d18p+0"), _from_hex("0x1.1a62633145c07p-54")
_WHOLE, _FOURS, _TO_128THS = 1.5 * 2.0**52, 1.5 * 2.0**54, 1.5 * 2.0**45
_HALF_PI_PARTS = tuple(
    map(
        _from_hex,
        ("0x1.921fb58000000p+0", "-0x1.dde973c000000p-27", "-0x1.cb3b398000000p-55", "-0x1.d747f23e32ed7p-83"),
    )
)
_QUARTER_TURNS = _from_hex("0x1.45f306dc9c883p-1")
_VERSINE = (_from_hex("0x1.6c16bedd9e239p-10"), _from_hex("-0x1.5555555555535p-5"))
_CUBIC = (_from_hex("0x1.11110e829872fp-7"), _from_hex("-0x1.5555555555515p-3"))
_SINE = tuple(
    map(
        _from_hex,
        (
            "-0x1.addffc2fcdf59p-26",
            "0x1.71de27b9a7ed9p-19",
            "-0x1.a01a019db08b8p-13",
            "0x1.1111111110ecep-7",
            "-0x1.5555555555555p-3",
        ),
    )
)
_SERIES_BELOW = _from_hex("0x1.020c49ba5e354p-3")


def _near(size: F64) -> tuple[F64, F64, F64, F64, F64]:
    """What is left of an angle without the nearest 128th, then sine and cosine of that one, each in two parts."""
    shifted = size + _TO_128THS
    return (size - (shifted - _TO_128THS), *CIRCLE[_bits(shifted) & 0xFFFFFFFF].T)


def _versine(square: F64) -> F64:
    """1 - cos(x)."""
    return square * fma(square, fma(square, _VERSINE[0], _VERSINE[1]), 0.5)


def _cubic(square: F64) -> F64:
    """(sin(x) - x) / x^3."""
    return fma(square, _CUBIC[0], _CUBIC[1])


def _sine(x: F64, low: F64) -> F64:
    """sin(x + low) for |x| up to 0.86."""
    square = x * x
    total: F64 = np.full_like(x, _SINE[0])
    for coefficient in _SINE[1:]:
        total = fma(square, total, coefficient)
    series = x + fma(square, fma(total, x, -(low * 0.5)), low)
    low = np.where(x <= 0, -low, low)
    rest, sine, sine_low, cosine, cosine_low = _near(np.abs(x))
    square = rest * rest
    s = rest + fma(rest * square, _cubic(square), low)
    c = fma(rest, low, _versine(square))
    result = sine + fma(s, cosine, fma(-c, sine, fma(s, cosine_low, sine_low)))
    return np.where(np.abs(x) < _SERIES_BELOW, series, np.copysign(result, x))


def _cosine(x: F64, low: F64) -> F64:
    """cos(x + low) for |x| up to 0.86."""
    rest, sine, sine_low, cosine, cosine_low = _near(np.abs(x))
    rest = rest + np.where(x < 0, -low, low)
    square = rest * rest
    s, c = fma(rest * square, _cubic(square), rest), _versine(square)
    return cosine + fma(-s, sine, fma(-c, cosine, fma(-s, sine_low, cosine_low)))


def _reduced(x: F64) -> tuple[F64, F64, S64]:
    """x less quarter turns in two parts, and how many these were; |x| < 105414350."""
    shifted = fma(x, _QUARTER_TURNS, _WHOLE)
    turns = shifted - _WHOLE
    first, second, third, fourth = _HALF_PI_PARTS
    y = fma(-turns, second, fma(-turns, first, x))
    middle = fma(-turns, third, y)
    lost = fma(-turns, third, y - middle)
    high = fma(-turns, fourth, middle)
    return high, lost + fma(-turns, fourth, middle - high), _bits(shifted)


def _digits(x: F64) -> tuple[F64, F64, F64]:
    """Whole quarter turns, less fours, and a fraction of one in two parts: sums of products with digits of 2 / pi."""
    first = np.maximum((_bits(x) >> 52 & 0x7FF) - 450, 0) // 24
    unit: F64 = np.asarray(np.ldexp(1.0, (576 - 24 * first).astype(np.int32)))
    parts = []
    for i in range(6):
        parts.append(x * TURNS[first + i] * unit)
        unit = unit * 2.0**-24
    turns, tail = np.zeros_like(x), np.zeros_like(x)
    for i in range(3):
        whole = (parts[i] + _WHOLE) - _WHOLE
        turns, parts[i] = turns + whole, parts[i] - whole
    for part in reversed(parts):
        tail = tail + part
    lost = parts[0] - tail
    for part in parts[1:]:
        lost = lost + part
    whole = (tail + _WHOLE) - _WHOLE
    turns, tail = turns + whole, tail - whole
    high = tail + lost
    return turns - ((turns + _FOURS) - _FOURS), high, (tail - high) + lost


def _upper(x: F64) -> F64:
    """The upper 26 bits."""
    wide = x * (2.0**27 + 1)
    return wide - (wide - x)


def _reduced_far(x: F64) -> tuple[F64, F64, S64]:
    """The same for finite numbers of any size; none of the products here is joined to a sum."""
    x = x * 2.0**-600
    upper = _upper(x)
    turns, first, first_low = _digits(upper)
    more, second, second_low = _digits(x - upper)
    turns, total = turns + more, first + second
    larger = np.abs(first) > np.abs(second)
    lost = np.where(larger, (first - total) + second, (second - total) + first)
    step = np.where(total > 0.5, 1.0, np.where(total < -0.5, -1.0, 0.0))
    total, turns = total - step, turns + step
    whole = ((lost + first_low) + second_low) + total
    rest = ((total - whole) + lost) + (first_low + second_low)
    # Times half of pi, whose second part has another rounding here.
    high = _upper(whole)
    low, product = whole - high, whole * _HALF_PI
    first_part, second_part = _HALF_PI_PARTS[0], _from_hex("-0x1.dde9740000000p-27")
    error = ((high * first_part - product) + high * second_part) + low * first_part
    error = error + (rest * _HALF_PI + (low * second_part + whole * _HALF_PI_LOW))
    angle = product + error
    return angle, (product - angle) + error, turns.astype(np.int64)


def _circular(x: F64, quarter: int) -> F64:
    """The sine of x plus so many quarter turns, for 2.42 < |x|."""
    far = _bits(np.abs(x)) >> 32 >= 0x419921FB
    parts = [
        np.where(far, beyond, near)
        for near, beyond in zip(_reduced(np.where(far, 3.0, x)), _reduced_far(np.where(far, x, 2.0**30)), strict=True)
    ]
    high, low, turns = parts[0], parts[1], parts[2] + quarter
    result = np.where(turns & 1 == 1, _cosine(high, low), _sine(high, low))
    return np.where(turns & 2 == 2, -result, result)


@_on_vectors
def sin(x: F64) -> F64:
    """Sine; off by at most 0.55 units. Infinity gives NaN.

    Source: glibc 2.36 sin (after IBM's accurate library), read in machine code, and run.

    >>> sin([0.0, 1.0, -2.0, 1e10, 1e300]).tolist()
    [0.0, 0.8414709848078965, -0.9092974268256817, -0.4875060250875107, -0.8178819121159085]
    """
    size = _bits(np.abs(x)) >> 32
    small, middle, none = size < 0x3FEB6000, size < 0x400368FD, size >= 0x7FF00000
    result = _circular(np.where(middle | none, 3.0, x), 0)
    between = np.where(middle & ~small, x, 1.5)
    by_cosine = np.copysign(_cosine(_HALF_PI - np.abs(between), np.full_like(x, _HALF_PI_LOW)), between)
    result = np.where(middle, by_cosine, result)
    result = np.where(small, _sine(np.where(small, x, 0.5), np.zeros_like(x)), result)
    return np.where(size < 0x3E500000, x, np.where(none, np.where(np.isnan(x), x + x, np.nan), result))


@_on_vectors
def cos(x: F64) -> F64:
    """Cosine; off by at most 0.55 units. Infinity gives NaN.

    Source: glibc 2.36 cos (after IBM's accurate library), read in machine code, and run.

    >>> cos([0.0, 1.0, -2.0, 1e10, 1e300]).tolist()
    [1.0, 0.5403023058681398, -0.4161468365471424, 0.873119622676856, -0.5753861119575491]
    """
    size = _bits(np.abs(x)) >> 32
    small, middle, none = size < 0x3FEB6000, size < 0x400368FD, size >= 0x7FF00000
    result = _circular(np.where(middle | none, 3.0, x), 1)
    y = _HALF_PI - np.abs(np.where(middle & ~small, x, 1.5))
    angle = y + _HALF_PI_LOW
    result = np.where(middle, _sine(angle, (y - angle) + _HALF_PI_LOW), result)
    result = np.where(small, _cosine(np.where(small, x, 0.5), np.zeros_like(x)), result)
    return np.where(size < 0x3E400000, 1.0, np.where(none, np.where(np.isnan(x), x + x, np.nan), result))


@_on_vectors
def tanh(x: F64) -> F64:
    """The hyperbolic tangent.

    Source: glibc 2.36 tanh (after fdlibm), read in machine code, and run.

    >>> tanh([0.5, -20.0, 30.0, 0.0]).tolist()
    [0.46211715726000974, -1.0, 1.0, 0.0]
    """
    return np.where(np.isnan(x), x + x, hyperbolic.tanh(x, joined=True))

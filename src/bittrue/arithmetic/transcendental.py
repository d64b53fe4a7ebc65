"""Exponential, reciprocal, inverse square root, logarithm, logistic and tanh in fixed point.

F(k) is a signed raw integer with k integer bits: 31 - k fractional bits in 32 bits, 15 - k in 16 bits. The product of
F(a) and F(b) is their doubling high product (ties up) and has a + b integer bits. "One" in F(0) is the largest raw.
All constants are 32-bit ones; the 16-bit flavour divides them by 2^16, ties away.

Domains are not checked unless an error is named. Sums stay within 32 (16) bits on the stated domains unless a wrap is
written out. No function here has ties or saturation of its own; those are the ones of its steps in ``fixed_point``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bittrue.arithmetic.fixed_point import (
    S16_MAX,
    S32_MAX,
    S64,
    as_s64,
    count_leading_zeros_s32,
    divide_by_power_of_two_away,
    doubling_high_multiply_up,
    doubling_high_multiply_up_s16,
    half_sum_away,
    saturating_add_s16,
    saturating_add_s32,
    saturating_multiply_by_power_of_two,
    wrap_s32,
)

if TYPE_CHECKING:
    import numpy.typing as npt

EXP_OF_MINUS_EIGHTH = 1895147668  # F0
ONE_THIRD = 715827883  # F0
# (e, exp(-2^e) in F0): one factor per bit of the integral multiple of 1/4.
EXP_FACTORS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
FORTY_EIGHT_SEVENTEENTHS = 1515870810  # F2
MINUS_THIRTY_TWO_SEVENTEENTHS = -1010580540  # F2
LOG_OF_2 = 1488522236  # F0, as are all below
FOURTH_ROOT_OF_HALF = 1805811301
ROOT_OF_HALF = 1518500250
LOG_NUMERATOR = 117049297
LOG_DENOMINATOR_SQUARE = 127690142
LOG_DENOMINATOR_CONSTANT = 1057819769
LOG_DENOMINATOR_LINEAR = 638450708


def _multiply(a: npt.ArrayLike, b: npt.ArrayLike, bits: int) -> S64:
    return doubling_high_multiply_up(a, b) if bits == 32 else doubling_high_multiply_up_s16(a, b)


def _constant(raw_s32: int, bits: int) -> int:
    return int(divide_by_power_of_two_away(raw_s32, 32 - bits))


def _exp_on_minus_quarter_to_zero(raw: S64, bits: int) -> S64:
    x = raw + (1 << (bits - 4))  # distance from -1/8, the centre of the Taylor series
    x2 = _multiply(x, x, bits)
    x3 = _multiply(x2, x, bits)
    x4 = _multiply(x2, x2, bits)
    x4_quarter_and_x3 = divide_by_power_of_two_away(x4, 2) + x3
    third = _constant(ONE_THIRD, bits)
    tail = divide_by_power_of_two_away(_multiply(x4_quarter_and_x3, third, bits) + x2, 1)
    centre = _constant(EXP_OF_MINUS_EIGHTH, bits)
    rest = _multiply(centre, x + tail, bits)
    # exp(x) near 1 rounds up to 2^15 in 16 bits; in 32 bits the sum stays below 2^31.
    return centre + rest if bits == 32 else saturating_add_s16(centre, rest)


def _exp_on_negative(raw: S64, integer_bits: int, bits: int) -> S64:
    fractional_bits = bits - 1 - integer_bits
    if not 0 <= integer_bits <= bits - 3:
        raise ValueError(f"integer_bits must lie in 0..{bits - 3}, found {integer_bits}")
    quarter = 1 << (fractional_bits - 2)
    modulo_quarter = (raw & (quarter - 1)) - quarter
    result = _exp_on_minus_quarter_to_zero(
        saturating_multiply_by_power_of_two(modulo_quarter, integer_bits, bits), bits
    )
    remainder = modulo_quarter - raw
    for power, factor in EXP_FACTORS:
        if integer_bits > power:
            taken = (remainder & (1 << (fractional_bits + power))) != 0
            result = np.where(taken, _multiply(result, _constant(factor, bits), bits), result)
    if integer_bits > 5:  # the factors cover exponents above -32 only
        result = np.where(raw < -(1 << (fractional_bits + 5)), 0, result)
    return np.where(raw == 0, (1 << (bits - 1)) - 1, result)


def _newton_reciprocal_of_half_denominator(raw: S64, bits: int) -> S64:
    """Return 1 / ((1 + x) / 2) in F2 by three Newton steps from 48/17 - 32/17 * (1 + x) / 2."""
    half_denominator = half_sum_away(raw, (1 << (bits - 1)) - 1)
    slope = _constant(MINUS_THIRTY_TWO_SEVENTEENTHS, bits)
    x = _constant(FORTY_EIGHT_SEVENTEENTHS, bits) + _multiply(half_denominator, slope, bits)
    one = 1 << (bits - 3)
    for _ in range(3):
        residue = one - _multiply(half_denominator, x, bits)
        x = x + saturating_multiply_by_power_of_two(_multiply(x, residue, bits), 2, bits)
    return x


def _reciprocal_of_one_plus(raw: S64, bits: int) -> S64:
    return saturating_multiply_by_power_of_two(_newton_reciprocal_of_half_denominator(raw, bits), 1, bits)


def _one_minus_x_over_one_plus_x(raw: S64, bits: int) -> S64:
    newton = _newton_reciprocal_of_half_denominator(raw, bits)
    return saturating_multiply_by_power_of_two(newton - (1 << (bits - 3)), 2, bits)


def exp_on_minus_quarter_to_zero(raw: npt.ArrayLike) -> S64:
    """Compute exp(x) for x in [-1/4, 0), F0 to F0: a Taylor polynomial of degree 4 around -1/8.

    Domain: raw in [-2^29, -1]. Error below 2^-22 (the Taylor term x^5/120 that is left out).
    Source: docs/facts/litert.md 1.8; gemmlowp fixedpoint.h, read and compiled.

    >>> exp_on_minus_quarter_to_zero([-(2**28), -1]).tolist()
    [1895147668, 2147483155]
    """
    return _exp_on_minus_quarter_to_zero(as_s64(raw), 32)


def exp_on_negative(raw: npt.ArrayLike, integer_bits: int) -> S64:
    """Compute exp(x) for x <= 0, F(integer_bits) to F0; exp(0) is 2^31 - 1, exp below -32 is 0.

    Domain: raw in [-2^31, 0], integer_bits in 0..29. Error below 2^-22. Errors: ValueError for other integer_bits.
    Source: docs/facts/litert.md 1.8; gemmlowp fixedpoint.h, read and compiled.

    >>> exp_on_negative([0, -(2**26), -(2**31)], 5).tolist()
    [2147483647, 790015308, 0]
    """
    return _exp_on_negative(as_s64(raw), integer_bits, 32)


def reciprocal_of_one_plus(raw: npt.ArrayLike) -> S64:
    """1 / (1 + x) for x in [0, 1), F0 to F0.

    Domain: raw in [0, 2^31 - 1]. Saturates at 2^31 - 1 for x near 0.
    Source: docs/facts/litert.md 1.8; gemmlowp fixedpoint.h, read and compiled.

    >>> reciprocal_of_one_plus([0, 2**30]).tolist()
    [2147483647, 1431655762]
    """
    return _reciprocal_of_one_plus(as_s64(raw), 32)


def one_minus_x_over_one_plus_x(raw: npt.ArrayLike) -> S64:
    """(1 - x) / (1 + x) for x in [0, 1), F0 to F0.

    Domain: raw in [0, 2^31 - 1]. Saturates at 2^31 - 1 for x near 0.
    Source: docs/facts/litert.md 1.8; gemmlowp fixedpoint.h, read and compiled.

    >>> one_minus_x_over_one_plus_x([0, 2**30]).tolist()
    [2147483647, 715827876]
    """
    return _one_minus_x_over_one_plus_x(as_s64(raw), 32)


def reciprocal(x: npt.ArrayLike, integer_bits: int) -> tuple[S64, S64]:
    """1 / x as (raw, bits) with 1/x ~ raw * 2^(-31 - bits), x in F(integer_bits).

    The leading one of x becomes the 1 of 1/(1 + fraction); bits = integer_bits - clz(x).
    Domain: x in [1, 2^31 - 1]. Errors: ValueError for x <= 0.
    Source: docs/facts/litert.md 1.8 (Recip); its kernels/internal/common.h, read and compiled.

    >>> [values.tolist() for values in reciprocal([2**19, 3 * 2**18], 12)]
    [[2147483647, 1431655762], [0, 0]]
    """
    x = as_s64(x)
    if x.size and x.min() <= 0:
        raise ValueError(f"expected positive values, found {int(x.min())}")
    zeros = count_leading_zeros_s32(x)
    return reciprocal_of_one_plus((x << zeros) - (1 << 31)), integer_bits - zeros


def inverse_square_root(value: npt.ArrayLike) -> tuple[S64, S64]:
    """1 / sqrt(value) as (multiplier, exponent) with 1/sqrt(value) ~ multiplier * 2^(exponent - 31).

    Five Newton steps x += x * (1 - v * x^2) / 2 in F3 from x = 1, on v = value scaled by a power of four into
    [1/4, 1). exponent <= 0. Values up to 1 give (2^31 - 1, 0).
    Domain: [0, 2^31 - 1]. Errors: ValueError for negative values.
    Source: docs/facts/litert.md 1.8 (InvSqrt); its kernels/internal/common.h, read and compiled.

    >>> [values.tolist() for values in inverse_square_root([0, 1, 4, 2**31 - 1])]
    [[2147483647, 2147483647, 1073741828, 189812531], [0, 0, 0, -12]]
    """
    value = as_s64(value)
    if value.size and value.min() < 0:
        raise ValueError(f"expected values >= 0, found {int(value.min())}")
    v = np.maximum(value, 2)  # 0 and 1 are replaced at the end
    large = v >= 1 << 29  # once is enough: (2^31 - 1) div 4 < 2^29
    v = np.where(large, v // 4, v)
    pairs = (count_leading_zeros_s32(v) - 1) // 2 - 1
    right_shift = 11 + large - pairs
    v = v << (2 * pairs)
    half_v = divide_by_power_of_two_away(v >> 1, 1)
    x: S64 = np.full_like(v, 1 << 28)
    for _ in range(5):
        cube = saturating_multiply_by_power_of_two(doubling_high_multiply_up(doubling_high_multiply_up(x, x), x), 6)
        step = doubling_high_multiply_up((1 << 28) + (1 << 27), x) - doubling_high_multiply_up(half_v, cube)
        x = saturating_multiply_by_power_of_two(wrap_s32(step), 3)
    multiplier = doubling_high_multiply_up(x, ROOT_OF_HALF)
    multiplier = wrap_s32(multiplier << np.maximum(-right_shift, 0))
    exponent = -np.maximum(right_shift, 0)
    return np.where(value <= 1, S32_MAX, multiplier), np.where(value <= 1, 0, exponent)


def logarithm(raw_f12: npt.ArrayLike) -> S64:
    """ln(x), x > 0 in F12, result in F5.

    x = 2^p * r with r near 2^-1/4; ln(x) = p * ln(2) + a rational function of r. Of two ways to split, the one with
    the smaller r and the larger p is taken.
    Domain: raw in [1, 2^31 - 1]. Errors: ValueError for raw <= 0. The result is off by less than 2^-24, except for
    raw = 1 (by 0.17) and raw = 5 (by 0.023), where the two ways to split disagree; kept because it is what is computed.
    Source: docs/facts/litert.md 2.5 (ln); its kernels/internal/common.h, read and compiled.

    >>> logarithm([2**19, 2**20, 1]).tolist()
    [0, 46516320, -872959256]
    """
    raw = as_s64(raw_f12)
    if raw.size and raw.min() <= 0:
        raise ValueError(f"expected positive values, found {int(raw.min())}")
    product = doubling_high_multiply_up
    move = saturating_multiply_by_power_of_two
    quarter = int(divide_by_power_of_two_away(1 << 29, 6))  # 1/4 in F6

    zeros = count_leading_zeros_s32(raw)
    ratio_a = move(product(move(raw, zeros - 1), ROOT_OF_HALF), 1)
    power_a = saturating_add_s32(move(12 - zeros, 25), quarter)
    headroom = count_leading_zeros_s32(product(raw, ROOT_OF_HALF)) - 1
    ratio_b = move(raw, headroom)
    power_b = saturating_add_s32(move(12 - headroom, 25), -quarter)
    r = np.minimum(ratio_a, ratio_b)
    power = np.maximum(power_a, power_b)

    p = half_sum_away(r, FOURTH_ROOT_OF_HALF)
    q = 2 * (r - FOURTH_ROOT_OF_HALF)
    square = product(q, q)
    numerator = product(q, r) + product(product(q, square), LOG_NUMERATOR)
    inner = LOG_DENOMINATOR_CONSTANT + q + product(LOG_DENOMINATOR_SQUARE, square)
    denominator = product(p, inner) + product(LOG_DENOMINATOR_LINEAR, q)
    quotient = product(divide_by_power_of_two_away(numerator, 6), reciprocal_of_one_plus(denominator))
    return move(product(power, LOG_OF_2) + quotient, 1)


def logistic_s16(raw_f3: npt.ArrayLike) -> S64:
    """1 / (1 + exp(-x)), 16-bit F3 to 16-bit F0.

    x > 0: 1/(1 + exp(-x)); x < 0: 32767 minus the value for -x; 0 gives 2^14.
    Domain: s16 (-32768 included).
    Source: docs/facts/litert.md 1.8 (16-bit flavour); gemmlowp fixedpoint.h, read and compiled.

    >>> logistic_s16([0, 4096, -4096, 32767, -32768]).tolist()
    [16384, 23952, 8815, 32756, 11]
    """
    raw = as_s64(raw_f3)
    positive = _reciprocal_of_one_plus(_exp_on_negative(-np.abs(raw), 3, 16), 16)
    return np.where(raw == 0, 1 << 14, np.where(raw > 0, positive, S16_MAX - positive))


def tanh_s16(raw: npt.ArrayLike, integer_bits: int) -> S64:
    """tanh(x), 16-bit F(integer_bits) to 16-bit F0: sign(x) * (1 - e) / (1 + e) with e = exp(-2|x|).

    -2|x| is the same raw number read with one integer bit more. Odd: tanh(-x) = -tanh(x), 0 gives 0.
    Domain: s16 (-32768 included), integer_bits in 0..12. Errors: ValueError for other integer_bits.
    Source: docs/facts/litert.md 1.8 (16-bit flavour); gemmlowp fixedpoint.h, read and compiled.

    >>> tanh_s16([0, 4096, -4096, 32767, -32768], 3).tolist()
    [0, 24964, -24964, 32767, -32767]
    """
    raw = as_s64(raw)
    magnitude = _one_minus_x_over_one_plus_x(_exp_on_negative(-np.abs(raw), integer_bits + 1, 16), 16)
    return np.asarray(np.sign(raw) * magnitude)


def logistic_f4(raw: npt.ArrayLike) -> S64:
    """1 / (1 + exp(-x)) of x = raw / 2^27, as a fraction of 2^31 (32 bits).

    Source: docs/facts/litert.md 1.8 (gemmlowp's logistic), verified by running.

    >>> logistic_f4([0, 1 << 27, -(1 << 27)]).tolist()
    [1073741824, 1569936226, 577547421]
    """
    x = as_s64(raw)
    positive = reciprocal_of_one_plus(exp_on_negative(-np.abs(x), 4))
    return np.where(x == 0, 1 << 30, np.where(x > 0, positive, (1 << 31) - 1 - positive))


def tanh_f4(raw: npt.ArrayLike) -> S64:
    """tanh(x) of x = raw / 2^27, as a fraction of 2^31 (32 bits).

    Source: docs/facts/litert.md 1.8 (gemmlowp's tanh), verified by running.

    >>> tanh_f4([0, 1 << 27, -(1 << 27)]).tolist()
    [0, 1635510876, -1635510876]
    """
    x = as_s64(raw)
    # The argument is doubled by reading it with one integer bit more.
    magnitude = one_minus_x_over_one_plus_x(exp_on_negative(-np.abs(x), 5))
    return np.where(x == 0, 0, np.where(x > 0, magnitude, -magnitude))

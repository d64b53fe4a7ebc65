"""The slow oracle: every primitive of this folder again, one number at a time, from its meaning.

Python ``int``, ``fractions.Fraction`` and ``decimal`` only; nothing of ours is imported and no bit trick is used, so a
wrong idea cannot enter a function and its oracle together. Names, arguments and domains are those of the other modules
of this folder, whose docstrings give formulas and sources; arguments and results are Python numbers (lists for tables).
Floats are Python floats; a binary32 value is held in one exactly.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

HALF = Fraction(1, 2)

# ---------------------------------------------------------------------------------------------- rounding and ranges


def nearest(value: Fraction, tie: str) -> int:
    """Return the nearest integer; `tie` is "even", "away", "up", "down", or "trunc" (no nearest, fraction dropped).

    >>> [nearest(Fraction(-5, 2), tie) for tie in ("even", "away", "up", "down", "trunc")]
    [-2, -3, -2, -3, -2]
    """
    below, rest = divmod(value.numerator, value.denominator)
    above = below + 1
    if rest == 0:
        return below
    if tie == "trunc":
        return below if value > 0 else above
    if 2 * rest != value.denominator:
        return below if 2 * rest < value.denominator else above
    if tie == "even":
        return below if below % 2 == 0 else above
    if tie == "away":
        return above if value > 0 else below
    return {"up": above, "down": below}[tie]


def saturate(value: int, bits: int) -> int:
    """Limit value to the s`bits` range.

    >>> saturate(200, 8), saturate(-200, 8)
    (127, -128)
    """
    return max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, value))


def wrap(value: int, bits: int) -> int:
    """Return the s`bits` value that differs from value by a multiple of 2^bits.

    >>> wrap(200, 8)
    -56
    """
    residue = value % 2**bits
    return residue - 2**bits if residue >= 2 ** (bits - 1) else residue


def nearest_binary(value: Fraction, significand_bits: int = 24) -> float:
    """Return the nearest binary32 (24 significand bits) or binary64 (53), ties to even, infinity on overflow.

    >>> nearest_binary(Fraction(2**24 + 1)), nearest_binary(Fraction(2) ** 128)
    (16777216.0, inf)
    """
    least_quantum, last_exponent = {24: (-149, 127), 53: (-1074, 1023)}[significand_bits]
    if value == 0:
        return 0.0
    # Integers throughout: fractions would be reduced to lowest terms after every step.
    above, below = abs(value.numerator), value.denominator
    exponent = above.bit_length() - below.bit_length()
    if (above << max(-exponent, 0)) < (below << max(exponent, 0)):
        exponent -= 1  # now 2^exponent <= magnitude < 2^(exponent + 1)
    quantum = max(exponent - significand_bits + 1, least_quantum)
    above, below = above << max(-quantum, 0), below << max(quantum, 0)
    quanta, rest = divmod(above, below)
    if 2 * rest > below or (2 * rest == below and quanta % 2):
        quanta += 1
    result = math.inf if quanta.bit_length() + quantum > last_exponent + 1 else math.ldexp(quanta, quantum)
    return result if value > 0 else -result


# ------------------------------------------------------------------------------------------------------ fixed_point


def wrap_s32(x: int) -> int:
    """See fixed_point.wrap_s32."""
    return wrap(x, 32)


def wrap_s16(x: int) -> int:
    """See fixed_point.wrap_s16."""
    return wrap(x, 16)


def doubling_high_multiply_up(a: int, b: int) -> int:
    """See fixed_point.doubling_high_multiply_up."""
    return saturate(nearest(Fraction(a * b, 2**31), "up"), 32)


def doubling_high_multiply_up_s16(a: int, b: int) -> int:
    """See fixed_point.doubling_high_multiply_up_s16."""
    return saturate(nearest(Fraction(a * b, 2**15), "up"), 16)


def divide_by_power_of_two_away(x: int, right_shift: int) -> int:
    """See fixed_point.divide_by_power_of_two_away."""
    return nearest(Fraction(x, 2**right_shift), "away")


def divide_by_power_of_two_up(x: int, right_shift: int) -> int:
    """See fixed_point.divide_by_power_of_two_up."""
    return nearest(Fraction(x, 2**right_shift), "up")


def divide_by_power_of_two_down(x: int, right_shift: int) -> int:
    """See fixed_point.divide_by_power_of_two_down."""
    return nearest(Fraction(x, 2**right_shift), "down")


def divide_by_power_of_two_even(x: int, right_shift: int) -> int:
    """See fixed_point.divide_by_power_of_two_even."""
    return nearest(Fraction(x, 2**right_shift), "even")


def divide_by_power_of_two_trunc(x: int, right_shift: int) -> int:
    """See fixed_point.divide_by_power_of_two_trunc."""
    return nearest(Fraction(x, 2**right_shift), "trunc")


def saturating_multiply_by_power_of_two(x: int, exponent: int, bits: int = 32) -> int:
    """See fixed_point.saturating_multiply_by_power_of_two."""
    return saturate(nearest(x * Fraction(2) ** exponent, "away"), bits)


def count_leading_zeros_s32(x: int) -> int:
    """See fixed_point.count_leading_zeros_s32."""
    return len(f"{x % 2**32:032b}") - len(f"{x % 2**32:032b}".lstrip("0"))


def half_sum_away(a: int, b: int) -> int:
    """See fixed_point.half_sum_away."""
    return nearest(Fraction(a + b, 2), "away")


def saturating_add_s32(a: int, b: int) -> int:
    """See fixed_point.saturating_add_s32."""
    return saturate(a + b, 32)


def saturating_add_s16(a: int, b: int) -> int:
    """See fixed_point.saturating_add_s16."""
    return saturate(a + b, 16)


# ------------------------------------------------------------------------------------------------------- multiplier


@lru_cache(maxsize=1 << 10)
def encode_q31(real: float) -> tuple[int, int]:
    """See multiplier.encode_q31."""
    if math.isnan(real) or math.isinf(real):
        raise ValueError(f"expected a finite multiplier, found {real}")
    value = Fraction(real)
    if value == 0:
        return 0, 0
    exponent = 0
    while abs(value) >= 1:
        value, exponent = value / 2, exponent + 1
    while abs(value) < HALF:
        value, exponent = value * 2, exponent - 1
    multiplier = nearest(value * 2**31, "away")
    if multiplier == 2**31:
        multiplier, exponent = 2**30, exponent + 1
    return (multiplier, exponent) if exponent >= -31 else (0, 0)


def reduce_to_q15(multiplier: int) -> int:
    """See multiplier.reduce_to_q15."""
    return saturate(nearest(Fraction(multiplier, 2**16), "up"), 16)


# --------------------------------------------------------------------------------------------------- transcendental


class _Raw:
    """Raw fixed-point steps in 32 or 16 bits; `unit` is "one" in F0, the largest raw value."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.unit = 2 ** (bits - 1) - 1

    def power(self, exponent: int, integer_bits: int) -> int:
        """2^exponent in F(integer_bits)."""
        return int(Fraction(2) ** (self.bits - 1 - integer_bits + exponent))

    def constant(self, raw_s32: int) -> int:
        return nearest(Fraction(raw_s32, 2 ** (32 - self.bits)), "away")

    def product(self, *factors: int) -> int:
        result = factors[0]
        for factor in factors[1:]:
            result = saturate(nearest(Fraction(result * factor, 2 ** (self.bits - 1)), "up"), self.bits)
        return result

    def scale(self, x: int, exponent: int) -> int:
        return saturating_multiply_by_power_of_two(x, exponent, self.bits)


_RAW = {16: _Raw(16), 32: _Raw(32)}


@lru_cache(maxsize=1 << 14)
def _exp_near_zero(a: int, bits: int) -> int:
    raw = _RAW[bits]
    centre = raw.constant(1895147668)
    x = a + raw.power(-3, 0)
    square = raw.product(x, x)
    cube = raw.product(square, x)
    fourth = raw.product(square, square)
    polynomial = raw.scale(raw.product(raw.scale(fourth, -2) + cube, raw.constant(715827883)) + square, -1)
    total = centre + raw.product(centre, x + polynomial)
    return saturate(total, 16) if bits == 16 else wrap(total, 32)


def _exp_on_negative(a: int, integer_bits: int, bits: int) -> int:
    raw = _RAW[bits]
    if a == 0:
        return raw.unit
    if integer_bits > 5 and a < -32 * raw.power(0, integer_bits):
        return 0
    quarter = raw.power(-2, integer_bits)
    quarters, fraction = divmod(a, quarter)  # a = quarters * 1/4 + fraction, 0 <= fraction < 1/4
    result = _exp_near_zero(raw.scale(fraction - quarter, integer_bits), bits)
    # a = (fraction - 1/4) - count/4: multiply by exp(-1/4 * 2^i) for each binary digit i of count.
    count = -quarters - 1
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for digit, factor in enumerate(factors[: integer_bits + 2]):
        if count // 2**digit % 2 == 1:
            result = raw.product(result, raw.constant(factor))
    return result


@lru_cache(maxsize=1 << 16)
def _newton(a: int, bits: int) -> int:
    raw = _RAW[bits]
    denominator = nearest(Fraction(a + raw.unit, 2), "away")
    x = raw.constant(1515870810) + raw.product(denominator, raw.constant(-1010580540))
    for _ in range(3):
        x = x + raw.scale(raw.product(x, raw.power(0, 2) - raw.product(denominator, x)), 2)
    return x


def exp_on_minus_quarter_to_zero(raw: int) -> int:
    """See transcendental.exp_on_minus_quarter_to_zero."""
    return _exp_near_zero(raw, 32)


def exp_on_negative(raw: int, integer_bits: int) -> int:
    """See transcendental.exp_on_negative."""
    return _exp_on_negative(raw, integer_bits, 32)


def reciprocal_of_one_plus(raw: int) -> int:
    """See transcendental.reciprocal_of_one_plus."""
    return _RAW[32].scale(_newton(raw, 32), 1)


def one_minus_x_over_one_plus_x(raw: int) -> int:
    """See transcendental.one_minus_x_over_one_plus_x."""
    return _RAW[32].scale(_newton(raw, 32) - 2**29, 2)


def reciprocal(x: int, integer_bits: int) -> tuple[int, int]:
    """See transcendental.reciprocal."""
    if x <= 0:
        raise ValueError(f"expected a positive value, found {x}")
    zeros = count_leading_zeros_s32(x)
    return reciprocal_of_one_plus(x * 2**zeros - 2**31), integer_bits - zeros


def inverse_square_root(value: int) -> tuple[int, int]:
    """See transcendental.inverse_square_root."""
    if value < 0:
        raise ValueError(f"expected a value >= 0, found {value}")
    if value <= 1:
        return 2**31 - 1, 0
    raw = _RAW[32]
    right_shift = 11
    while value >= 2**29:
        value, right_shift = value // 4, right_shift + 1
    while value < 2**27:
        value, right_shift = value * 4, right_shift - 1
    half = nearest(Fraction(value // 2, 2), "away")
    x = 2**28
    for _ in range(5):
        cube = raw.scale(raw.product(x, x, x), 6)
        x = raw.scale(wrap(raw.product(2**28 + 2**27, x) - raw.product(half, cube), 32), 3)
    multiplier = raw.product(x, 1518500250)
    if right_shift < 0:
        return wrap(multiplier * 2**-right_shift, 32), 0
    return multiplier, -right_shift


def logarithm(raw_f12: int) -> int:
    """See transcendental.logarithm."""
    if raw_f12 <= 0:
        raise ValueError(f"expected a positive value, found {raw_f12}")
    raw = _RAW[32]
    root, fourth_root = 1518500250, 1805811301
    quarter = raw.power(-2, 6)
    zeros = count_leading_zeros_s32(raw_f12)
    ratio_a = raw.scale(raw.product(raw.scale(raw_f12, zeros - 1), root), 1)
    power_a = saturate(raw.scale(12 - zeros, 25) + quarter, 32)
    headroom = count_leading_zeros_s32(raw.product(raw_f12, root)) - 1
    ratio_b = raw.scale(raw_f12, headroom)
    power_b = saturate(raw.scale(12 - headroom, 25) - quarter, 32)
    r, power = min(ratio_a, ratio_b), max(power_a, power_b)
    p = half_sum_away(r, fourth_root)
    q = (r - fourth_root) * 2
    square = raw.product(q, q)
    numerator = raw.product(q, r) + raw.product(q, square, 117049297)
    denominator = raw.product(p, 1057819769 + q + raw.product(127690142, square)) + raw.product(638450708, q)
    quotient = raw.product(raw.scale(numerator, -6), reciprocal_of_one_plus(denominator))
    return raw.scale(raw.product(power, 1488522236) + quotient, 1)


def logistic_f4(raw: int) -> int:
    """See transcendental.logistic_f4."""
    if raw == 0:
        return 2**30
    positive = reciprocal_of_one_plus(exp_on_negative(-abs(raw), 4))
    return positive if raw > 0 else 2**31 - 1 - positive


def tanh_f4(raw: int) -> int:
    """See transcendental.tanh_f4."""
    if raw == 0:
        return 0
    magnitude = one_minus_x_over_one_plus_x(exp_on_negative(-abs(raw), 5))
    return magnitude if raw > 0 else -magnitude


def logistic_s16(raw_f3: int) -> int:
    """See transcendental.logistic_s16."""
    if raw_f3 == 0:
        return 2**14
    positive = _RAW[16].scale(_newton(_exp_on_negative(-abs(raw_f3), 3, 16), 16), 1)
    return positive if raw_f3 > 0 else 32767 - positive


def tanh_s16(raw: int, integer_bits: int) -> int:
    """See transcendental.tanh_s16."""
    if raw == 0:
        return 0
    newton = _newton(_exp_on_negative(-abs(raw), integer_bits + 1, 16), 16)
    magnitude = _RAW[16].scale(newton - 2**13, 2)
    return magnitude if raw > 0 else -magnitude


# ----------------------------------------------------------------------------------------------------------- floats


def _integral(x: float, tie: str) -> float:
    if math.isnan(x) or math.isinf(x):
        return x
    return math.copysign(float(nearest(Fraction(x), tie)), x)


def round_away(x: float) -> float:
    """See floats.round_away."""
    return _integral(x, "away")


def round_even(x: float) -> float:
    """See floats.round_even."""
    return _integral(x, "even")


def fused_multiply_add(a: float, b: float, c: float) -> float:
    """See floats.fused_multiply_add; finite arguments."""
    return nearest_binary(Fraction(a) * Fraction(b) + Fraction(c))


def fused_multiply_add_64(a: float, b: float, c: float) -> float:
    """See floats.fused_multiply_add_64; finite arguments."""
    total = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def fused_multiply_add_16(a: float, b: float, c: float) -> float:
    """See floats.fused_multiply_add_16; finite arguments."""
    total = Fraction(a) * Fraction(b) + Fraction(c)
    lowest = Fraction(1, 2**24)
    unit = lowest
    while abs(total) >= 2**11 * unit:
        unit *= 2
    found = float(nearest(total / unit, "even") * unit)
    return math.copysign(math.inf if abs(found) > 65504 else abs(found), total)


def add_to_odd(a: float, b: float) -> float:
    """a + b of finite numbers: the neighbour with an odd last bit where the sum is no binary64 number."""
    total = Fraction(a) + Fraction(b)
    near = float(total)
    if math.isinf(near) or Fraction(near) == total:
        return near if total else a + b
    above = near if Fraction(near) > total else math.nextafter(near, math.inf)
    below = near if Fraction(near) < total else math.nextafter(near, -math.inf)
    odd = [v for v in (below, above) if struct.unpack("<q", struct.pack("<d", v))[0] & 1]
    return odd[0]


def truncate_to_s32(x: float) -> int:
    """See floats.truncate_to_s32."""
    if math.isnan(x) or math.isinf(x):
        return -(2**31)
    whole = nearest(Fraction(x), "trunc")
    return whole if -(2**31) <= whole < 2**31 else -(2**31)


def saturate_to_s32(x: float) -> int:
    """See floats.saturate_to_s32."""
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return 2**31 - 1 if x > 0 else -(2**31)
    return saturate(nearest(Fraction(x), "trunc"), 32)


# ----------------------------------------------------------------------------------------------------------- tables

_DIGITS = Context(prec=120)


def _add(a: float, b: float, significand_bits: int) -> float:
    if math.isinf(a) or math.isinf(b):
        return a + b
    return nearest_binary(Fraction(a) + Fraction(b), significand_bits)


def _times(a: float, b: float, significand_bits: int) -> float:
    if math.isinf(a) or math.isinf(b):
        return a * b
    return nearest_binary(Fraction(a) * Fraction(b), significand_bits)


def _over(a: float, b: float, significand_bits: int) -> float:
    if math.isinf(b):
        return math.nan if math.isinf(a) else 0.0
    if b == 0 or math.isinf(a):
        return math.copysign(math.inf, a) * math.copysign(1.0, b) if a else math.nan
    return nearest_binary(Fraction(a) / Fraction(b), significand_bits)


def exponential(x: float, significand_bits: int = 24) -> float:
    """Return exp(x), correctly rounded (120 decimal digits, then once to binary).

    >>> exponential(1.0, 53) == 2.718281828459045
    True
    """
    if x > 800:
        return math.inf
    if x < -800:
        return 0.0
    return nearest_binary(Fraction(Decimal(x).exp(_DIGITS)), significand_bits)


def exp_binary64(x: float) -> float:
    """exp(x) in binary64, by the series in 1500 bits: e^x = 2^k e^r with 0 <= r < 1."""
    if math.isnan(x) or x > 710 or x < -746:
        return x if math.isnan(x) else math.inf if x > 0 else 0.0
    whole = math.floor(x)
    one = 1 << 1500
    rest = int((Fraction(x) - whole) * one)
    term = power = one
    e_term = e = one
    for k in range(1, 200):
        term = term * rest // one // k
        power += term
        e_term //= k
        e += e_term
    scaled = Fraction(e, one) ** abs(whole)
    return nearest_binary(Fraction(power, one) * (scaled if whole >= 0 else 1 / scaled), 53)


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)): exponential, sum and quotient each rounded correctly to binary32."""
    return _over(1.0, _add(1.0, exponential(-nearest_binary(Fraction(x))), 24), 24)


def tanh_by_exponentials(x: float) -> float:
    """(1 - e) / (1 + e), e = exp(-2x), with the sign of x: every step rounded correctly to binary32."""
    e = exponential(-2 * abs(nearest_binary(Fraction(x))))
    return math.copysign(_over(_add(1.0, -e, 24), _add(1.0, e, 24), 24), x)


def hard_swish_times_sixth(x: float) -> float:
    """x * min(max(x + 3, 0), 6) * binary32(1 / 6): every step rounded correctly to binary32."""
    gate = min(max(_add(x, 3.0, 24), 0.0), 6.0)
    return _times(_times(x, gate, 24), nearest_binary(Fraction(1, 6), 24), 24)


def logistic_fraction(x: Fraction) -> Fraction:
    """1 / (1 + e^-x) by the series of e^(x / 2^20) in 400 bits, squared 20 times; |x| up to 10000."""
    one, bits = 1 << 400, 400
    reduced = int(abs(x) * one) >> 20
    term = power = one
    for k in range(1, 60):
        term = (term * reduced >> bits) // k
        power += term
    # Squares grow to 2^14427 at most; fractions keep every bit of the 400 below the binary point.
    result = Fraction(power, one)
    for _ in range(20):
        result *= result
        result = Fraction(round(result * one * one), one * one)
    return result / (1 + result) if x >= 0 else 1 / (1 + result)


def logistic_binary64(x: float) -> float:
    """See tables.logistic_binary64."""
    argument = nearest_binary(Fraction(x))
    if abs(argument) > 100:
        return 1.0 if argument > 0 else 0.0
    e = exponential(argument, 53)
    return nearest_binary(Fraction(_over(e, _add(1.0, e, 53), 53)))


def tanh(x: float, significand_bits: int = 24) -> float:
    """Hyperbolic tangent, correctly rounded."""
    if abs(x) > 50:
        return math.copysign(1.0, x)
    power = Fraction(Decimal(2 * x).exp(_DIGITS))
    return nearest_binary((power - 1) / (power + 1), significand_bits)


def table_256(
    function: Callable[[float], float],
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> list[int]:
    """See tables.table_256; `function` returns a binary32 value."""
    scale_in, scale_out = nearest_binary(Fraction(input_scale)), nearest_binary(Fraction(output_scale))
    inverse = _over(1.0, scale_out, 24)
    table = []
    for q in range(minimum, maximum + 1):
        value = function(_times(scale_in, float(q - input_zero_point), 24))
        y = _add(round_away(_times(value, inverse, 24)), float(output_zero_point), 24)
        if minimum == 0 and not abs(y) < 2**31:
            raise ValueError("an entry leaves 32 bits")
        table.append(max(minimum, min(maximum, saturate_to_s32(y))))
    return table


def table_513(
    function: Callable[[float], float],
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    significand_bits: int = 24,
) -> list[int]:
    """See tables.table_513; `function` returns a value of the precision that `significand_bits` names (24 or 53)."""
    n = significand_bits

    def real(value: float) -> float:
        return nearest_binary(Fraction(value), n)

    first = _times(real(input_scale), real(-32768 - input_zero_point), n)
    last = _times(real(input_scale), real(32767 - input_zero_point), n)
    low = _times(real(output_scale), real(-32768 - output_zero_point), n)
    high = _times(real(output_scale), real(32767 - output_zero_point), n)
    step = _over(_add(last, -first, n), 512.0, n)
    inverse = _over(65536.0, _add(high, -low, n), n)
    table = []
    for i in range(512):
        left = _add(first, _times(float(i), step, n), n)
        value = function(left)
        middle = function(_add(left, _over(step, 2.0, n), n))
        following = function(_add(first, _times(float(i + 1), step, n), n))
        start = round_away(_times(value, inverse, n))
        straight = round_away(_over(_add(_times(following, inverse, n), start, n), 2.0, n))
        error = _add(straight, -round_away(_times(middle, inverse, n)), n)
        table.append(saturate(saturate_to_s32(_add(start, -round_away(_over(error, 2.0, n)), n)), 16))
    table.append(saturate(saturate_to_s32(round_away(_times(function(last), inverse, n))), 16))
    return table


def lookup_513(table: list[int], x: int) -> int:
    """See tables.lookup_513."""
    interval, place = divmod(x + 32768, 128)
    slope = wrap(table[interval + 1] - table[interval], 16)
    return wrap(table[interval] + nearest(Fraction(slope * place, 128), "up"), 16)


def sigmoid_table_s16() -> list[int]:
    """See tables.sigmoid_table_s16."""
    one_above = {4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44}
    one_above |= {45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255}
    table = []
    for i in range(256):
        exponential_of_i = Fraction((Decimal(-i) / 24).exp(_DIGITS))
        table.append(nearest(65536 / (1 + exponential_of_i), "up") + (i in one_above))
    return table


# ----------------------------------------------------------------------------------------------------------- matmul


def exact_matmul(a: list[list[int]], b: list[list[int]], bound: int) -> list[list[int]]:
    """See matmul.exact_matmul; `bound` is ignored."""
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]

"""Narrow floating-point formats in Fractions: all codes decoded by the definition, numbers rounded by search."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

# name: exponent bits, mantissa bits, bias, codes of infinity and NaN above the numbers ("both", "nan", "none"), or
# "negative zero": the only NaN is the code of -0.
SHAPES = {
    "f16": (5, 10, 15, "both"),
    "bf16": (8, 7, 127, "both"),
    "f8e5m2": (5, 2, 15, "both"),
    "f8e4m3fn": (4, 3, 7, "nan"),
    "f8e4m3fnuz": (4, 3, 8, "negative zero"),
    "f8e5m2fnuz": (5, 2, 16, "negative zero"),
    "f6e2m3": (2, 3, 1, "none"),
    "f6e3m2": (3, 2, 3, "none"),
    "f4e2m1": (2, 1, 1, "none"),
}


def sign_bit(name: str) -> int:
    return 1 << (SHAPES[name][0] + SHAPES[name][1])


@cache
def numbers(name: str) -> list[Fraction]:
    """The finite numbers of codes 0, 1, 2, ... without sign."""
    exponent_bits, mantissa_bits, bias, special = SHAPES[name]
    count = 1 << (exponent_bits + mantissa_bits)
    if special == "both":
        count -= 1 << mantissa_bits
    elif special == "nan":
        count -= 1
    found = []
    for code in range(count):
        exponent, mantissa = divmod(code, 1 << mantissa_bits)
        whole = Fraction(mantissa, 1 << mantissa_bits) + (exponent > 0)
        found.append(whole * Fraction(2) ** (max(exponent, 1) - bias))
    return found


def code_of(name: str, value: Fraction) -> int | None:
    """Code without sign of |value| rounded to the nearest, ties to even codes; None beyond the largest number.

    A value is beyond when rounding to the next step, were it there, would take it.
    """
    grid, value = numbers(name), abs(value)
    step = grid[-1] - grid[-2]
    if value > grid[-1] + step / 2 or (value == grid[-1] + step / 2 and (len(grid) - 1) % 2):
        return None
    low, high = 0, len(grid)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if grid[middle] <= value else (low, middle)
    if low == len(grid) - 1:
        return low
    below, above = value - grid[low], grid[low + 1] - value
    return low if below < above or (below == above and low % 2 == 0) else low + 1


def round_binary(value: Fraction, bits: int, smallest: int) -> Fraction:
    """To `bits` bits, ties to even; numbers below 2^smallest have fewer. No largest number."""
    if not value:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, smallest) - bits + 1)
    scaled = value / quantum
    whole = math.floor(scaled)
    part = scaled - whole
    return (whole + (part > Fraction(1, 2) or (part == Fraction(1, 2) and whole % 2 == 1))) * quantum


# bits and exponent of the smallest normal number
PRECISIONS = {"f16": (11, -14), "bf16": (8, -126), "f32": (24, -126), "f64": (53, -1022)}


def to_precision(value: Fraction, name: str) -> Fraction | None:
    """Rounded to a precision; None for an overflow."""
    result = round_binary(value, *PRECISIONS[name])
    largest = {"f16": 65504, "bf16": Fraction(2**8 - 1) * Fraction(2) ** 120}.get(name)
    if largest is None:
        bits, exponent = PRECISIONS[name]
        largest = (2 - Fraction(1, 1 << (bits - 1))) * Fraction(2) ** (1 - exponent)
    return None if abs(result) > largest else result

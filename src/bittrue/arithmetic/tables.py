"""Look-up tables that are built in float once and then indexed with integers.

A table function takes a binary64 array and returns an array; its result is rounded once (ties to even) to the
table's float type, unless the function returns that type already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.elementary import exp
from bittrue.arithmetic.fixed_point import S16_MAX, S16_MIN, S64, as_s64, wrap_s16
from bittrue.arithmetic.floats import fused_multiply_add, round_away, saturate_to_s32

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy.typing as npt

Function = Callable[["npt.NDArray[np.float64]"], "npt.NDArray[Any]"]

# 65536 / (1 + exp(-i/24)), ties up, gives the published 256-entry table except here, where that holds one more.
# fmt: off
_SIGMOID_CORRECTIONS = [
    4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44, 45, 46, 49,
    50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255,
]
# fmt: on


def logistic_binary64(x: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """e / (1 + e), e = exp(x), in binary64, rounded once to binary32; 0 below -100 and 1 above 100.

    Domain: all; x is rounded to binary32 first. NaN stays NaN.
    Source: docs/facts/xnnpack.md 2.4, verified by running.

    >>> logistic_binary64([0.0, -1e3, 1e3]).tolist()
    [0.5, 0.0, 1.0]
    """
    argument = np.asarray(x, dtype=np.float32).astype(np.float64)
    e = np.exp(np.clip(argument, -100, 100))
    value = np.where(argument > 100, 1.0, np.where(argument < -100, 0.0, e / (1 + e)))
    return np.asarray(value.astype(np.float32))


def logistic(x: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """1 / (1 + e^-x) in binary32 steps, for every x: how tables of 8 bits are filled.

    Source: docs/facts/litert.md 1.9, verified by running.

    >>> logistic(np.float32([0.0, -1.0, 17.0])).tolist()
    [0.5, 0.2689414322376251, 1.0]
    """
    one = np.float32(1)
    with np.errstate(over="ignore"):
        return np.asarray(one / (one + exp(-np.asarray(x, np.float32))))


def tanh_by_exponentials(x: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """(1 - e) / (1 + e) with e = exp(-2x) where x >= 0, else (e - 1) / (e + 1) with e = exp(2x), in binary32 steps.

    Source: docs/facts/tvm_qnn.md 12, there src/target/llvm/intrin_rule_llvm.cc, read.

    >>> tanh_by_exponentials(np.float32([0.0, -1.0, 17.0])).tolist()
    [0.0, -0.7615941166877747, 1.0]
    """
    one, argument = np.float32(1), np.asarray(x, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        small, large = exp(np.float32(-2) * argument), exp(np.float32(2) * argument)
        return np.where(argument >= 0, (one - small) / (one + small), (large - one) / (large + one))


def hard_swish_times_sixth(x: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """x * min(max(x + 3, 0), 6) * f32(1 / 6) from left to right in binary32 steps.

    Source: docs/facts/tvm_qnn.md 12, verified by running.

    >>> hard_swish_times_sixth(np.float32([-4.0, 1.0, 4.0])).tolist()
    [-0.0, 0.6666666865348816, 4.0]
    """
    argument = np.asarray(x, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        gate = np.minimum(np.maximum(argument + np.float32(3), np.float32(0)), np.float32(6))
        return np.asarray(argument * gate * np.float32(1 / 6))


@lru_cache(4096)
def logistic_fraction(x: Fraction) -> Fraction:
    """1 / (1 + e^-x), off by less than 1e-40 of itself and of its distance to 1.

    Arguments count as -10000..10000: what is missing to 0 or 1 there is less than 1e-4000. Source: the definition.

    >>> from fractions import Fraction
    >>> logistic_fraction(Fraction(0)), float(logistic_fraction(Fraction(1)))
    (Fraction(1, 2), 0.7310585786300049)
    >>> logistic_fraction(Fraction(10**9)) < 1
    True
    """
    import decimal
    from fractions import Fraction

    magnitude = min(abs(x), Fraction(10_000))
    # The absolute error of the argument is the relative one of the power.
    context = decimal.Context(prec=60)
    # A bare minus would round to the digits of the thread's context.
    power = Fraction(context.exp(context.minus(context.divide(magnitude.numerator, magnitude.denominator))))
    return 1 / (1 + power) if x >= 0 else power / (1 + power)


def exp_binary64(x: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """e^x in binary64, correctly rounded (by 40 decimal digits): for tables, it is slow.

    Domain: all; NaN stays NaN. Ties do not occur. C libraries are off by less than one unit, and rarely at all.
    Source: the definition.

    >>> exp_binary64([0.0, 1.0, -1e3, 1e3]).tolist()
    [1.0, 2.718281828459045, 0.0, inf]
    """
    import decimal

    array = np.asarray(x, np.float64)
    context = decimal.Context(prec=40)
    # Beyond these limits there are only zeros and infinities.
    limited = np.clip(array.reshape(-1), -800.0, 800.0).tolist()
    found = [value if value != value else float(context.exp(decimal.Decimal(value))) for value in limited]
    return np.array(found, np.float64).reshape(array.shape)


def table_256(
    function: Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> S64:
    """The table of an 8-bit function: entry i is for q = minimum + i, q up to maximum.

    With every operation rounded to binary32, ties to even, and f evaluated in binary64 and rounded once to binary32:
    x = input_scale * (q - input_zero_point); y = round_away(f(x) * (1 / output_scale)) + output_zero_point;
    entry = y limited to [minimum, maximum], infinities included; NaN counts as 0. Unsigned bytes (minimum 0) raise
    ValueError when some y is no number of 32 bits: conversions to them have no defined result there.
    Ties: away from zero for the quantization. Types: scales are taken as binary32; returns int64.
    Source: docs/facts/litert.md 1.9 (LUT8), read and run; the rule for NaN is ours.

    A tie, a negative tie and a saturation (output scale 2, zero point 0, values -3, 3, 508):

    >>> table = table_256(lambda x: x, 1.0, 0, 2.0, 0, -128, 127)
    >>> table[[128 - 3, 128 + 3]].tolist(), table_256(lambda x: 4 * x, 1.0, 0, 2.0, 0, -128, 127)[255].item()
    ([-2, 2], 127)
    """
    f32 = np.float32
    with np.errstate(all="ignore"):
        inverse = f32(1) / f32(output_scale)
        q = np.arange(minimum, maximum + 1, dtype=np.int64)
        argument = f32(input_scale) * (q - input_zero_point).astype(f32)
        value = np.asarray(function(argument.astype(np.float64))).astype(f32)
        y = round_away(value * inverse) + f32(output_zero_point)
    if minimum == 0 and not (np.abs(y) < 2.0**31).all():
        raise ValueError(
            "entries leave 32 bits before they are limited, where conversions to unsigned bytes are undefined"
        )
    return np.clip(saturate_to_s32(y), minimum, maximum)


def table_513(
    function: Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    precision: type[np.float32] | type[np.float64] = np.float32,
    fused: bool = False,
) -> S64:
    """The table of a 16-bit function: 512 interval starts of 128 inputs each, and one entry after the last.

    Each entry is the sample at the interval's start, less half the error that linear interpolation would make in the
    interval's middle. All operations in `precision`; rounding to integers ties away; entries limited to s16. The
    output zero point enters only through the output range's ends, it is not added. With `fused`, in binary32 alone,
    places and interpolated values are a product and a sum that are rounded once.
    Types: scales are taken in `precision`; returns 513 int64 values. NaN entries count as 0. Raises ValueError when the
    input's range overflows.
    Source: docs/facts/litert.md 1.9 (LUT16), read and run.

    >>> table_513(lambda x: x, 1.0, 0, 1.0, 0)[[0, 256, 512]].tolist()
    [-32768, -1, 32767]
    >>> [int(table_513(lambda x: x * x, 0.0003, 0, 0.001, 0, fused=fused)[312]) for fused in (False, True)]
    [4622, 4623]
    """
    real = precision
    add = fused_multiply_add if fused else lambda a, b, c: a * b + c
    with np.errstate(all="ignore"):

        def sample(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.asarray(function(np.asarray(x, dtype=np.float64))).astype(real)

        def end(scale: float, raw: int) -> Any:
            return real(scale) * real(raw)

        input_minimum = end(input_scale, S16_MIN - input_zero_point)
        input_maximum = end(input_scale, S16_MAX - input_zero_point)
        output_minimum = end(output_scale, S16_MIN - output_zero_point)
        output_maximum = end(output_scale, S16_MAX - output_zero_point)
        step = (input_maximum - input_minimum) / real(512)
        if not np.isfinite(step):
            raise ValueError("the range of the input is not finite, so that no entry is defined")
        inverse = real(65536) / (output_maximum - output_minimum)

        i = np.arange(512)
        left = add(i.astype(real), step, input_minimum)
        value = sample(left)
        middle = sample(left + step / real(2))
        following = sample(add((i + 1).astype(real), step, input_minimum))
        start = round_away(value * inverse)
        interpolated = round_away(add(following, inverse, start) / real(2))
        half_error = round_away((interpolated - round_away(middle * inverse)) / real(2))
        last = round_away(sample(np.asarray([input_maximum])) * inverse)
        return saturate_to_s32(np.clip(np.concatenate([start - half_error, last]), S16_MIN, S16_MAX))


def lookup_513(table: npt.ArrayLike, x: npt.ArrayLike) -> S64:
    """Interpolate: base + floor(slope * (x mod 128) / 128 + 1/2) with i = 256 + floor(x / 128).

    slope = table[i + 1] - table[i] and the result wrap to 16 bits (a slope leaves s16 when neighbours differ by
    2^15 or more). Ties: up. Domain: x s16, table of 513 s16 values.
    Source: docs/facts/litert.md 1.9 (lookup), read and run; the wraps read in the sources.

    >>> table = table_513(lambda x: x / 2, 1.0, 0, 1.0, 0)
    >>> lookup_513(table, [0, 1, -1, 3, -3, 32767, -32768]).tolist()
    [0, 1, 0, 2, -1, 16384, -16384]
    """
    entries = as_s64(table)
    x = as_s64(x)
    index = 256 + (x >> 7)
    base = entries[index]
    slope = wrap_s16(entries[index + 1] - base)
    return wrap_s16(base + ((slope * (x & 127) + 64) >> 7))


def sigmoid_table_s16() -> S64:
    """256 samples of 65536 / (1 + exp(-i / 24)), as published: 44 of them are one above the rounded value.

    Ties: up (none occurs). Types: int64 values in 32768..65535.
    Source: docs/facts/litert.md 1.9 (T), read and compared with the published table.

    >>> sigmoid_table_s16()[[0, 1, 4, 254, 255]].tolist()
    [32768, 33451, 35493, 65534, 65535]
    """
    # No sample is closer than 1e-3 to a tie, so the last bit of exp does not matter.
    table = np.floor(65536.0 / (1.0 + np.exp(-np.arange(256) / 24.0)) + 0.5).astype(np.int64)
    table[_SIGMOID_CORRECTIONS] += 1
    return table

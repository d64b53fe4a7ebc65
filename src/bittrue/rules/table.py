"""Slot `table`: how a real function becomes a table of integers at plan time, and how that table is read.

A function takes a binary64 array of real arguments; its result is rounded to binary32 if it is not binary32 already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..arithmetic import elementary, fixed_point, floats, multiplier, tables, transcendental
from ..records import dataclass
from . import rescale
from .affine_sum import check_scales
from .to_integer import clamp_even

Build = Callable[[Any, float, int, float, int, int, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class TableRule:
    """`build(function, input scale, input zero point, output scale, output zero point, minimum, maximum)` gives the
    table, `read(table, q, minimum)` the results for quantized values q of a type that starts at `minimum`.
    `binary64`: functions of several steps, like the logistic one, take all of them in binary64. `exact`: functions take
    and give a Fraction.
    """

    build: Build
    read: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
    formula: str
    source: str
    binary64: bool = False
    exact: bool = False


def _read_direct(table: np.ndarray, q: np.ndarray, minimum: int) -> np.ndarray:
    """table[q - minimum].

    A tie (1.5), a negative tie and a saturation, output scale 2:

    >>> rule = RULES["binary32_reciprocal_256_away"]
    >>> entries = rule.build(lambda x: x, 1.0, 0, 2.0, 0, -128, 127)
    >>> rule.read(entries, np.int8([3, -3]), -128).tolist()
    [2, -2]
    >>> rule.build(lambda x: 9 * x, 1.0, 0, 2.0, 0, -128, 127)[[0, 255]].tolist()
    [-128, 127]
    """
    return np.asarray(table[q.astype(np.intp) - minimum])


def _build_513(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
    fused: bool = False,
) -> np.ndarray:
    return tables.table_513(function, input_scale, input_zero_point, output_scale, output_zero_point, fused=fused)


def _read_interpolated(table: np.ndarray, q: np.ndarray, minimum: int) -> np.ndarray:
    """Linear between entries, ties up.

    A tie (0.5), a negative tie and a saturation:

    >>> rule = RULES["binary32_reciprocal_513_linear_up"]
    >>> half = rule.build(lambda x: x / 2, 1.0, 0, 1.0, 0, -32768, 32767)
    >>> rule.read(half, np.int16([1, 3, -1, -3]), -32768).tolist()
    [1, 2, 0, -1]
    >>> double = rule.build(lambda x: 2 * x, 1.0, 0, 1.0, 0, -32768, 32767)
    >>> rule.read(double, np.int16([-32768, 32767]), -32768).tolist()
    [-32768, 32767]
    """
    return tables.lookup_513(table, q)


def _build_256_even(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """The zero point is added before rounding, ties to even: 2.5 becomes 2, and with zero point 1, 3.5 becomes 4.

    >>> rule = RULES["binary32_reciprocal_sum_256_even"]
    >>> entries = [rule.build(lambda x: x / 2, 1.0, 0, 1.0, z, -128, 127)[128 + 5] for z in (0, 1)]
    >>> [int(entry) for entry in entries]
    [2, 4]
    """
    f32 = np.float32
    with np.errstate(all="ignore"):
        inverse = f32(1) / f32(output_scale)
        q = np.arange(minimum, maximum + 1).astype(f32)
        argument = (q - f32(input_zero_point)) * f32(input_scale)
        value = np.asarray(function(argument.astype(np.float64))).astype(f32)
        y = np.rint(value * inverse + f32(output_zero_point))
    y = np.where(np.isnan(y), f32(0), y)
    return np.clip(y, f32(minimum), f32(maximum)).astype(np.int64)


def _values(function: tables.Function, factor: np.float32, zero_point: int, minimum: int, maximum: int) -> np.ndarray:
    """f32(function(f32(factor * (q - zero point)))) of every quantized value q."""
    quantized = np.arange(minimum, maximum + 1) - zero_point
    argument = factor * quantized.astype(np.float32)
    return np.asarray(function(argument.astype(np.float64))).astype(np.float32)


def _build_divide_even(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """The zero point is added after ties have gone to even; NaN gives the minimum.

    >>> rule = RULES["binary32_divide_256_even"]
    >>> entries = [rule.build(lambda x: x / 2, 1.0, 0, 1.0, z, -128, 127)[128 + 5] for z in (0, 1)]
    >>> [int(entry) for entry in entries]
    [2, 3]
    """
    with np.errstate(all="ignore"):
        value = _values(function, np.float32(input_scale), input_zero_point, minimum, maximum)
        return clamp_even(value / np.float32(output_scale), np.asarray(output_zero_point), minimum, maximum)


def _build_ratio_even(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """The function sees steps of the output, not real numbers. NaN cannot occur for finite scales above 0.

    >>> rule = RULES["binary32_ratio_256_even"]
    >>> [int(rule.build(lambda x: x, 1.0, 0, 2.0, z, -128, 127)[128 + 5]) for z in (0, 1)]
    [2, 3]
    """
    with np.errstate(all="ignore"):
        factor = np.float32(input_scale) / np.float32(output_scale)
        value = _values(function, factor, input_zero_point, minimum, maximum)
        return clamp_even(value, np.asarray(output_zero_point), minimum, maximum)


def _build_divide_away(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """Ties away from zero, the zero point added and the ends applied to real numbers. NaN raises ValueError.

    >>> rule = RULES["binary32_divide_256_away"]
    >>> entries = [rule.build(lambda x: x / 2, 1.0, 0, 1.0, z, -128, 127)[128 + 5] for z in (0, 1)]
    >>> [int(entry) for entry in entries]
    [3, 4]
    """
    with np.errstate(all="ignore"):
        value = _values(function, np.float32(input_scale), input_zero_point, minimum, maximum)
        moved = floats.round_away(value / np.float32(output_scale)) + np.float32(output_zero_point)
    if np.isnan(moved).any():
        raise ValueError("some quantized values give NaN, which has no quantized value")
    return np.clip(moved, np.float32(minimum), np.float32(maximum)).astype(np.int64)


def _build_exact_even(
    function: Callable[[Fraction], Fraction],
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """Scales that are not finite and above 0 raise ValueError.

    >>> rule = RULES["exact_256_even"]
    >>> [int(rule.build(lambda x: x / 2, 1.0, 0, 1.0, z, -128, 127)[128 + 5]) for z in (0, 1)]
    [2, 3]
    """
    first, second = float(np.float32(input_scale)), float(np.float32(output_scale))
    check_scales(first, second)
    stored = []
    for q in range(minimum, maximum + 1):
        value = round(function(Fraction(first) * (q - input_zero_point)) / Fraction(second))
        stored.append(min(max(value + output_zero_point, minimum), maximum))
    return np.array(stored, np.int64)


def _build_f4(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """Arguments in fixed point with 4 integer bits; outside of (-16, 16) the ends. The output scale is 2^-8 (logistic)
    or 2^-7 (tanh), the output zero point `minimum` or 0, whatever the caller says.
    """
    fixed, bits, zero_point = _F4[function]
    real = np.float64(np.float32(input_scale)) * 2.0**27
    encoded, exponent = (int(v) for v in multiplier.encode_q31(real))
    radius = int(np.floor(15 * 2.0**27 / 2.0**exponent))
    x = np.arange(minimum, maximum + 1, dtype=np.int64) - input_zero_point
    prepared = {"multiplier": np.asarray(encoded), "exponent": np.asarray(exponent)}
    inside = np.abs(x) < radius
    raw = rescale.RULES["q31_one_step_up"].apply(np.where(inside, x, 0), prepared)
    q = fixed_point.divide_by_power_of_two_away(fixed(raw), 31 - bits) + zero_point
    return np.where(inside, np.clip(q, minimum, maximum), np.where(x < 0, minimum, maximum))


# real function -> its fixed-point form, fractional bits of the result, output zero point
_F4: dict[tables.Function, tuple[Callable[[np.ndarray], np.ndarray], int, int]] = {
    tables.logistic: (transcendental.logistic_f4, 8, -128),
    elementary.tanh: (transcendental.tanh_f4, 7, 0),
}


def _build_midpoints(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """The same whatever function and parameters are: c + sign(q - c) round_even(127 (t(k - 1/2) + t(k + 1/2)) / 2) for
    k = |q - c| < 127, else c + sign(q - c) 127, c the middle of the type, t(x) = tanh(3 x / 127).

    3/127 and 1/127 are rounded to binary32, all else is binary64; no entry is nearer to a tie than 0.0004.

    >>> [int(entry) for entry in RULES["tanh_midpoints_127_even"].build(abs, 0, 0, 0, 0, 0, 255)[[0, 1, 128, 255]]]
    [1, 1, 128, 255]
    """
    centre, width = (minimum + maximum + 1) // 2, float(np.float32(3 / 127))
    unit = float(np.float32(1 / 127))

    def entry(k: int) -> int:
        return round((math.tanh((k - 0.5) * width) + math.tanh((k + 0.5) * width)) / 2 / unit) if k < 127 else 127

    quantized = range(minimum, maximum + 1)
    return np.array([centre + (entry(abs(q - centre)) * (1 if q > centre else -1)) for q in quantized], np.int64)


def _build_midpoints_less_1(
    function: tables.Function,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
) -> np.ndarray:
    """tanh(x / 2) = 2 logistic(x) - 1, in steps that are half as large and one less.

    >>> [int(entry) for entry in RULES["tanh_midpoints_127_even_less_1"].build(abs, 0, 0, 0, 0, 0, 255)[[0, 128, 255]]]
    [0, 127, 254]
    """
    return (
        _build_midpoints(function, input_scale, input_zero_point, output_scale, output_zero_point, minimum, maximum) - 1
    )


RULES: dict[str, TableRule] = {
    "binary32_reciprocal_256_away": TableRule(
        tables.table_256,
        _read_direct,
        "one entry per input: clamp(round_away(f32(f(x) * f32(1 / output scale))) + zero point)",
        "docs/facts/litert.md 1.9 (LUT8), verified by running",
    ),
    "binary32_reciprocal_sum_256_even": TableRule(
        _build_256_even,
        _read_direct,
        "one entry per input: clamp(round_even(f32(f32(f(x) * f32(1 / output scale)) + zero point))), "
        "x = f32((q - zero point) * scale)",
        "docs/facts/xnnpack.md 2.4, verified by running",
        binary64=True,
    ),
    "binary32_divide_256_even": TableRule(
        _build_divide_even,
        _read_direct,
        "one entry per input: clamp(round_even(f32(f(x) / output scale)) + zero point), "
        "x = f32((q - zero point) * scale)",
        "docs/facts/onnxruntime.md 3.3, verified by running",
    ),
    "binary32_ratio_256_even": TableRule(
        _build_ratio_even,
        _read_direct,
        "one entry per input: clamp(round_even(f(x)) + zero point), "
        "x = f32(f32(scale / output scale) * (q - zero point))",
        "docs/facts/caffe2.md 1 (Int8LeakyRelu), verified by running",
    ),
    "binary32_divide_256_away": TableRule(
        _build_divide_away,
        _read_direct,
        "one entry per input: clamp(f32(round_away(f32(f(x) / output scale)) + zero point)), "
        "x = f32((q - zero point) * scale)",
        "docs/facts/tvm_qnn.md 10, verified by running",
    ),
    "exact_256_even": TableRule(
        _build_exact_even,
        _read_direct,
        "one entry per input: clamp(round_even(f(scale * (q - zero point)) / output scale) + zero point) in real "
        "numbers",
        "definition",
        exact=True,
    ),
    "tanh_midpoints_127_even": TableRule(
        _build_midpoints,
        _read_direct,
        "one entry per input, whatever the scales are: 128 + sign(q - 128) round_even(127 (tanh((k - 1/2) d) + "
        "tanh((k + 1/2) d)) / 2), k = |q - 128| < 127, d = 3 / 127; 127 steps beyond",
        "docs/facts/caffe2.md 2 (Int8Tanh), verified by running",
    ),
    "tanh_midpoints_127_even_less_1": TableRule(
        _build_midpoints_less_1,
        _read_direct,
        "tanh_midpoints_127_even less 1: the logistic function of twice the argument",
        "docs/facts/caffe2.md 2 (Int8Sigmoid), verified by running",
    ),
    "f4_newton_256_one_step_up": TableRule(
        _build_f4,
        _read_direct,
        "one entry per input: the argument in fixed point with 4 integer bits, rounded up at ties; exp and 1/(1+x) as "
        "softmax has them; nearest, ties away from zero",
        "docs/facts/single_rounding.md 2.4, verified by running",
    ),
    "binary32_reciprocal_513_linear_up": TableRule(
        _build_513,
        _read_interpolated,
        "one entry per 128 inputs, corrected by half the error in the middle, then linear interpolation with ties up",
        "docs/facts/litert.md 1.9 (LUT16), verified by running",
    ),
    "binary32_reciprocal_513_fused_linear_up": TableRule(
        partial(_build_513, fused=True),
        _read_interpolated,
        "the same with one rounding of each product and the sum that it is part of",
        "docs/facts/litert.md 1.9 (LUT16), run on aarch64: every input of 40 pairs of scales",
    ),
}

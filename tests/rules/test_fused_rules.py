"""Rules of fused multiply-adds on quantized numbers, against fractions that are rounded where the rule rounds."""

from __future__ import annotations

import decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittrue.arithmetic import exact, reciprocal_root
from bittrue.rules import affine_scale, affine_sum, affine_sum_of_many, combine, quantize, table, window_average
from support.rounding import f32

F32 = np.float32
quantized = st.integers(0, 255)
moderate = st.one_of(st.floats(2.0**-10, 2.0**10, width=32), st.sampled_from([0.5, 1.0, 0.25]))
pair = st.tuples(moderate, quantized)


def even(value: Fraction) -> int:
    return exact.nearest(value, "even")


def clamp(value: int, low: int = 0, high: int = 255) -> int:
    return min(max(value, low), high)


def fits(value: int, bits: int) -> int:
    """`value`, or the lowest number of so many bits."""
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else -(2 ** (bits - 1))


@given(pair, pair, pair, quantized, quantized)
def test_two_input_sums(first: tuple, second: tuple, output: tuple, a: int, b: int) -> None:
    (s, z), (t, w), (u, v) = first, second, output
    s, t, u = Fraction(s), Fraction(t), Fraction(u)
    constant = f32(-z * s - f32(w * t))
    total = f32(b * t + f32(a * s + constant))
    by_reciprocal = clamp(fits(even(f32(total * f32(1 / u) + v)), 32))
    total = f32((b - w) * t + f32((a - z) * s))
    by_quotient = clamp(even(f32(v + f32(total / u))))
    wanted = {"binary32_fused_reciprocal_even": by_reciprocal, "binary32_fused_quotient_even": by_quotient}
    for name, expected in wanted.items():
        rule = affine_sum.RULES[name]
        found = rule.apply(np.uint8([a]), np.uint8([b]), rule.prepare(first, second, output), 0, 255)
        assert found.tolist() == [expected], name


def test_two_input_sums_without_a_number() -> None:
    """Infinities and NaN, which tiny output scales give: the blocks take the lowest number, the rest saturates."""
    for name, expected in (("binary32_fused_reciprocal_even", [0, 0]), ("binary32_fused_quotient_even", [255, 0])):
        rule = affine_sum.RULES[name]
        prepared = rule.prepare((1.0, 100), (1.0, 100), (1e-38, 0))
        assert rule.apply(np.uint8([255, 0]), np.uint8([255, 0]), prepared, 0, 255).tolist() == expected, name


@given(st.lists(pair, min_size=1, max_size=5), pair, st.lists(quantized, min_size=5, max_size=5))
def test_sums_of_many(inputs: list[tuple], output: tuple, stored: list[int]) -> None:
    scales = [Fraction(scale) for scale, _ in inputs]
    ends = [f32(s * (end - z)) for s, (_, z) in zip(scales, inputs, strict=True) for end in (0, 255)]
    low, high = min(*ends, Fraction(0)), max(*ends, Fraction(0))
    # The difference of two binary32 numbers and its quotient are rounded to binary64 first.
    unit = f32((float(high) - float(low)) / 65535) or f32(0.1)
    from_low, from_high = float(low) / float(unit), float(high) / float(unit)
    zero_point = -from_low if abs(from_low) < 65535 + abs(from_high) else 65535 - from_high
    middle = clamp(even(Fraction(zero_point)), 0, 65535)
    total = 0
    for q, s, (_, z) in zip(stored, scales, inputs, strict=False):
        total += clamp(even(f32((q - z) * f32(s / unit))) + middle, 0, 65535)
    raw = total - len(inputs) * middle
    expected = clamp(even(f32(f32(raw) * f32(unit / Fraction(output[0])))) + output[1])
    rule = affine_sum_of_many.RULES["binary32_16_bits_even"]
    prepared = rule.prepare(inputs, output, 0, 255)
    arrays = [np.uint8([q]) for q in stored[: len(inputs)]]
    assert rule.apply(arrays, prepared, 0, 255).tolist() == [expected]


def test_sums_of_many_at_the_ends() -> None:
    rule = affine_sum_of_many.RULES["binary32_16_bits_even"]
    huge = [np.uint8([255]), np.uint8([255])]
    # Beyond 64 bits the lowest number, however large the sum is.
    for scale, expected in ((1e-15, 255), (1e-25, 0)):
        prepared = rule.prepare([(1.0, 0), (1.0, 0)], (scale, 0), 0, 255)
        assert rule.apply(huge, prepared, 0, 255).tolist() == [expected]
    with pytest.raises(ValueError, match="no scale of 16 bits"):
        rule.prepare([(3e38, 0)], (1.0, 0), 0, 255)


@given(pair, pair, quantized, st.tuples(*[st.floats(-50, 50, width=32)] * 3), st.floats(2.0**-10, 100, width=32))
def test_affine_scale(source: tuple, output: tuple, q: int, vectors: tuple, variance: float) -> None:
    (s, z), (u, v) = source, output
    gamma, beta, mean = (Fraction(number) for number in vectors)
    epsilon = f32(1e-5)
    shifted = f32(Fraction(variance) + epsilon)
    with decimal.localcontext(prec=60):
        root = f32(Fraction((decimal.Decimal(shifted.numerator) / decimal.Decimal(shifted.denominator)).sqrt()))
    factor = f32(gamma * f32(1 / root))
    addend = f32(beta - f32(factor * mean))
    factor, addend = f32(factor * f32(Fraction(s) / Fraction(u))), f32(addend / Fraction(u))
    rounded = even(f32(factor * (q - z) + addend))
    arrays = [np.float32([number]) for number in (*vectors, variance)]
    for name, bits in (("binary32_fused_even", 32), ("binary32_fused_even_64_bits", 64)):
        rule = affine_scale.RULES[name]
        found = rule.apply(np.uint8([[q]]), rule.prepare(source, output, arrays, 1e-5), 0, 255)
        assert found.tolist() == [[clamp(fits(rounded, bits) + v)]], name


def test_estimated_roots() -> None:
    """What an AMD EPYC gave, and how near estimates and their refinements are."""
    x = np.float32([1.0, 1.5, 3.999999, 0.1, 7.0, 1e-30, 3e30, 123.456])
    recorded = np.array(
        [
            0.9998779296875,
            0.8165283203125,
            0.5,
            3.16259765625,
            0.3779296875,
            1000005825462272.0,
            5.773376568485311e-16,
            0.089996337890625,
        ]
    )
    assert reciprocal_root.estimate(x).tolist() == recorded.tolist()
    x = np.geomspace(1e-37, 1e37, 200_001).astype(np.float32)
    roots = 1 / np.sqrt(x.astype(np.float64))
    assert np.abs(reciprocal_root.estimate(x) / roots - 1).max() < 2.0**-11.9
    assert np.abs(reciprocal_root.refined(x) / roots - 1).max() < 2.0**-22.3
    # Groups of four channels take it, others the root; 1 / sqrt(7) tells them apart.
    zeros, ones, sevens = (np.full(5, number, np.float32) for number in (0, 1, 7))
    rule = affine_scale.RULES["binary32_fused_even"]
    prepared = rule.prepare((1.0, 0), (1.0, 0), (ones, zeros, zeros, sevens), 0.0)
    assert prepared["factors"].tolist() == [0.37796446681022644] * 4 + [0.37796449661254883]


def test_affine_scale_rules_are_told_apart() -> None:
    ones = np.ones(1, np.float32)
    results = {}
    for name, rule in affine_scale.RULES.items():
        prepared = rule.prepare((1.0, 0), (2.0**-30, 0), (ones, 0 * ones, 0 * ones, ones), 0.0)
        results[name] = rule.apply(np.uint8([[2]]), prepared, 0, 255).tolist()
    assert results == {"binary32_fused_even": [[0]], "binary32_fused_even_64_bits": [[255]]}


@given(moderate, pair, st.integers(-(2**20), 2**20), st.integers(1, 2000))
def test_averages_of_what_lies_inside(scale: float, output: tuple, total: int, count: int) -> None:
    factor = f32(f32(Fraction(scale) / Fraction(output[0])) / count)
    expected = clamp(fits(even(f32(f32(total) * factor + output[1])), 32))
    rule = window_average.RULES["binary32_fused_inside_even"]
    arrays = rule.prepare(scale, output[0], 9)
    assert rule.apply(np.int64([total]), np.int64([count]), arrays, output[1], 0, 255).tolist() == [expected]


@given(st.floats(-1e6, 1e6, width=32), pair)
def test_fused_quantization(x: float, output: tuple) -> None:
    scale, zero_point = output
    expected = clamp(even(f32(Fraction(x) * f32(1 / Fraction(scale)) + zero_point)))
    rule = quantize.QUANTIZE["binary32_reciprocal_fused_even"]
    assert rule(np.float32([x]), F32(scale), np.int64(zero_point), 0, 255).tolist() == [expected]


def test_fused_quantization_without_a_number() -> None:
    rule = quantize.QUANTIZE["binary32_reciprocal_fused_even"]
    x = np.float32([np.nan, np.inf, -np.inf, 3e9, -3e9, 2147483648, -2147483648])
    assert rule(x, F32(1), np.int64(7), 0, 255).tolist() == [255, 255, 0, 255, 0, 255, 0]


@given(pair, pair, quantized)
def test_combination_by_one_factor(source: tuple, output: tuple, q: int) -> None:
    (s, z), (u, v) = source, output
    expected = clamp(even(f32((q - z) * f32(Fraction(s) / Fraction(u)))) + v)
    assert combine.RULES["binary32_multiply_even"](np.uint8([q]), s, z, u, v, 0, 255).tolist() == [expected]


def test_tables_of_midpoints_against_decimals() -> None:
    """tanh = (e^2x - 1) / (e^2x + 1) with 40 digits."""
    width, unit = Fraction(float(F32(3 / 127))), Fraction(float(F32(1 / 127)))

    def tanh(x: Fraction) -> Fraction:
        with decimal.localcontext(prec=40):
            power = (decimal.Decimal(2 * x.numerator) / decimal.Decimal(x.denominator)).exp()
            return Fraction((power - 1) / (power + 1))

    half = Fraction(1, 2)
    steps = [even((tanh((k - half) * width) + tanh((k + half) * width)) / 2 / unit) for k in range(127)] + [127, 127]
    expected = [128 + (steps[q - 128] if q > 128 else -steps[128 - q]) for q in range(256)]
    for name, less in (("tanh_midpoints_127_even", 0), ("tanh_midpoints_127_even_less_1", 1)):
        built = table.RULES[name].build(np.abs, 0.0, 0, 0.0, 0, 0, 255)
        assert built.tolist() == [entry - less for entry in expected], name

"""Levels with binary64 scales: exact oracles on integers and fractions, and cases that tell rules apart."""

from __future__ import annotations

import itertools
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bittrue.arithmetic import exact, hyperbolic
from bittrue.rules import examples, interpolate, level_sum, levels, window_levels
from support.rounding import f32

F32 = np.float32
scales = st.one_of(st.floats(2.0**-12, 2.0**6), st.sampled_from([1.0, 0.5, 0.25, 0.1, 3.0, 1 / 3]))
points = st.one_of(st.integers(-300, 300), st.sampled_from([0, 128, 255, -128]))
elements = st.integers(-128, 255)


def packed(value: float) -> Fraction:
    """A binary64 number as a binary32 one, by the machine's own conversion."""
    return Fraction(struct.unpack("f", struct.pack("f", value))[0])


def quantized(x: Fraction, scale: float, zero_point: int, tie: str) -> Fraction:
    steps = x if scale == 1 else Fraction(exact.nearest(f32(x / packed(scale)), tie))
    return f32(steps + zero_point)


def multiplied(x: Fraction, scale: float, zero_point: int, tie: str) -> Fraction:
    return f32(exact.nearest(f32(x * packed(1 / scale)), tie) + zero_point)


ORACLES = {
    "binary32_divide_away": lambda x, s, z: quantized(x, s, z, "away"),
    "binary32_divide_even": lambda x, s, z: quantized(x, s, z, "even"),
    "binary32_multiply_away": lambda x, s, z: multiplied(x, s, z, "away"),
    "binary32_multiply_even": lambda x, s, z: multiplied(x, s, z, "even"),
    "whole_away": lambda x, s, z: Fraction(exact.nearest(x, "away")),
}


@pytest.mark.parametrize("name", sorted(ORACLES))
@given(st.floats(-(2.0**16), 2.0**16, width=32), scales, points, st.integers(-200, 200))
def test_levels_are_the_oracle(name: str, x: float, scale: float, zero_point: int, near: int) -> None:
    """A random number, and those around a tie of the quotient and of the product."""
    ties = [F32((near + 0.5) * scale), F32((near + 0.5) / scale)]
    numbers = F32([x, *ties, *(np.nextafter(tie, F32(end)) for tie in ties for end in (-np.inf, np.inf))])
    assert set(ORACLES) == set(levels.RULES)
    found = levels.RULES[name].apply(numbers, scale, zero_point)
    assert [Fraction(float(y)) for y in found] == [
        ORACLES[name](Fraction(float(value)), scale, zero_point) for value in numbers
    ]


@given(st.floats(-(2.0**20), 2.0**20, width=32), scales, points)
def test_real_numbers_of_levels(x: float, scale: float, zero_point: int) -> None:
    found = levels.real(F32([x]), scale, zero_point)[0]
    assert Fraction(float(found)) == f32(f32(Fraction(x) - zero_point) * packed(scale))


def test_levels_pass_infinities_and_nan_on() -> None:
    for rule in levels.RULES.values():
        found = rule.apply(F32([np.inf, -np.inf, np.nan]), 0.3, 5)
        assert found[0] == np.inf
        assert found[1] == -np.inf
        assert np.isnan(found[2])


def two_step(value: int, real: float) -> int:
    """The 64-bit product's high half with ties up, then a power of two with ties away from zero."""
    fraction, exponent = math.frexp(real)
    multiplier = exact.nearest(Fraction(fraction) * 2**31, "away")
    if exponent < -31:
        return 0
    shifted = value * 2 ** max(exponent, 0)
    high = exact.nearest(Fraction(shifted * multiplier, 2**31), "up")
    return exact.nearest(Fraction(high, 2 ** max(-exponent, 0)), "away")


def has_multiplier(real: float) -> bool:
    return math.frexp(real)[0] * 2.0**31 < 2.0**31 - 0.5


@given(scales, scales, scales, points, points, points, elements, elements)
def test_sums_by_shifts_are_the_oracle(s: float, t: float, u: float, z: int, w: int, v: int, a: int, b: int) -> None:
    rule, unit = level_sum.RULES["q31_left_20_two_step"], 2 * max(s, t)
    aligned = two_step((a - z) << 20, s / unit) + two_step((b - w) << 20, t / unit)
    real = unit / (2.0**20 * u)
    assume(has_multiplier(s / unit) and has_multiplier(t / unit) and has_multiplier(real))
    expected = two_step(aligned, real) + v
    found = rule.apply(np.int64([a]), np.int64([b]), rule.prepare((s, z), (t, w), (u, v)))
    assert found.tolist() == [expected]


@given(scales, scales, scales, points, points, points, elements, elements)
def test_sums_of_21_bits_are_the_oracle(s: float, t: float, u: float, z: int, w: int, v: int, a: int, b: int) -> None:
    rule = level_sum.RULES["binary32_of_21_bits_away"]
    one, two = (f32(packed(scale) / packed(u)) for scale in (s, t))
    largest, bits = max(one, two), 0
    while largest * 2**bits < 2**21:
        bits += 1
    if bits > 30:
        with pytest.raises(ValueError, match="too small beside"):
            rule.prepare((s, z), (t, w), (u, v))
        return
    acc = sum((q - p) * exact.nearest(f * 2**bits, "away") for q, p, f in ((a, z, one), (b, w, two)))
    expected = exact.nearest(f32(f32(acc) / 2**bits), "away") + v
    found = rule.apply(np.int64([a]), np.int64([b]), rule.prepare((s, z), (t, w), (u, v)))
    assert found.tolist() == [expected]


def test_sums_of_numbers_between_levels() -> None:
    """The one rule truncates them, the other one rounds ties away from zero."""
    halves = F32([1.5, -1.5, 2.5, 0.4]), F32([0, 0, 0, 0.6])
    results = {}
    for name, rule in level_sum.RULES.items():
        results[name] = rule.apply(*halves, rule.prepare((1.0, 0), (1.0, 0), (1.0, 0))).tolist()
    assert results == {"q31_left_20_two_step": [1, -1, 2, 0], "binary32_of_21_bits_away": [2, -2, 3, 1]}


@pytest.mark.parametrize(
    ("name", "scales", "match"),
    [
        ("q31_left_20_two_step", (0.0, 1.0, 1.0), "fixed-point form"),
        ("q31_left_20_two_step", (1.0, 1.0, 0.0), "no meaning"),
        ("q31_left_20_two_step", (1.0, math.nan, 1.0), "fixed-point form"),
        ("q31_left_20_two_step", (1.0, 1.0, 2.0**-19 / (1 - 2.0**-40)), "rounded up to 1"),
        ("binary32_of_21_bits_away", (1.0, 1.0, 2.0**11), "too small beside"),
        ("binary32_of_21_bits_away", (2.0**40, 1.0, 1.0), "no defined multipliers"),
        ("binary32_of_21_bits_away", (1.0, 1.0, 0.0), "no defined multipliers"),
    ],
)
def test_scales_without_a_defined_sum(name: str, scales: tuple[float, float, float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        level_sum.RULES[name].prepare(*((scale, 0) for scale in scales))


def test_levels_without_a_defined_sum() -> None:
    rule = level_sum.RULES["q31_left_20_two_step"]
    prepared = rule.prepare((1.0, 0), (1.0, 0), (1.0, 0))
    assert rule.apply(np.int64([-2048]), np.int64([2047]), prepared).tolist() == [-1]
    for level in (2048.0, -2049.0, math.nan, math.inf, 3e10):
        with pytest.raises(ValueError, match=r"leaves 32 bits|32 bits do not hold"):
            rule.apply(F32([level]), F32([0]), prepared)


windows = st.lists(elements, min_size=1, max_size=30)


@given(scales, scales, points, points, windows)
def test_averages_are_the_oracle(s: float, u: float, z: int, v: int, window: list[int]) -> None:
    total, count = sum(window), len(window)
    factor = f32(packed(s) / f32(packed(u) * count))
    product = f32(f32(total - z * count) * factor)
    expected: dict[str, Fraction | int] = {
        "binary32_over_product_even": f32(exact.nearest(product, "even") + v),
        "binary32_over_product_away": f32(exact.nearest(product, "away") + v),
        "binary32_quotient": f32(Fraction(total, count)),
        "q31_two_step_then_away": f32(exact.nearest(Fraction(two_step(total - z * count, s / u), count), "away") + v),
    }
    assume(has_multiplier(s / u) and abs(total - z * count) * s / u < 2.0**30)
    assert set(expected) == set(window_levels.RULES)
    for name, rule in window_levels.RULES.items():
        if name.startswith("q31") and s == u:
            continue
        found = rule.apply(F32([total]), np.int64([count]), (s, z), (u, v))
        assert [Fraction(float(y)) for y in found] == [expected[name]], name
    same = window_levels.RULES["q31_two_step_then_away"].apply(F32([total]), np.int64([count]), (s, z), (s, v))
    assert same.tolist() == [exact.nearest(Fraction(total, count), "away")]


def test_levels_rules_are_told_apart() -> None:
    """Quarters and integers over 1/2, and a scale of 1."""
    results = {
        name: (*rule.apply(F32([0.25, 1, 5]), 0.5, 1).tolist(), *rule.apply(F32([0.25]), 1.0, 1).tolist())
        for name, rule in levels.RULES.items()
    }
    assert results == {
        "binary32_divide_away": (2, 3, 11, 1.25),
        "binary32_divide_even": (1, 3, 11, 1.25),
        "binary32_multiply_away": (2, 3, 11, 1),
        "binary32_multiply_even": (1, 3, 11, 1),
        "whole_away": (0, 1, 5, 0),
    }
    assert len(set(results.values())) == len(results)


def test_level_sum_rules_are_told_apart() -> None:
    a = np.arange(-128, 128, dtype=np.int64)
    scales = (0.5, 0), (0.1, 0), (1.0, 0)
    results = [rule.apply(a[:, None], a[None, :], rule.prepare(*scales)).tobytes() for rule in level_sum.RULES.values()]
    assert len(set(results)) == len(results)


def test_window_levels_rules_are_told_apart() -> None:
    """-5 / 2 and 3 / 2 with zero point 1."""
    results = {
        name: tuple(rule.apply(F32([-5, 3, 4]), np.int64([2]), (1.0, 0), (1.0, 1)).tolist())
        for name, rule in window_levels.RULES.items()
    }
    assert results == {
        "q31_two_step_then_away": (-3, 2, 2),
        "binary32_over_product_even": (-1, 3, 3),
        "binary32_over_product_away": (-2, 3, 3),
        "binary32_quotient": (-2.5, 1.5, 2),
    }


@pytest.mark.parametrize("slot", ["levels", "level_sum", "window_levels"])
def test_examples_tell_rules_apart(slot: str) -> None:
    tables = {"levels": levels.RULES, "level_sum": level_sum.RULES, "window_levels": window_levels.RULES}
    for first, second in itertools.combinations(tables[slot], 2):
        found = examples.example(slot, first, second)
        assert found is not None, (first, second)
        assert found.results[0] != found.results[1]


@pytest.mark.parametrize(("align", "half"), [(False, False), (True, False), (False, True)])
@given(st.integers(1, 40), st.integers(1, 60))
def test_positions_of_pixels_are_the_oracle(align: bool, half: bool, size: int, out: int) -> None:
    step = f32(Fraction(size - 1, out - 1)) if align and out > 1 else f32(Fraction(size, out))
    low, high, weight = [], [], []
    for i in range(out):
        at = f32(f32((i + Fraction(1, 2)) * step) - Fraction(1, 2)) if half else f32(i * step)
        low.append(max(math.floor(at), 0))
        high.append(min(math.ceil(at), size - 1))
        weight.append(at - low[-1])
    if max(low) >= size:
        with pytest.raises(ValueError, match="reads input position"):
            interpolate.RULES["binary32_differences_unlimited"].prepare(size, out, align, half)
        return
    found = interpolate.RULES["binary32_differences_unlimited"].prepare(size, out, align, half)
    assert found["low"].tolist() == low
    assert found["high"].tolist() == high
    assert [Fraction(float(one)) for one in found["weight"]] == weight


@given(st.lists(st.integers(-128, 255), min_size=4, max_size=4), st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_interpolated_pixels_are_the_oracle(pixels: list[int], y: float, x: float) -> None:
    def between(one: Fraction, two: Fraction, weight: float) -> Fraction:
        return f32(one + f32(f32(two - one) * Fraction(weight)))

    p = [Fraction(pixel) for pixel in pixels]
    expected = between(between(p[0], p[2], x), between(p[1], p[3], x), y)
    corners = tuple(F32([pixel]) for pixel in pixels)
    found = interpolate.RULES["binary32_differences_unlimited"].apply(corners, F32([y]), F32([x]))
    assert Fraction(float(found[0])) == expected


@given(st.floats(-30, 30))
def test_tanh_is_within_two_units_of_the_real_one(x: float) -> None:
    # Below, the cube of x does not reach its last bit.
    real = exact.tanh(x, 53) if abs(x) > 1e-9 else x
    assert abs(Fraction(float(hyperbolic.tanh(x))) - Fraction(real)) <= 2 * Fraction(math.ulp(real))


def test_tanh_keeps_signs_and_what_is_no_number() -> None:
    found = hyperbolic.tanh([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 22.0])
    assert np.signbit(found[:2]).tolist() == [False, True]
    assert found[2:4].tolist() == [1, -1]
    assert np.isnan(found[4])
    assert found[5:].tolist() == [1e-320, 1]

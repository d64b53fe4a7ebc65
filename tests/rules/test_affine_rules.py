"""Sums, products and averages of quantized numbers: exact oracles on fractions, and cases that tell rules apart."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bittrue.arithmetic import exact, steps
from bittrue.rules import affine_average, affine_product, affine_softmax, affine_sum, mean
from support.rounding import f32

F32 = np.float32
scales = st.one_of(
    st.floats(2.0**-20, 2.0**20, width=32), st.integers(-149, 127).map(lambda e: 2.0**e), st.sampled_from([0.1, 3.0])
)
quantized = st.integers(-128, 127)
pairs = st.tuples(scales, quantized)
quadruple = st.tuples(pairs, pairs, pairs, quantized, quantized)


def _clamp(value: int, low: int = -128, high: int = 127) -> int:
    return min(max(value, low), high)


# Products and quotients that stay far from subnormal numbers and from infinity.
moderate = st.tuples(*[st.tuples(st.floats(2.0**-10, 2.0**10, width=32), quantized)] * 3, quantized, quantized)


@given(moderate)
def test_fused_sum_is_the_oracle(case: tuple) -> None:
    (s, z), (t, w), (u, v), a, b = case
    rule = affine_sum.RULES["binary32_fused_even"]
    r, q = f32(Fraction(s) / Fraction(u)), f32(Fraction(t) / Fraction(u))
    constant = f32(v - f32(r * z + f32(q * w)))
    expected = _clamp(round(f32(a * r + f32(b * q + constant))))
    found = rule.apply(np.int8([a]), np.int8([b]), rule.prepare((s, z), (t, w), (u, v)), -128, 127)
    assert found.tolist() == [expected]


@given(moderate)
def test_binary32_product_is_the_oracle(case: tuple) -> None:
    (s, z), (t, w), (u, v), a, b = case
    rule = affine_product.RULES["binary32_zero_point_even"]
    factor = f32(f32(Fraction(s) * Fraction(t)) / Fraction(u))
    expected = round(f32(f32((a - z) * (b - w) * factor) + v))
    # What does not fit 32 bits becomes -2^31.
    expected = _clamp(expected if -(2**31) <= expected < 2**31 else -(2**31))
    found = rule.apply(np.int8([a]), np.int8([b]), rule.prepare((s, z), (t, w), (u, v)), -128, 127)
    assert found.tolist() == [expected]


@given(moderate)
def test_fused_product_is_the_oracle(case: tuple) -> None:
    (s, z), (t, w), (u, v), a, b = case
    rule = affine_product.RULES["binary32_fused_zero_point_even"]
    factor = f32(f32(Fraction(s) * Fraction(t)) / Fraction(u))
    expected = _clamp(round(f32((a - z) * (b - w) * factor + v)))
    found = rule.apply(np.int8([a]), np.int8([b]), rule.prepare((s, z), (t, w), (u, v)), -128, 127)
    assert found.tolist() == [expected]


@given(moderate)
def test_sum_of_22_bits_is_the_oracle(case: tuple) -> None:
    (s, z), (t, w), (u, v), a, b = case
    rule = affine_sum.RULES["22_bits_away"]
    ratios = [f32(Fraction(scale) / Fraction(u)) for scale in (s, t)]
    shift = 21 - (math.frexp(max(ratios))[1] - 1)
    multipliers = [round(ratio * 2**shift) for ratio in ratios]
    if min(ratios) >= 2**-14 and max(ratios) < 256 and 13 <= shift <= 31 and max(multipliers) < 2**22:
        total = Fraction((a - z) * multipliers[0] + (b - w) * multipliers[1], 2**shift)
        expected = _clamp(exact.nearest(total, "away") + v)
    else:
        total = f32(f32((a - z) * Fraction(s) + f32((b - w) * Fraction(t))) / Fraction(u))
        expected = round(f32(min(max(total, -128 - v), 127 - v) + v))
    found = rule.apply(np.int8([a]), np.int8([b]), rule.prepare((s, z), (t, w), (u, v)), -128, 127)
    assert found.tolist() == [expected]


@given(quadruple)
def test_exact_sum_and_product_are_the_oracle(case: tuple) -> None:
    (s, z), (t, w), (u, v), a, b = case
    first, second, output = (Fraction(float(F32(scale))) for scale in (s, t, u))
    both = {
        "sum": (affine_sum, (a - z) * first + (b - w) * second),
        "product": (affine_product, (a - z) * first * (b - w) * second),
    }
    for module, real in both.values():
        rule = module.RULES["exact_even"]
        expected = _clamp(exact.nearest(real / output, "even") + v)
        found = rule.apply(np.int8([a]), np.int8([b]), rule.prepare((s, z), (t, w), (u, v)), -128, 127)
        assert found.tolist() == [expected]


windows = st.lists(quantized, min_size=1, max_size=30)


@given(st.floats(2.0**-10, 2.0**10, width=32), st.floats(2.0**-10, 2.0**10, width=32), quantized, quantized, windows)
def test_binary32_average_is_the_oracle(s: float, t: float, z: int, w: int, window: list[int]) -> None:
    rule = affine_average.RULES["binary32_in_order_even"]
    prepared = rule.prepare((s, z), (t, w), -128, 127)
    total, summed = Fraction(0), F32(0)
    for q in window:
        total, summed = f32(total + f32((q - z) * Fraction(s))), summed + prepared["values"][q + 128]
    average = f32(total / len(window))
    expected = _clamp(round(f32(f32(average / Fraction(t)) + w)))
    assert rule.finish(np.array([summed]), np.int64(len(window)), prepared, -128, 127).tolist() == [expected]


@given(st.one_of(windows, st.lists(st.sampled_from([126, 127]), min_size=1, max_size=4)), st.integers(1, 200_000))
def test_average_of_codes_is_the_oracle(window: list[int], repeats: int) -> None:
    """Sums beyond 2^24 are rounded once, on their way to binary32."""
    rule = affine_average.RULES["codes_binary32_even"]
    prepared = rule.prepare((0.3, 7), (2.0, -5), -128, 127)
    total, count = sum(window) * repeats, len(window) * repeats
    assert [int(prepared["values"][q + 128]) for q in window] == window
    expected = _clamp(round(f32(f32(Fraction(total)) / f32(Fraction(count)))))
    assert rule.finish(np.array([total]), np.int64(count), prepared, -128, 127).tolist() == [expected]


@given(scales, scales, quantized, quantized, windows)
def test_exact_average_is_the_oracle(s: float, t: float, z: int, w: int, window: list[int]) -> None:
    rule = affine_average.RULES["exact_even"]
    prepared = rule.prepare((s, z), (t, w), -128, 127)
    total = sum(int(prepared["values"][q + 128]) for q in window)
    real = Fraction(float(F32(s))) * sum(q - z for q in window) / (len(window) * Fraction(float(F32(t))))
    found = rule.finish(np.array([total, 0]), np.array([len(window), 1]), prepared, -128, 127)
    assert found.tolist() == [_clamp(exact.nearest(real, "even") + w), w]


@given(st.floats(2.0**-9, 0.5, width=32), st.floats(2.0**-9, 1, width=32), quantized, windows)
def test_binary32_softmax_is_the_oracle(s: float, t: float, w: int, row: list[int]) -> None:
    """Exponentials by decimal numbers; the logarithm of the largest sum is that of the C library, rounded."""
    rule, context = affine_softmax.RULES["binary32_table_even"], Context(prec=50)
    prepared = rule.prepare((s, 3), (t, w), len(row))
    largest = float(F32(math.log(float(f32(Fraction(float(np.finfo(F32).max)) / len(row))))))
    raised = (largest - 5) / s
    powers = [float(context.exp(Decimal((q - max(row) + raised) * s))) for q in row]
    entries = [f32(Fraction(power)) for power in powers]
    total = Fraction(0)
    for entry in entries:
        total = f32(total + entry)
    factor = math.floor(f32(1 / Fraction(t)))
    if max(entries) * factor >= 2**128 - 2**103:  # rounded to infinity
        return
    products = [f32(entry * factor) for entry in entries]
    expected = [_clamp(round(f32(product / total)) + w) for product in products]
    assert rule.apply(np.int64([row]), prepared, -128, 127).tolist() == [expected]


@given(st.floats(2.0**-9, 2, width=32), st.floats(2.0**-9, 1, width=32), quantized, windows)
def test_exact_softmax_is_the_oracle(s: float, t: float, w: int, row: list[int]) -> None:
    rule, context = affine_softmax.RULES["exact_even"], Context(prec=90)
    powers = [Fraction(context.exp(Decimal(s) * (q - max(row)))) for q in row]
    expected = [_clamp(exact.nearest(power / sum(powers) / Fraction(t), "even") + w) for power in powers]
    assert rule.apply(np.int64([row]), rule.prepare((s, 3), (t, w), len(row)), -128, 127).tolist() == [expected]


def test_exact_softmax_near_ties() -> None:
    """Two equal elements over 1/5: the tie 2.5 of fractions of 2^-30 more or less, which binary64 does not show."""
    rule = affine_softmax.RULES["exact_even"]
    for unit, expected in ((0.25, 2), (0.2, 2), (float(np.nextafter(F32(0.2), F32(0))), 3)):
        prepared = rule.prepare((1.0, 0), (unit, 0), 2)
        share = exact.nearest(Fraction(1, 2) / Fraction(float(F32(unit))), "even")
        assert share == expected
        assert rule.apply(np.int64([[5, 5]]), prepared, -128, 127).tolist() == [[share, share]]


@given(scales, scales, st.integers(1, 2**20), st.integers(-(2**28), 2**28), st.integers(-600, 600))
def test_exact_mean_is_the_oracle(scale: float, output: float, count: int, total: int, near: int) -> None:
    """At a random sum, and around the one that is nearest to a tie."""
    rule = mean.RULES["exact_even"]
    assert rule.prepare_scales is not None
    prepared = rule.prepare_scales(scale, output, count, 3, 5)
    real = Fraction(float(F32(scale))) / (count * Fraction(float(F32(output))))
    tie = int((near + Fraction(1, 2)) / real)
    totals = [min(max(n, -(2**60)), 2**60) for n in (total, tie - 1, tie, tie + 1)]
    expected = [_clamp(exact.nearest(n * real, "even"), -511, 511) for n in totals]
    assert rule.apply(np.int64(totals), prepared).tolist() == expected


@given(st.integers(-(2**52), 2**52), st.integers(-1, 1), st.floats(2.0**-10, 2.0**40, width=32))
def test_nearest_even_quotient(units: int, lost: int, divisor: float) -> None:
    """Numerators around ties of the quotient, with and without something that was lost."""
    half = Fraction(2 * (units % 2001) - 1999, 2) * Fraction(divisor)
    high, low = float(half), lost * 1e-30
    expected = exact.nearest((Fraction(high) + Fraction(low)) / Fraction(divisor), "even")
    assert int(steps.nearest_even_quotient(high, low, divisor)) == max(min(expected, 2**20), -(2**20))


def test_affine_sum_rules_are_told_apart() -> None:
    """1 / 2 with zero points 0 and 1: ties go to even with it or without it, or away. Scales that are not exact."""
    cases = (
        ((0.5, 0), (0.5, 0), (1.0, 0), 1, 0),
        ((0.5, 0), (0.5, 0), (1.0, 1), 1, 0),
        ((0.37514281272888184, 16), (0.030111949890851974, 1), (0.5661981701850891, 1), 212, 107),
        ((0.09499464184045792, 0), (0.897273063659668, 6), (0.35594457387924194, 19), 79, 26),
    )
    results: dict[str, list[int]] = {name: [] for name in affine_sum.RULES}
    for first, second, output, a, b in cases:
        for name, rule in affine_sum.RULES.items():
            prepared = rule.prepare(first, second, output)
            results[name] += rule.apply(np.uint8([a]), np.uint8([b]), prepared, 0, 255).tolist()
    assert results == {
        "binary32_fused_even": [0, 2, 137, 91],
        "binary32_fused_reciprocal_even": [0, 2, 137, 90],
        "binary32_fused_quotient_even": [0, 2, 136, 91],
        "22_bits_away": [1, 2, 137, 90],
        "exact_even": [0, 1, 137, 91],
    }


def test_affine_average_rules_are_told_apart() -> None:
    """5 / 2 with zero point 1: the tie goes to even with it or without it, or the zero point has no part in it."""
    results = {}
    for name, rule in affine_average.RULES.items():
        prepared = rule.prepare((1, 0), (1, 1), -128, 127)
        results[name] = rule.finish(prepared["values"][[133]], np.int64(2), prepared, -128, 127).tolist()
    assert results == {"binary32_in_order_even": [4], "codes_binary32_even": [2], "exact_even": [3]}


def test_affine_softmax_rules_are_told_apart() -> None:
    """Halves over f32(0.04), a little less than 0.04: the integer 25 makes a tie of what is more than 12.5. A single
    element, whose exponential is near the largest binary32.
    """
    results = {}
    for name, rule in affine_softmax.RULES.items():
        prepared = rule.prepare((1.0, 0), (0.04, 0), 2)
        alone = rule.prepare((1.0, 0), (1 / 256, 7), 1)
        results[name] = rule.apply(np.int64([[5, 5]]), prepared, -128, 127).tolist()
        results[name] += [rule.apply(np.int64([[5]]), alone, *ends).item() for ends in ((0, 255), (-128, 127))]
    assert results == {
        "binary32_table_even": [[12, 12], 7, -128],
        "binary32_table_even_limited": [[12, 12], 6, -128],
        "exact_even": [[13, 13], 255, 127],
    }


def test_affine_product_rules_are_told_apart() -> None:
    """5 / 2 with zero point 1: the tie goes to even with it or without it. A product near 10.5 with a rounding more."""
    results = {}
    for name, rule in affine_product.RULES.items():
        prepared = rule.prepare((1, 0), (1, 0), (2, 1))
        results[name] = rule.apply(np.int8([5]), np.int8([1]), prepared, -128, 127).tolist()
        prepared = rule.prepare((float(F32(0.3)), 0), (float(F32(0.1)), 0), (float(F32(1.92)), 6))
        results[name] += rule.apply(np.int8([-8]), np.int8([-84]), prepared, -128, 127).tolist()
    assert results == {
        "binary32_zero_point_even": [4, 16],
        "binary32_fused_zero_point_even": [4, 17],
        "exact_even": [3, 17],
    }

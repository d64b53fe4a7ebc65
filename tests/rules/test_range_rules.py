"""Rules between numbers that travel with a range: exact oracles on fractions, rounded after every operation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittrue.rules import range_change, range_normalization, range_product, range_quantize, range_sum
from support.rounding import f32

LEVELS = {"s8": Fraction(255, 2), "u8": Fraction(511, 2), "s32": Fraction(2**31)}
ENDS = {"s8": (-128, 127), "u8": (0, 255)}
spans = st.one_of(
    st.floats(2.0**-12, 2.0**12, width=32), st.sampled_from([0.5, 1.0, 2.0, 1.25, 127.5, 255.5]), st.just(1.0)
)
types = st.sampled_from(["s8", "u8"])
quantized = st.integers(0, 255)


def _clamp(value: Fraction, dtype: str) -> int:
    low, high = ENDS[dtype]
    return min(max(round(value), low), high)


def _code(code: int, dtype: str) -> int:
    return code if dtype == "u8" else code - 128


@given(types, types, spans, spans, quantized)
def test_change_is_the_oracle(dtype: str, output: str, span: float, output_span: float, code: int) -> None:
    q = _code(code, dtype)
    one, other = f32(LEVELS[dtype] / Fraction(span)), f32(LEVELS[output] / Fraction(output_span))
    expected = q if one == other else _clamp(f32(q * f32(other / one)), output)
    rule = range_change.RULES["binary32_quotients_even"]
    given_levels, levels = float(LEVELS[dtype]), float(LEVELS[output])
    assert rule(np.array([q]), given_levels, span, levels, output_span, *ENDS[output]).tolist() == [expected]


def _narrow(q: int, factor: Fraction) -> int:
    return _clamp(f32(q * factor), "s8")


@given(types, types, spans, spans, st.none() | spans, quantized, quantized)
def test_sum_is_the_oracle(
    first: str, second: str, span: float, other: float, wanted: float | None, one: int, two: int
) -> None:
    a, b, r, t = _code(one, first), _code(two, second), Fraction(span), Fraction(other)
    output = "s32" if wanted is None else first if first == second else "s8"
    if wanted is None:
        total = f32(r + t)
        factors = [f32(f32(s * 2**31) / f32(total * LEVELS[dtype])) for s, dtype in ((r, first), (t, second))]
    else:
        scale = f32(LEVELS[output] / Fraction(wanted))
        factors = [f32(scale / f32(LEVELS[dtype] / s)) for s, dtype in ((r, first), (t, second))]
    parts = [
        Fraction(_narrow(q, factor)) if first != second and dtype == "u8" else f32(q * factor)
        for q, factor, dtype in ((a, factors[0], first), (b, factors[1], second))
    ]
    real = f32(parts[0] + parts[1])
    expected = min(max(round(real), -(2**31)), 2147483520) if wanted is None else _clamp(real, output)
    rule = range_sum.RULES["binary32_two_products_even"]
    prepared = rule.prepare((first, span), (second, other), (output, wanted))
    low, high = (-(2**31), 2**31 - 1) if wanted is None else ENDS[output]
    assert rule.apply(np.array([a]), np.array([b]), prepared, low, high).tolist() == [expected]


@given(spans, spans, st.none() | st.floats(2.0**-30, 2.0**12, width=32), quantized, quantized)
def test_product_is_the_oracle(span: float, other: float, wanted: float | None, one: int, two: int) -> None:
    a, b = np.array([one - 128]), np.array([two - 128])
    product, r, t = (one - 128) * (two - 128), Fraction(span), Fraction(other)
    rule = range_product.RULES["binary32_truncate_low_bits"]
    scales = [f32(LEVELS["s8"] / s) for s in (r, t)]
    if wanted is None:
        assert rule.apply(a, b, rule.prepare(span, other, "s32", None), "s32").tolist() == [product]
        inverse = Fraction(1 / float(scales[0]) / float(scales[1]))
        real = rule.apply(a, b, rule.prepare(span, other, "f32", None), "f32")
        assert Fraction(float(real[0])) == f32(product * f32(inverse))
        return
    factor = f32(f32(f32(LEVELS["s8"] / Fraction(wanted)) / scales[0]) / scales[1])
    whole = int(f32(product * factor))
    bits = (whole if -(2**31) <= whole < 2**31 else 0) % 256
    found = rule.apply(a, b, rule.prepare(span, other, "s8", wanted), "s8")
    assert found.tolist() == [bits - 256 if bits > 127 else bits]


reals = st.floats(-4, 4, width=32).map(lambda x: float(np.float32(round(x * 4096) / 4096)))


@given(types, quantized, reals, reals, reals, st.floats(2.0**-6, 16, width=32), spans, spans)
def test_normalization_is_the_oracle(
    dtype: str, code: int, gamma: float, beta: float, mean: float, variance: float, span: float, wanted: float
) -> None:
    """The binary64 root and its inverse are the processor's; all else is exact and rounded after every operation."""
    epsilon, q = 1e-3, _code(code, dtype)
    inverse = f32(Fraction(1 / np.sqrt(np.float64(np.float32(variance)) + epsilon)))
    product = f32(Fraction(gamma) * inverse)
    weight = f32(f32(product * Fraction(span)) / Fraction(wanted))
    moved = f32(f32(f32(Fraction(mean) * Fraction(gamma)) * inverse))
    summand = f32(f32(f32(Fraction(beta) - moved) * LEVELS["s8"]) / Fraction(wanted))
    root = Fraction(float(np.sqrt(np.float32(1.001))))
    factor = f32(weight / root)
    x = q if dtype == "s8" else _narrow(q, f32(LEVELS["s8"] / LEVELS["u8"]))
    expected = _clamp(f32(f32(x * factor) + summand), "s8")
    rule = range_normalization.RULES["binary32_epsilon_twice_even"]
    statistics = [np.array([value], np.float32) for value in (gamma, beta, mean, variance)]
    prepared = rule.prepare(*statistics, epsilon, span, wanted)
    assert rule.apply(np.array([q]), dtype, *prepared).tolist() == [expected]


def test_ranges_without_a_meaning() -> None:
    """Both ranges empty, and a result that has none."""
    with pytest.raises(ValueError, match="factor"):
        range_sum.RULES["binary32_two_products_even"].prepare(("s8", 0.0), ("s8", 0.0), ("s32", None))
    with pytest.raises(ValueError, match="factor"):
        range_sum.RULES["binary32_two_products_even"].prepare(("s8", 1.0), ("s8", 1.0), ("s8", 0.0))
    with pytest.raises(ValueError, match="factor"):
        range_change.RULES["binary32_quotients_even"](np.arange(3), 127.5, 1.0, 127.5, 0.0, -128, 127)
    one = np.ones(1, np.float32)
    with pytest.raises(ValueError, match="factor"):
        range_normalization.RULES["binary32_epsilon_twice_even"].prepare(one, one, one, -one, 0.0, 1.0, 1.0)


# -- between real numbers, sums and quantized values
# --------------------------------------------------------------------------------
WHOLE = {"s8": Fraction(127), "u8": Fraction(255)}
numbers = st.one_of(st.floats(-4, 4, width=32), st.integers(-1024, 1024).map(lambda n: n / 256))
ends = st.tuples(
    st.floats(-4, 0, width=32).map(lambda x: float(np.float32(x)) if abs(x) > 1e-3 else 0.0),
    st.one_of(st.floats(0.125, 4, width=32), st.sampled_from([1.0, 127.0, 127.5, 255.0, 255.5])),
)
accumulators = st.one_of(st.integers(-(2**31) + 1, 2**31 - 1), st.integers(-5000, 5000))


def _pair(given: tuple[float, float]) -> range_quantize.Ends:
    return np.float32(given[0]), np.float32(given[1])


def _reach(given: tuple[float, float]) -> Fraction:
    return max(abs(Fraction(end)) for end in given)


def _by_magnitude(x: Fraction, scale: Fraction) -> int:
    """Half away from zero, at most 127."""
    moved = min(f32(f32(abs(x) * scale) + Fraction(1, 2)), Fraction(127))
    return int(moved) if x > 0 else -int(moved) if x < 0 else 0


@given(numbers, ends, types)
def test_quantizations_are_the_oracle(x: float, given_ends: tuple[float, float], dtype: str) -> None:
    real, reach = Fraction(x), _reach(given_ends)
    for name, levels in (("binary32_whole_levels_even", WHOLE), ("binary32_half_levels_even", LEVELS)):
        rule = range_quantize.QUANTIZE[name]
        expected = _clamp(f32(real * f32(levels[dtype] / reach)), dtype)
        assert rule(np.array([x], np.float32), _pair(given_ends), dtype).tolist() == [expected]
    rule = range_quantize.QUANTIZE["binary32_symmetric_away_or_affine_up"]
    if dtype == "s8":
        expected = _by_magnitude(real, f32(WHOLE["s8"] / reach))
    else:
        low, high = (Fraction(end) for end in given_ends)
        # The last sum is that of a binary32 number and 1/2 in binary64.
        moved = Fraction(float(f32(f32(real - low) * f32(255 / f32(high - low)))) + 0.5)
        expected = int(moved) % 256
    assert rule(np.array([x], np.float32), _pair(given_ends), dtype).tolist() == [expected]


@given(quantized, ends, types)
def test_dequantizations_are_the_oracle(code: int, given_ends: tuple[float, float], dtype: str) -> None:
    q = _code(code, dtype)
    low, high = (Fraction(end) for end in given_ends)
    half = f32(q * f32(_reach(given_ends) / LEVELS[dtype]))
    whole = f32(q * f32(_reach(given_ends) / 127))
    affine = f32(f32(q * f32(f32(high - low) / 255)) + low)
    expected = {
        "binary32_half_level_step": half,
        "binary32_whole_level_step_or_affine": whole if dtype == "s8" else affine,
    }
    assert set(expected) == set(range_quantize.DEQUANTIZE)
    for name, value in expected.items():
        found = range_quantize.DEQUANTIZE[name](np.array([q]), _pair(given_ends), dtype)
        assert Fraction(float(found[0])) == value


@given(accumulators, ends, ends, types, st.booleans())
def test_requantizations_are_the_oracle(
    acc: int, given_ends: tuple[float, float], wanted: tuple[float, float], dtype: str, small: bool
) -> None:
    """Results much smaller than the sums' range, as models have them, and others."""
    factor = 2.0**-16 if small else 1.0
    wanted = (wanted[0] * factor, wanted[1] * factor)
    unit, real = f32(_reach(given_ends) / 2**31), f32(Fraction(acc))
    scale = f32(unit * f32(WHOLE[dtype] / _reach(wanted)))
    pairs = _pair(given_ends), _pair(wanted)
    even = range_quantize.REQUANTIZE["binary32_product_even"](np.array([acc]), *pairs, dtype)
    assert even.tolist() == [_clamp(f32(real * scale), dtype)]
    away = range_quantize.REQUANTIZE["binary32_two_products_away"](np.array([acc]), *pairs, "s8")
    assert away.tolist() == [_by_magnitude(f32(real * unit), f32(WHOLE["s8"] / _reach(wanted)))]


def test_range_quantize_rules_are_told_apart() -> None:
    """1/2 of a range of 1: 63.5, 63.75, and 63.5 away from zero; -1 of it."""
    one = np.float32(-1), np.float32(1)
    found = {name: rule(np.float32([0.5, -1]), one, "s8").tolist() for name, rule in range_quantize.QUANTIZE.items()}
    assert found == {
        "binary32_whole_levels_even": [64, -127],
        "binary32_half_levels_even": [64, -128],
        "binary32_symmetric_away_or_affine_up": [64, -127],
    }
    ties = {
        name: int(rule(np.float32([2.5]), (np.float32(-127), np.float32(127)), "s8")[0])
        for name, rule in range_quantize.QUANTIZE.items()
    }
    assert ties == {
        "binary32_whole_levels_even": 2,
        "binary32_half_levels_even": 3,
        "binary32_symmetric_away_or_affine_up": 3,
    }


def test_range_dequantize_rules_are_told_apart() -> None:
    """Code 127 of a range of 1."""
    one = np.float32(-1), np.float32(1)
    found = {name: float(rule(np.int8([127]), one, "s8")[0]) for name, rule in range_quantize.DEQUANTIZE.items()}
    assert found["binary32_whole_level_step_or_affine"] == 1.0
    assert found["binary32_half_level_step"] == float(np.float32(127) * np.float32(1 / np.float32(127.5)))


def test_range_requantize_rules_are_told_apart() -> None:
    """The tie 5/2."""
    ends = (np.float32(-(2.0**31)), np.float32(2.0**31)), (np.float32(-254), np.float32(254))
    found = {name: int(rule(np.int32([5]), *ends, "s8")[0]) for name, rule in range_quantize.REQUANTIZE.items()}
    assert found == {"binary32_product_even": 2, "binary32_two_products_away": 3}

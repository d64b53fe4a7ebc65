"""Rules of layers over tensors with ranges: exact oracles on fractions, rounded after every operation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from bittrue.arithmetic import exact
from bittrue.rules import range_layer as rules
from bittrue.rules.range_layer import BIAS
from support.rounding import f32

LEVELS = {"s8": Fraction(255, 2), "u8": Fraction(511, 2)}
Ends = tuple[np.float32, np.float32]


def scale(ends: Ends, dtype: str) -> Fraction:
    """Quantized values per unit."""
    return f32(LEVELS[dtype] / max(abs(Fraction(float(end))) for end in ends))


def limited(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def ends(rng: np.random.Generator, largest: float) -> Ends:
    first, second = np.float32(rng.uniform(-largest, largest)), np.float32(rng.uniform(0.1, 1) * largest)
    return min(first, second), max(first, second)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("per_channel", [False, True])
def test_codes_of_real_weights(seed: int, per_channel: bool) -> None:
    rng = np.random.default_rng([seed, per_channel])
    dtype = str(rng.choice(["s8", "u8"]))
    channels, depth = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    weights = (rng.standard_normal((channels, depth)) * np.exp(rng.uniform(-4, 4))).astype(np.float32)
    # Some biases leave 32 bits.
    bias = (rng.standard_normal(channels) * np.exp(rng.uniform(-4, 30))).astype(np.float32)
    data = ends(rng, float(np.exp(rng.uniform(-4, 4))))
    quantized, wide, scales = rules.binary32_half_levels(weights, bias, data, dtype, per_channel)
    own, largest = scale(data, dtype), [max(abs(Fraction(float(w))) for w in row) for row in weights]
    for channel, row in enumerate(weights):
        s = f32(LEVELS["s8"] / (largest[channel] if per_channel else max(largest)))
        b = Fraction(float(bias[channel]))
        if per_channel and b:
            s = min(s, f32(f32(Fraction(2**30 if b > 0 else -(2**30)) / b) / own))
        assert scales[channel if per_channel else 0] == float(s)
        expected = [limited(exact.nearest(f32(Fraction(float(w)) * s), "even"), -128, 127) for w in row]
        assert quantized[channel].tolist() == expected
        moved = exact.nearest(f32(b * f32(s * own)), "even")
        assert int(wide[channel]) == limited(moved, -(2**31), 2**31 - 128)
    halves, half_bias, half_scales = rules.binary32_half_levels_halved(weights, bias, data, dtype, per_channel)
    assert [Fraction(float(b)) for b in half_bias] == [Fraction(float(b)) / 2 for b in wide]
    assert [Fraction(float(s)) for s in half_scales] == [Fraction(float(s)) / 2 for s in scales]
    for channel, row in enumerate(weights):
        s = Fraction(float(scales[channel if per_channel else 0]))
        products = [f32(Fraction(float(w)) * s) for w in row]
        assert halves[channel].tolist() == [exact.nearest(p / 2, "even") for p in products]


def test_channels_without_weights_count_for_nothing() -> None:
    zeros, none = np.zeros((1, 2), np.float32), np.zeros(1, np.float32)
    quantized, wide, scales = rules.binary32_half_levels(zeros, none, (np.float32(-1), np.float32(1)), "s8", True)
    assert math.isinf(scales[0])
    assert (quantized.tolist(), wide.tolist()) == ([[127, 127]], [0])


@pytest.mark.parametrize("rule", sorted(BIAS))
@pytest.mark.parametrize("seed", range(60))
def test_quantized_bias(rule: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["s8", "u8"]))
    weights, bias = rng.integers(-127, 128, (2, 3)).astype(np.int8), rng.integers(-127, 128, 2).astype(np.int8)
    # Every other case has a bias so large that it is lowered with the weights.
    data, own = ends(rng, 1.0), ends(rng, 1e-3 if seed % 2 else 1.0)
    other = ends(rng, 1e4 if seed % 2 else 1e-3)
    found, wide, scales = BIAS[rule](weights, bias, (data, own, other), dtype)
    d, w, b = scale(data, dtype), scale(own, "s8"), scale(other, "s8")
    expected = weights.tolist()
    if rule == "binary32_rescale_trunc":
        reach = max(abs(Fraction(float(end))) for end in other)
        factor = f32(f32(f32(d * w) * reach) / LEVELS["s8"])
        quantized = [int(f32(int(value) * factor)) for value in bias]
    else:
        reach = max(abs(Fraction(float(end))) for end in other)
        factor, most = f32(f32(d * w) / b), f32(f32(Fraction(2**30) / reach) / b)
        if factor > most:
            factor = most
            ratio = f32(f32(f32(factor * b) / d) / w)
            expected = [[exact.nearest(f32(int(v) * ratio), "away") for v in row] for row in weights]
            w = f32(w * ratio)
        quantized = [exact.nearest(f32(int(value) * factor), "away") for value in bias]
    assert found.tolist() == expected
    assert scales.tolist() == [float(w)]
    assert wide.tolist() == [value if -(2**31) <= value < 2**31 else -(2**31) for value in quantized]


def test_quantized_bias_are_told_apart() -> None:
    """One bias of 3 whose quantized value is 2.5: quantized_bias away from zero, and without the fraction."""
    one = np.float32(-127.5), np.float32(127.5)
    bias = np.float32(-106.25), np.float32(106.25)
    weights = np.ones((1, 1), np.int8)
    results = {name: rule(weights, np.int8([3]), (one, one, bias), "s8")[1].tolist() for name, rule in BIAS.items()}
    assert results == {"binary32_rescale_away": [3], "binary32_rescale_trunc": [2]}


def test_rules_of_sums_and_weights_are_told_apart() -> None:
    """One case for each of the slots add_bias, layer_sum and quantized_weights."""
    acc, none = np.int64([2**24 + 1]), np.float32([0])
    assert {name: rule(acc, none).tolist() for name, rule in rules.ADD.items()} == {
        "s32_sum": [2**24 + 1],
        "binary32_sum": [2**24],
        "binary32_doubled_sum": [2**25],
    }
    one = np.float32(1)
    assert {name: rule(one, np.int8([2]), one, "s32").tolist() for name, rule in rules.SUM.items()} == {
        "fused_multiply_even": [3],
        "fused_multiply_doubled_even": [6],
    }
    given = np.float32([[1, -0.3]]), np.float32([0]), (-one, one), "s8", True
    assert {name: rule(*given)[0].tolist() for name, rule in rules.WEIGHTS.items()} == {
        "binary32_half_levels": [[127, -38]],
        "binary32_half_levels_halved": [[64, -19]],
    }


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("with_bias", [False, True])
def test_folded_normalizations(seed: int, with_bias: bool) -> None:
    rng = np.random.default_rng([seed, with_bias])
    weights = rng.standard_normal((1, 3)).astype(np.float32)
    gamma, beta, mean, bias = (rng.standard_normal(1).astype(np.float32) for _ in range(4))
    variance, epsilon = rng.uniform(0, 2, 1).astype(np.float32), float(rng.choice([1e-3, 1e-5, 2e-5]))
    folded, moved = rules.binary64_root(weights, bias if with_bias else None, (gamma, beta, mean, variance), epsilon)
    # Python floats are binary64.
    factor = f32(Fraction(float(gamma[0]) / math.sqrt(float(variance[0]) + epsilon)))
    assert folded[0].tolist() == [float(f32(Fraction(float(w)) * factor)) for w in weights[0]]
    b, m, shift = Fraction(float(bias[0])), Fraction(float(mean[0])), Fraction(float(beta[0]))
    expected = f32(shift + f32(factor * f32(b - m))) if with_bias else f32(shift - f32(factor * m))
    assert moved.tolist() == [float(expected)]


def test_sums_of_binary32_numbers() -> None:
    rng = np.random.default_rng(5)
    for bits in (10, 24, 26, 31):
        acc, bias = (rng.integers(-(2**bits), 2**bits, 200) for _ in range(2))
        expected = [
            limited(int(f32(f32(int(a)) + f32(int(b)))), -(2**31), 2**31 - 128) for a, b in zip(acc, bias, strict=True)
        ]
        assert rules.binary32_sum(acc, bias).tolist() == expected
        doubled = [
            limited(int(2 * f32(f32(int(a)) + f32(int(b)))), -(2**31), 2**31 - 128)
            for a, b in zip(acc, bias, strict=True)
        ]
        assert rules.binary32_doubled_sum(acc, bias).tolist() == doubled


@pytest.mark.parametrize("dtype", ["s8", "u8", "s32"])
def test_fused_sums(dtype: str) -> None:
    rng = np.random.default_rng(6)
    low, high = {"s8": (-128, 127), "u8": (0, 255), "s32": (-(2**31), 2**31 - 128)}[dtype]
    for _ in range(300):
        factor, previous = np.float32(rng.uniform(0.01, 3)), rng.integers(-128, 128, 1)
        value = (rng.standard_normal(1) * np.exp(rng.uniform(0, 6))).astype(np.float32)
        # Every other sum lies next to a tie.
        if rng.random() < 0.5:
            value = np.float32([math.floor(float(value[0])) + 0.5 - float(np.float32(previous[0]) * factor)])
        exact_sum = f32(Fraction(int(previous[0])) * Fraction(float(factor)) + Fraction(float(value[0])))
        expected = limited(exact.nearest(exact_sum, "even"), low, high)
        assert rules.fused_multiply_even(value, previous, factor, dtype).tolist() == [expected]
        doubled = limited(exact.nearest(2 * exact_sum, "even"), low, high)
        assert rules.fused_multiply_doubled_even(value, previous, factor, dtype).tolist() == [doubled]

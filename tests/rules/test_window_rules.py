"""Rules of fixed-point engines of channels-last networks against fractions and plain integers, and told apart."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

from bittrue.operators.core.base import Step
from bittrue.operators.elementwise.add import reference as add
from bittrue.rules import align, corner_weights, quantize, rescale, softmax, table, window_average
from support.rounding import f32

F32 = np.float32


def away(value: Fraction) -> int:
    """To nearest, ties away from zero."""
    return int(math.copysign(math.floor(abs(value) + Fraction(1, 2)), value)) if value else 0


def scales(count: int, low: float, high: float, seed: int) -> list[Fraction]:
    rng = np.random.default_rng(seed)
    return [Fraction(float(F32(2.0**power))) for power in rng.uniform(low, high, count)]


def test_q24_average_against_fractions() -> None:
    rng = np.random.default_rng(1)
    rule = window_average.RULES["q24_all_taps_away"]
    ties = 0
    for source, output in zip(scales(150, -6, 4, 2), scales(150, -6, 4, 3), strict=True):
        taps = int(rng.integers(2, 60))
        real = f32(source / f32(output * taps))
        zero_point = int(rng.choice([0, 7, 128, 255]))
        sums = [*map(int, rng.integers(-255 * taps, 255 * taps + 1, 40)), 0, 1, -1, 255 * taps, -255 * taps]
        arrays = rule.prepare(float(source), float(output), taps)
        found = rule.apply(np.array(sums), np.array(1), arrays, zero_point, 3, 250).tolist()
        for total, q in zip(sums, found, strict=True):
            assert q == min(max(away(total * real) + zero_point, 3), 250)
    for power in (2, 4, 8, 64):
        arrays = rule.prepare(1.0, 1.0, power)
        for odd in (1, -1, 3, -3, 5, -7):
            ties += 1
            found = rule.apply(np.array([odd * power // 2]), np.array(power), arrays, 100, 0, 255)
            assert found.tolist() == [100 + away(Fraction(odd, 2))]
    assert ties == 24


@pytest.mark.parametrize("pair", [(0.0, 1.0), (1e-38, 1e30), (np.inf, 1.0), (1.0, np.inf), (1e38, 1e-38)])
def test_average_refuses_scales_that_have_no_multiplier(pair: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="input scale"):
        window_average.RULES["q24_all_taps_away"].prepare(*pair, 9)


def test_window_average_rules_are_told_apart() -> None:
    # Half a step more than two; a window of which one half is padding.
    found = set()
    for rule in window_average.RULES.values():
        arrays = rule.prepare(1.0, 1.0, 4)
        found.add(tuple(rule.apply(np.array([10, -10]), np.array([4, 2]), arrays, 1, -128, 127).tolist()))
    assert len(found) == len(window_average.RULES)


def test_shared_22_bits_against_fractions() -> None:
    rng = np.random.default_rng(4)
    for first, second, output in zip(scales(200, -8, 2, 5), scales(200, -8, 2, 6), scales(200, -8, 4, 7), strict=True):
        ratios = [f32(scale / output) for scale in (first, second)]
        exponent = math.floor(math.log2(max(ratios)))
        power = Fraction(2) ** (21 - exponent)
        weights = [round(ratio * power) for ratio in ratios]
        assert 2**21 <= max(weights) <= 2**22
        found = align.shared_weights("shared_22_bits_away", float(first), float(second), float(output))
        assert found == (*weights, 21 - exponent)
        a, b = (rng.integers(0, 256, 30, np.uint8) for _ in range(2))
        zero_points = [int(z) for z in rng.choice([0, 3, 128, 255], 3)]
        step = _add_step(found, zero_points, "weighted_away")
        expected = [
            away(((int(x) - zero_points[0]) * weights[0] + (int(y) - zero_points[1]) * weights[1]) / power)
            for x, y in zip(a, b, strict=True)
        ]
        stored = [min(max(value + zero_points[2], 0), 255) for value in expected]
        assert add(step, [a, b])[0].tolist() == stored


def _add_step(weights: tuple[int, int, int], zero_points: list[int], form: str) -> Step:
    parameters = {
        "form": form,
        "first_weight": weights[0],
        "second_weight": weights[1],
        "right_shift": weights[2],
        "first_zero_point": zero_points[0],
        "second_zero_point": zero_points[1],
        "output_zero_point": zero_points[2],
        "low": 0,
        "high": 255,
    }
    rules = {"align": "shared_22_bits_away", "store": "clamp_then_zero_point"}
    return Step(0, "add", "add", (0, 1), (2,), rules, parameters, {})


def test_shared_weights_are_told_apart() -> None:
    # A negative half, and weights that 21 bits do not tell apart.
    half = align.shared_weights("shared_22_bits_away", 0.5, 0.25, 1.0)
    results = [
        add(_add_step(half, [1, 0, 10], form), [np.uint8([0]), np.uint8([0])])[0]
        for form in ("weighted", "weighted_away")
    ]
    assert [int(result[0]) for result in results] == [10, 9]
    names = ("shared_21_bits_even", "shared_22_bits_away")
    assert align.shared_weights(names[0], 0.3, 0.1, 1.0) != align.shared_weights(names[1], 0.3, 0.1, 1.0)


def test_divide_even_against_fractions() -> None:
    rng = np.random.default_rng(8)
    rule = quantize.QUANTIZE["binary32_divide_even"]
    for scale in scales(60, -10, 5, 9):
        x = (rng.normal(0, 200, 60) * float(scale)).astype(F32)
        x = np.concatenate([x, (F32(scale) * (rng.integers(-300, 300, 60) + F32(0.5))).astype(F32)])
        zero_point = int(rng.choice([0, 5, 128, 255]))
        found = rule(x, F32(scale), np.int64(zero_point), 0, 255).tolist()
        for value, q in zip(x, found, strict=True):
            assert q == min(max(round(f32(Fraction(float(value)) / scale)) + zero_point, 0), 255)
    special = F32([np.nan, np.inf, -np.inf, 3e38, -3e38])
    assert rule(special, F32(1e-3), np.int64(7), 0, 255).tolist() == [0] * 5


def test_ratio_table_against_fractions() -> None:
    rng = np.random.default_rng(10)
    rule = table.RULES["binary32_ratio_256_even"]
    for source, output in zip(scales(40, -6, 2, 11), scales(40, -6, 2, 12), strict=True):
        alpha, zero_points = Fraction(float(F32(rng.uniform(0, 1)))), [int(z) for z in rng.choice([0, 9, 128, 255], 2)]

        def leaky(x: np.ndarray, slope: Fraction = alpha) -> np.ndarray:
            real = x.astype(F32)
            return np.where(real >= 0, real, F32(float(slope)) * real)

        found = rule.build(leaky, float(source), zero_points[0], float(output), zero_points[1], 0, 255)
        ratio = f32(source / output)
        for q in range(256):
            value = f32(ratio * (q - zero_points[0]))
            value = f32(value * alpha) if value < 0 else value
            assert found[q] == min(max(round(value) + zero_points[1], 0), 255)


@pytest.mark.parametrize("length", [1, 7, 512, 513, 1000, 100_000])
def test_counted_exponentials_against_decimals(length: int) -> None:
    context = decimal.Context(prec=60)
    quotient = Fraction(float(2**32 - 1) / length)
    unit = min(quotient, Fraction(8388607))
    for scale in scales(3, -8, 2, length):
        entries = softmax.counted_exponentials(float(scale), length)
        for i in range(0, 256, 5):
            argument = (i - 255) * scale
            power = Fraction(context.exp(context.divide(argument.numerator, argument.denominator)))
            assert entries[i] == round(unit * power)


def test_counted_softmax_against_integers() -> None:
    rng = np.random.default_rng(13)
    rule = softmax.RULES["counted_table_half_up"]
    for scale in (0.01, 0.1, 0.7):
        for length in (1, 2, 5, 300, 513, 100_000):
            rows = rng.integers(0, 256, (4, length))
            rows[:2] = rows[:2, :1]  # whose sum may leave 32 bits
            arrays = rule.prepare(scale, 1.0, length)
            found = rule.apply(rows, arrays, 8)
            entries = [int(entry) for entry in arrays["exponentials"]]
            for row, results in zip(rows.tolist(), found.tolist(), strict=True):
                largest = max(row)
                parts = [entries[x - largest + 255] for x in row]
                total = sum(parts) % 2**32
                assert results == [((part << 8) + (total >> 1)) // total for part in parts]


def test_counted_softmax_refuses_a_sum_of_nothing() -> None:
    rule = softmax.RULES["counted_table_half_up"]
    with pytest.raises(OverflowError, match="multiple of 2"):
        rule.apply(np.zeros((1, 65536), np.int64), rule.prepare(0.1, 1.0, 65536), 8)
    with pytest.raises(ValueError, match="no table"):
        rule.prepare(float("inf"), 1.0, 3)


def test_corner_weights_against_fractions() -> None:
    rng = np.random.default_rng(14)
    down, across = (np.concatenate([rng.random(300), [0, 0.5, 0.25, 0.75]]).astype(F32) for _ in range(2))
    found = corner_weights.RULES["binary32_times_255_even"](down, across).tolist()
    for y, x, weights in zip(down, across, found, strict=True):
        low, left = Fraction(float(y)), Fraction(float(x))
        sides = [(f32(1 - low), f32(1 - left)), (f32(1 - low), left), (low, f32(1 - left)), (low, left)]
        assert weights == [round(f32(f32(a * b) * 255)) for a, b in sides]


def test_multipliers_of_24_bits_need_no_other_rule() -> None:
    """The engine's own way to rescale, (acc m + 2^30) >> 31 and then by a power of two, is q31_two_step_up_away."""
    rng = np.random.default_rng(15)
    for scale in scales(300, -24, -0.001, 16):
        real = float(F32(scale))
        mantissa, exponent = math.frexp(real)
        m, right = int(mantissa * 2**24) << 7, -exponent
        acc = np.concatenate([rng.integers(-(2**31), 2**31, 50), rng.integers(-(2**12), 2**12, 50)])
        near = np.round((np.arange(-20, 20) + 0.5) / real).astype(np.int64)
        acc = np.clip(np.concatenate([acc, near, near - 1, near + 1]), -(2**31), 2**31 - 1)
        expected = []
        for value in acc.tolist():
            product = (value * m + (1 << 30)) >> 31
            rest = (product & ((1 << right) - 1)) - (value < 0)
            expected.append((product >> right) + (rest > (1 << right) - 1 >> 1))
        prepared = rescale.prepare("q31_two_step_up_away", real)
        assert rescale.apply("q31_two_step_up_away", acc, prepared).tolist() == expected

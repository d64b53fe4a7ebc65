"""Slots `center`, `quantize` and `store` of requantizations that round once: against integers and fractions."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from bittrue.arithmetic import exact
from bittrue.rules import center, quantize, rescale, store, to_integer
from support.rounding import f32

F32 = np.float32


def f64(value: Fraction) -> Fraction:
    # int / int of Python is rounded once, to even.
    return Fraction(value.numerator / value.denominator)


def to_s32(value: Fraction) -> int:
    """An integral number; what does not fit 32 bits becomes -2^31."""
    return int(value) if -(2**31) <= value < 2**31 else -(2**31)


CODES = [0, 1, -1, 127, -128, 255, 32767, 2**24 - 1, 2**24 + 1, -(2**24) - 3, 2**31 - 1, -(2**31), 123456789]
POINTS = [0, 1, -1, 128, -32768, 2**24 + 1, 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("zero_point", POINTS)
def test_center_against_integers(zero_point: int) -> None:
    expected = {
        "s16_wrap": [(q - zero_point + 2**15) % 2**16 - 2**15 for q in CODES],
        "s32_wrap": [exact.wrap_s32(q - zero_point) for q in CODES],
        "binary32": [f32(f32(q) - f32(zero_point)) for q in CODES],
        "binary64": [q - zero_point for q in CODES],
    }
    assert set(expected) == set(center.RULES)
    for name, values in expected.items():
        found = center.RULES[name](np.array(CODES, np.int64), np.int64(zero_point))
        assert found.tolist() == values, name


def test_center_rules_are_told_apart() -> None:
    q, zero_point = np.array([2**24 + 1, -(2**31)], np.int64), np.int64(1)
    found = {name: tuple(rule(q, zero_point).tolist()) for name, rule in center.RULES.items()}
    assert found == {
        "s16_wrap": (0, -1),
        "s32_wrap": (2**24, 2**31 - 1),
        "binary32": (2**24 - 1, -(2**31)),
        "binary64": (2**24, -(2**31) - 1),
    }


@functools.cache
def steps_of(value: float, factor: Fraction) -> Fraction:
    return f32(exact.nearest(f32(Fraction(value) * factor), "away"))


@functools.cache
def steps_and_zero_point(value: float, factor: Fraction, zero_point: int) -> Fraction:
    return f32(steps_of(value, factor) + f32(zero_point))


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("scale", [1.0, 0.5, 0.1, 0.0173, 3.7, 1e-30])
@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 255), (-32768, 32767), (0, 65535), (-(2**31), 2**31 - 1)])
@pytest.mark.parametrize("zero_point", [0, 3, -128, 255, 70000])
def test_quantization_with_a_sum_of_reals(scale: float, low: int, high: int, zero_point: int) -> None:
    rng = np.random.default_rng(5)
    ties = np.arange(-300, 300) * F32(scale / 2)
    near = np.concatenate([ties, np.nextafter(ties, F32(np.inf)), np.nextafter(ties, F32(-np.inf))])
    x = np.concatenate([near, (rng.normal(size=200) * 100 * scale).astype(F32)]).astype(F32)
    inverse = 1 / Fraction(float(F32(scale)))
    finish = to_integer.RULES["away_sum_clamp"]
    quotients = {"divide": (x / F32(scale), inverse), "reciprocal": (x * (F32(1) / F32(scale)), f32(inverse))}
    ends = f32(low), f32(high)
    for name, (quotient, factor) in quotients.items():
        rule = quantize.QUANTIZE[f"binary32_{name}_away_sum"]
        found = rule(x, np.array([scale], F32), np.array([zero_point], np.int64), low, high).tolist()
        assert finish(quotient, np.array([zero_point], np.int64), low, high).tolist() == found
        for value, stored in zip(x, found, strict=True):
            moved = steps_and_zero_point(float(value), factor, zero_point)
            expected = to_s32(max(min(moved, ends[1]), ends[0]))
            assert stored == expected, (float(value), stored, expected)


def test_quantization_of_what_is_no_number() -> None:
    rule = quantize.QUANTIZE["binary32_divide_away_sum"]
    x = np.array([np.nan, np.inf, -np.inf], F32)
    assert rule(x, np.array([1.0], F32), np.array([5]), -128, 127).tolist() == [127, 127, -128]
    assert rule(x, np.array([1.0], F32), np.array([5]), -(2**31), 2**31 - 1).tolist() == [-(2**31)] * 3


@pytest.mark.parametrize("width", [F32, np.float64])
@pytest.mark.parametrize("zero_point", [0, 3, -7, 128, -32768, 2**24 + 1])
def test_storing_reals_against_fractions(width: type, zero_point: int) -> None:
    rng = np.random.default_rng(11)
    halves = np.arange(-40, 40) / 2
    values = np.concatenate(
        [
            halves,
            np.nextafter(halves.astype(width), width(np.inf)),
            np.nextafter(halves.astype(width), width(-np.inf)),
            rng.normal(size=300) * 3000,
            rng.normal(size=100) * 1e9,
            [2.0**22 + 0.5, 2.0**23 - 0.5, 2.0**23 + 1, -(2.0**23) + 0.5, 2.0**31, -(2.0**31), 1e12, -1e12],
        ]
    ).astype(width)
    to = f32 if width is F32 else f64
    for low, high in ((-128, 127), (0, 255), (-32768, 32767), (-(2**31), 2**31 - 1)):
        up = store.RULES["zero_point_half_up_then_clamp"](values, zero_point, low, high).tolist()
        plus = store.RULES["zero_point_plus_half_up_then_clamp"](values, zero_point, low, high).tolist()
        away = store.RULES["zero_point_away_then_clamp"](values, zero_point, low, high).tolist()
        cut = store.RULES["zero_point_half_away_then_clamp"](values, zero_point, low, high).tolist()
        for value, first, joined, second, third in zip(values, up, plus, away, cut, strict=True):
            moved = to(Fraction(float(value)) + to(Fraction(zero_point)))
            raised = to_s32(Fraction(math.floor(to(moved + Fraction(1, 2)))))
            assert first == max(low, min(high, raised)), (float(value), zero_point)
            addend = to(to(Fraction(zero_point)) + Fraction(1, 2))
            least = to_s32(Fraction(math.floor(to(Fraction(float(value)) + addend))))
            assert joined == max(low, min(high, least)), (float(value), zero_point)
            assert second == max(low, min(high, to_s32(Fraction(exact.nearest(moved, "away"))))), float(value)
            reached = to(abs(moved) + Fraction(1, 2))
            below = math.floor(reached) * (-1 if moved < 0 else 1)
            assert third == max(low, min(high, to_s32(Fraction(below)))), (float(value), zero_point)


@pytest.mark.parametrize(
    ("rule", "real"),
    [
        ("q31_one_step_up_wrap", 2.0**-40),
        ("q31_one_step_away", 2.0**-34),
        ("q31_shift_or_one_step_up", 2.0**-32),
        ("q31_one_step_up_wrap", 2.0**31),
        ("q31_one_step_up_wrap", float("nan")),
    ],
)
def test_undefined_shifts_are_refused(rule: str, real: float) -> None:
    with pytest.raises(ValueError, match=r"below|leaves|finite"):
        rescale.prepare(rule, real)


def test_the_smallest_multipliers_give_nothing() -> None:
    accumulators = np.array([2**31 - 1, -(2**31), 1, -1], np.int64)
    for rule in ("q31_one_step_up_wrap", "q31_one_step_away"):
        assert rescale.apply(rule, accumulators, rescale.prepare(rule, 0.9 * 2.0**-32)).tolist() == [0, 0, 0, 0]
    for rule in ("q31_one_step_up_wrap", "q31_one_step_away", "q31_shift_or_one_step_up"):
        assert rescale.apply(rule, accumulators, rescale.prepare(rule, 0.0)).tolist() == [0, 0, 0, 0]

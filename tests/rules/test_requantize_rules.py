"""Slot `requantize` against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from bittrue.rules import requantize


def nearest_even(value: Fraction) -> int:
    """The nearest integer, ties to even, by doubled integers."""
    whole, rest = divmod(value.numerator, value.denominator)
    above = 2 * rest - value.denominator
    return whole + int(above > 0 or (above == 0 and whole % 2 == 1))


def test_real_even_against_fractions() -> None:
    rule = requantize.RULES["real_even"]
    rng = np.random.default_rng(5)
    for _ in range(300):
        first, second, output = (
            np.float32(rng.choice([2.0 ** rng.integers(-9, 4), rng.integers(1, 50), np.exp2(rng.uniform(-20, 4))]))
            for _ in range(3)
        )
        ratio = Fraction(float(first)) * Fraction(float(second)) / Fraction(float(output))
        # Accumulators beside ties: the quotient of half an odd number by the ratio.
        ties = [math.floor(Fraction(2 * int(k) + 1, 2) / ratio) for k in rng.integers(-200, 200, 20)]
        acc = np.array([*ties, *(t + 1 for t in ties), *rng.integers(-(2**31), 2**31, 20), 0], np.int64)
        acc = acc[np.abs(acc) < 2**31]
        found = rule.apply(acc, rule.prepare(first, second, output))
        for a, result in zip(acc, found, strict=True):
            expected = nearest_even(int(a) * ratio)
            if abs(expected) < 2**39:
                assert int(result) == expected, (a, first, second, output)
            else:
                assert int(result) * (1 if expected > 0 else -1) >= 2**39


def test_a_tie_that_binary64_misses() -> None:
    # acc * third / (2 * third) = acc / 2 exactly, for every odd acc a tie.
    third = np.float32(1 / 3)
    rule = requantize.RULES["real_even"]
    scales = rule.prepare(third, np.float32(1), third * np.float32(2))
    assert [int(v) for v in rule.apply(np.array([1, 3, 5, -1, -3]), scales)] == [0, 2, 2, 0, -2]


@pytest.mark.parametrize("scales", [(1, 1, 0), (np.inf, 1, 1), (1, np.nan, 1), (1, 1, np.inf)])
def test_scales_without_a_quotient(scales: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="no quotient"):
        requantize.RULES["real_even"].prepare(*(np.float32(s) for s in scales))

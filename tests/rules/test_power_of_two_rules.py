"""Slot power_of_two against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from bittrue.rules import power_of_two


def expected(rule: str, value: float) -> int:
    """The code by search among all powers, and what lies beyond them."""
    if math.isnan(value):
        return 255
    saturates = rule.endswith("saturate")
    if math.isinf(value):
        return 254 if saturates else 255
    exact, power = abs(Fraction(value)), -200
    if not exact:
        return 0 if saturates else 255
    while Fraction(2) ** (power + 1) <= exact:
        power += 1
    if Fraction(2) ** power > exact:
        power = -201  # far below the smallest
    elif Fraction(2) ** power < exact and (
        rule.startswith("up") or (rule.startswith("nearest") and exact >= Fraction(3, 2) * Fraction(2) ** power)
    ):
        power += 1
    if -127 <= power <= 127:
        return power + 127
    if not saturates:
        return 255
    return 0 if power < 0 else 254


def critical() -> np.ndarray:
    rng = np.random.default_rng(11)
    powers = np.ldexp(1.0, np.arange(-150, 128))
    near = np.concatenate([powers * part for part in (1, 1.25, 1.5, 1.75)])
    x = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, np.inf), np.exp2(rng.uniform(-149, 128, 300))])
    return np.concatenate([x, -x, [0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38]])


@pytest.mark.parametrize("rule", power_of_two.RULES)
def test_against_fractions(rule: str) -> None:
    x = critical()
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    for values in (x, single):
        found = power_of_two.RULES[rule](values)
        assert found.dtype == np.uint8
        for value, code in zip(values, found, strict=True):
            assert int(code) == expected(rule, float(value)), (value, int(code))


def test_power_of_two_rules_are_told_apart() -> None:
    x = np.float32([0.0, 2.25, 3.0])
    for one, other in combinations(power_of_two.RULES.values(), 2):
        assert one(x).tolist() != other(x).tolist()

"""Powers by sums of two numbers: near powers of binary64, and what C's pow says of numbers that have none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bittrue.arithmetic import double_words

F32 = np.float32


@pytest.mark.parametrize("exponent", [-0.75, -0.5, 0.3, -1, -3, 7, -4, 8, 30.0, -100.5])
def test_powers_are_near_those_of_binary64(exponent: float) -> None:
    rng = np.random.default_rng(1)
    x = np.exp2(rng.uniform(-126 / max(1, abs(exponent)), 126 / max(1, abs(exponent)), 4000)).astype(F32)
    expected = np.power(x.astype(np.float64), float(F32(exponent)))
    found = double_words.power(x, exponent)
    assert (np.abs(found - expected) <= 3 * 2.0**-23 * expected).all()
    # Without the second words of y e what y and e have in bits counts.
    joined = double_words.power(x, exponent, joined=True)
    size = np.abs(np.log2(expected)) + 8
    assert (np.abs(joined - expected) <= 2.0**-23 * size * expected).all()
    assert exponent == np.trunc(exponent) or not np.array_equal(joined, found)
    assert exponent == -1 or not np.array_equal(found, expected.astype(F32))


def test_subnormal_numbers() -> None:
    x = np.ldexp(F32(1.5), [-140, -149 + 3, -126]).astype(F32)
    for found, base in zip(double_words.power(x, -0.5), x, strict=True):
        assert float(found) == pytest.approx(math.pow(float(base), -0.5), rel=2.0**-21)
    assert double_words.power(np.exp2(F32([100, 99.7])).astype(F32), -1.45)[0] == F32(2.0**-145)


def test_numbers_without_a_power() -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, -2, np.nan], F32)
    none = double_words.power(F32([-1]), 0.5)[0]
    assert none.tobytes() == b"\xff" * 4
    for exponent, expected in (
        (-0.5, [np.inf, np.inf, 0, 0, none, np.nan]),
        (-4, [np.inf, np.inf, 0, 0, 1 / 16, np.nan]),
        (-5, [np.inf, -np.inf, 0, -0.0, -1 / 32, np.nan]),
        (-1, [np.inf, -np.inf, 0, -0.0, -0.5, np.nan]),
        (8.5, [0, 0, np.inf, np.inf, none, np.nan]),
    ):
        assert double_words.power(x, exponent).tobytes() == np.array(expected, F32).tobytes(), exponent

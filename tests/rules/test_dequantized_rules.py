"""Integers by way of binary32: `table` binary32_divide_256_away and `softmax` binary32_reals_away, by fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittrue.arithmetic import elementary, exact, tables
from bittrue.rules import softmax, table, table_function

F32 = np.float32
scales = st.floats(2.0**-10, 2, width=32)
quantized = st.integers(-128, 127)


def nearest(value: Fraction) -> Fraction:
    return Fraction(exact.nearest_binary(value)) if value else Fraction(0)


def stored(real: Fraction, scale: float, zero_point: int, low: int = -128, high: int = 127) -> int:
    steps = exact.nearest(nearest(real / Fraction(scale)), "away")
    return min(max(steps + zero_point, low), high)


@given(scales, quantized, scales, quantized)
def test_tables_by_fractions(scale: float, zero_point: int, output_scale: float, output_zero_point: int) -> None:
    rule = table.RULES["binary32_divide_256_away"]
    found = rule.build(lambda x: x * F32(0.75), scale, zero_point, output_scale, output_zero_point, -128, 127)
    for q in (-128, -127, -3, 0, 1, 5, 77, 127):
        argument = nearest((q - zero_point) * Fraction(scale))
        value = nearest(argument * Fraction(3, 4))
        assert int(found[q + 128]) == stored(value, output_scale, output_zero_point)


def test_tables_of_numbers_that_are_none() -> None:
    with pytest.raises(ValueError, match="NaN"):
        table.RULES["binary32_divide_256_away"].build(lambda x: np.sqrt(x), 1.0, 0, 1.0, 0, -128, 127)
    # Infinities saturate.
    ends = table.RULES["binary32_divide_256_away"].build(
        lambda x: np.where(x < 0, -np.inf, np.inf), 1.0, 0, 1.0, 3, 0, 255
    )
    assert set(ends.tolist()) == {255}


@given(st.floats(-100, 100, width=32))
def test_tangent_by_fractions(x: float) -> None:
    def power(value: float) -> Fraction:
        return Fraction(float(elementary.exp(F32(value))))

    if x >= 0:
        e = power(-2 * x)
        expected = nearest(nearest(1 - e) / nearest(1 + e))
    else:
        e = power(2 * x)
        expected = nearest(nearest(e - 1) / nearest(e + 1))
    assert Fraction(float(tables.tanh_by_exponentials(F32(x)))) == expected


def test_table_functions_are_told_apart() -> None:
    x = np.linspace(-2, 2, 64).astype(F32)
    for stem in ("hard_swish", "tanh"):
        rules = [rule for rule in table_function.RULES.values() if stem in rule.functions]
        first, second = (rule.functions[stem](x) for rule in rules)
        assert (first != second).any(), stem


@given(st.lists(quantized, min_size=1, max_size=12), scales, quantized, st.floats(2.0**-10, 1, width=32))
def test_softmax_by_fractions(row: list[int], scale: float, zero_point: int, output_scale: float) -> None:
    rule = softmax.RULES["binary32_reals_away"]
    prepared = {
        **rule.prepare(scale, 1.0),
        "output_scale": F32(output_scale),
        "input_zero_point": np.int64(zero_point),
    }
    found = rule.apply(np.array([row]), prepared, 8)[0].tolist()
    reals = [nearest((q - zero_point) * Fraction(scale)) for q in row]
    powers = [Fraction(float(elementary.exp(F32(float(nearest(x - max(reals))))))) for x in reals]
    total = Fraction(0)
    for power in powers:
        total = nearest(total + power)
    assert found == [
        exact.nearest(nearest(nearest(power / total) * nearest(1 / Fraction(output_scale))), "away") for power in powers
    ]

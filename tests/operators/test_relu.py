"""RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1 against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bittrue
from support.build import T
from support.differential import check, feeds_for
from support.strategies import scales, seeds, shapes, zero_points
from support.unary import reals, unary

OPERATORS = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")


@given(st.data())
@pytest.mark.parametrize("operator", OPERATORS)
def test_quantized(operator: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["s8", "u8", "s16"]))
    low, high = (1e-5, 1e-3) if dtype == "s16" else (1e-3, 0.5)
    x = T(dtype, data.draw(shapes(0)), data.draw(scales(low, high)), data.draw(zero_points(dtype)))
    # Some zero points break what the kernels demand of 16 bits: both sides refuse.
    y = T(dtype, (), data.draw(scales(low, high)), data.draw(zero_points(dtype) | st.integers(-2, 2)))
    content = unary(operator, x, y)
    check(content, feeds_for(content, data.draw(seeds)))


@given(operator=st.sampled_from(OPERATORS), shape=shapes(0), seed=seeds)
def test_real(operator: str, shape: tuple[int, ...], seed: int) -> None:
    check(unary(operator, T("f32", shape), T("f32", ())), [[reals(seed, shape)]])


@given(data=st.data())
@settings(max_examples=10)
def test_every_input_of_16_bits(data: st.DataObject) -> None:
    """All 65536 inputs meet enough near-ties to show the last bit of the multiplier."""
    x, y = data.draw(scales(1e-4, 1e-3)), data.draw(scales(1e-4, 1e-3))
    values = np.arange(-32768, 32768, dtype=np.int16)
    assert check(unary("RELU", T("s16", (65536,), x), T("s16", (), y)), [[values]]) == "equal"


def test_values_by_hand() -> None:
    """Scale 0.5 to 0.25: twice the number of steps, 6 is 24 steps above zero point -100. 0.5 and -0.5 go up."""
    model = bittrue.load(unary("RELU6", T("s8", (5,), 0.5, 3), T("s8", (), 0.25, -100)))
    assert model.prepare().run(np.int8([0, 3, 4, 10, 127]))["t1"].tolist() == [-100, -100, -98, -86, -76]
    model = bittrue.load(unary("RELU_N1_TO_1", T("s8", (4,), 0.5, 0), T("s8", (), 1.0, 0)))
    assert model.prepare().run(np.int8([1, -1, 2, -9]))["t1"].tolist() == [1, 0, 1, -1]


def test_range_that_does_not_fit_is_refused() -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-ACTIVATION-RANGE"):
        bittrue.load(unary("RELU6", T("s8", (1,), 1e-9), T("s8", (), 1e-9))).prepare()


def test_huge_multiplier_is_refused() -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-MULTIPLIER"):
        bittrue.load(unary("RELU", T("s8", (1,), 1.0), T("s8", (), 2.0**-31))).prepare()


def test_missing_scale_is_refused() -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-MISSING"):
        bittrue.load(unary("RELU", T("s8", (1,)), T("s8", (), 1.0))).prepare()

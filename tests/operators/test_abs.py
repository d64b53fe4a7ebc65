"""abs against the real runtime."""

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


@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "s16"])
def test_quantized(dtype: str, data: st.DataObject) -> None:
    input_scale = data.draw(scales(1e-4, 1.0))
    output_scale = data.draw(st.one_of(st.just(input_scale), scales(1e-4, 1.0)))
    x = T(dtype, data.draw(shapes(0)), input_scale, data.draw(zero_points(dtype)))
    content = unary("ABS", x, T(dtype, (), output_scale, data.draw(zero_points(dtype) | st.integers(-2, 2))), version=2)
    check(content, feeds_for(content, data.draw(seeds)))


@given(shape=shapes(0), dtype=st.sampled_from(["s16", "s32"]), seed=seeds)
def test_plain_integers(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    content = unary("ABS", T(dtype, shape), T(dtype, ()), version=3)
    check(content, feeds_for(content, seed))


@given(shape=shapes(0), seed=seeds)
def test_real(shape: tuple[int, ...], seed: int) -> None:
    check(unary("ABS", T("f32", shape), T("f32", ())), [[reals(seed, shape)]])


@given(data=st.data())
@settings(max_examples=10)
def test_every_input_of_16_bits(data: st.DataObject) -> None:
    """All 65536 inputs meet enough near-ties to show the last bit of the multiplier."""
    x, y = data.draw(scales(1e-4, 1e-3)), data.draw(scales(1e-4, 1e-3))
    values = np.arange(-32768, 32768, dtype=np.int16)
    assert check(unary("ABS", T("s16", (65536,), x), T("s16", (), y), version=2), [[values]]) == "equal"


def test_values_by_hand() -> None:
    """Around zero point 1: -1 is two steps away, -128 is 129 steps away and saturates. Plain -2^31 stays."""
    session = bittrue.load(unary("ABS", T("s8", (3,), 0.5, 1), T("s8", (), 0.5, 1))).prepare()
    assert session.run(np.int8([-1, -128, 1]))["t1"].tolist() == [3, 127, 1]
    session = bittrue.load(unary("ABS", T("s32", (2,)), T("s32", ()))).prepare()
    assert session.run(np.int32([-(2**31), -5]))["t1"].tolist() == [-(2**31), 5]


def test_int8_without_scale_is_refused() -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-MISSING"):
        bittrue.load(unary("ABS", T("s8", (1,)), T("s8", ()))).prepare()

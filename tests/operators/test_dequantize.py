"""dequantize against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bittrue
from support import differential
from support.build import T, chain
from support.differential import check, feeds_for
from support.strategies import scales, seeds, shapes, zero_points
from support.unary import reals, unary


@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "u8", "s16"])
def test_per_tensor(dtype: str, data: st.DataObject) -> None:
    zero_point = data.draw(st.sampled_from([0, 0, 0, 5]) if dtype == "s16" else zero_points(dtype))
    content = unary(
        "DEQUANTIZE", T(dtype, data.draw(shapes(0)), data.draw(scales(1e-6, 100.0)), zero_point), T("f32", ())
    )
    check(content, feeds_for(content, data.draw(seeds)))


@given(st.data())
def test_per_axis(data: st.DataObject) -> None:
    """16 bits with several scales are refused by both sides."""
    shape = data.draw(shapes(1))
    axis = data.draw(st.integers(0, len(shape) - 1))
    # One scale along an axis other than the first keeps the delegate away, and is one scale to bittrue.
    assume(differential.COMPARED != "xnnpack" or shape[axis] > 1)
    dtype = data.draw(st.sampled_from(["s8", "u8", "s8", "u8", "s16"]))
    scale = [data.draw(scales(1e-6, 100.0)) for _ in range(shape[axis])]
    zero_point = [data.draw(zero_points(dtype)) for _ in range(shape[axis])]
    content = unary("DEQUANTIZE", T(dtype, shape, scale, zero_point, axis), T("f32", ()))
    check(content, feeds_for(content, data.draw(seeds)))


@given(st.data())
def test_4_bits(data: st.DataObject) -> None:
    """4-bit constants, packed two to a byte, and 4-bit results of quantize."""
    shape, seed, scale = data.draw(shapes(1, 3)), data.draw(seeds), data.draw(scales(1e-3, 10.0))
    if data.draw(st.booleans()):
        axis = data.draw(st.integers(0, len(shape) - 1))
        many = [data.draw(scales(1e-3, 10.0)) for _ in range(shape[axis])]
        dtype, low, high = data.draw(st.sampled_from([("s4", -8, 7), ("s2", -2, 1), ("u4", 0, 15)]))
        values = np.random.default_rng(seed).integers(low, high, shape, endpoint=True)
        check(unary("DEQUANTIZE", T(dtype, shape, many, 0, axis, values), T("f32", ()), version=9), [[]])
    else:
        dtype = data.draw(st.sampled_from(["s4", "u4"]))
        between = T(dtype, shape, scale, data.draw(st.integers(0, 7)))
        nodes = [
            ("QUANTIZE", None, [T("f32", shape)], [between], 6),
            ("DEQUANTIZE", None, [between], [T("f32", ())], 6),
        ]
        check(chain(nodes), [[reals(seed, shape, scale)]])


@given(shape=shapes(0), seed=seeds)
def test_half_floats(shape: tuple[int, ...], seed: int) -> None:
    check(unary("DEQUANTIZE", T("f16", shape), T("f32", ()), version=3), [[reals(seed, shape, dtype=np.float16)]])


def test_values_by_hand() -> None:
    session = bittrue.load(unary("DEQUANTIZE", T("s8", (2, 2), [0.5, 2.0], [0, 1], 1), T("f32", ()))).prepare()
    assert session.run(np.int8([[1, 1], [-128, -128]]))["t1"].tolist() == [[0.5, 0.0], [-64.0, -258.0]]


def test_int32_is_refused() -> None:
    with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR"):
        bittrue.load(unary("DEQUANTIZE", T("s32", (1,), 1.0), T("f32", ()))).prepare()

"""quantize against the real runtime: from real numbers, and between integer types."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bittrue
from support import differential
from support.build import T
from support.differential import check, feeds_for
from support.strategies import f32, scales, seeds, shapes, zero_points
from support.unary import reals, unary

LIMITS = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767), "s4": (-8, 7), "u4": (0, 15), "s32": (-9, 9)}


def any_zero_point(dtype: str) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from([0, *LIMITS[dtype]]), st.integers(*LIMITS[dtype]))


@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "s4", "u4"])
def test_from_real(dtype: str, data: st.DataObject) -> None:
    shape, scale, seed = data.draw(shapes(0)), data.draw(scales(1e-4, 10.0)), data.draw(seeds)
    content = unary("QUANTIZE", T("f32", shape), T(dtype, (), scale, data.draw(any_zero_point(dtype))), version=6)
    check(content, [[reals(seed, shape, scale)]])


@given(st.data())
def test_from_real_per_axis(data: st.DataObject) -> None:
    """int4 and uint4 outputs with several scales are refused by both sides."""
    shape, seed = data.draw(shapes(1)), data.draw(seeds)
    axis = data.draw(st.integers(0, len(shape) - 1))
    # One scale along an axis other than the first keeps the delegate away, and is one scale to bittrue.
    assume(differential.COMPARED != "xnnpack" or shape[axis] > 1)
    dtype = data.draw(st.sampled_from(["s8", "u8", "s16", "s8", "u8", "s16", "s4", "u4"]))
    scale = [data.draw(scales(1e-3, 1.0)) for _ in range(shape[axis])]
    zero_point = [data.draw(any_zero_point(dtype)) for _ in range(shape[axis])]
    content = unary("QUANTIZE", T("f32", shape), T(dtype, shape, scale, zero_point, axis), version=6)
    check(content, [[reals(seed, shape, scale[0])]])


@pytest.mark.numerics("litert", "litert-optimized")
@given(dtype=st.sampled_from(["s8", "u8", "s16"]), shape=shapes(1, 3), declared=shapes(1, 3), data=st.data())
def test_from_real_per_axis_with_another_declared_shape(
    dtype: str, shape: tuple[int, ...], declared: tuple[int, ...], data: st.DataObject
) -> None:
    """Parameters of slices that the inferred shape lacks are never read; where there are too few, kernels read on."""
    axis = data.draw(st.integers(0, len(declared) - 1))
    count = declared[axis]
    scale = [data.draw(scales(1e-3, 1.0)) for _ in range(count)]
    zero_point = [data.draw(any_zero_point(dtype)) for _ in range(count)]
    content = unary("QUANTIZE", T("f32", shape), T(dtype, declared, scale, zero_point, axis), version=6)
    if count > 1 and (axis >= len(shape) or shape[axis] > count):
        with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-AXIS"):
            bittrue.load(content).prepare()
    else:
        check(content, [[reals(1, shape, scale[0])]])


@given(st.data())
@pytest.mark.parametrize("source", ["s8", "u8", "s16", "s32"])
def test_between_integers(source: str, data: st.DataObject) -> None:
    """Every pair of types, those that the kernel refuses included."""
    target = data.draw(st.sampled_from(["s8", "u8", "s16", "s32"]))
    low = 1e-9 if source == "s32" else 1e-4
    input_scale = data.draw(scales(low, 1.0))
    output_scale = data.draw(st.one_of(scales(low, 1.0), st.just(input_scale)))
    x = T(source, data.draw(shapes(0)), input_scale, data.draw(any_zero_point(source)))
    content = unary("QUANTIZE", x, T(target, (), output_scale, data.draw(any_zero_point(target))), version=2)
    check(content, feeds_for(content, data.draw(seeds)))


@given(st.data())
def test_between_bytes_at_equal_scale(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from([("s8", "u8"), ("u8", "s8"), ("s8", "s8")]))
    scale, zero_point = data.draw(scales()), data.draw(zero_points(source))
    shift = {"s8u8": 128, "u8s8": -128, "s8s8": 0}[source + target]
    content = unary(
        "QUANTIZE", T(source, (64,), scale, zero_point), T(target, (), scale, zero_point + shift), version=2
    )
    check(content, feeds_for(content, data.draw(seeds)))


@given(data=st.data())
@settings(max_examples=10)
def test_every_input_of_16_bits(data: st.DataObject) -> None:
    """16 to 32 bits at 2^10 to 2^15 steps per step shows every bit of the multiplier."""
    x, y = data.draw(scales(0.1, 1.0)), data.draw(scales(3e-5, 1e-4))
    values = np.arange(-32768, 32768, dtype=np.int16)
    content = unary("QUANTIZE", T("s16", (65536,), x), T("s32", (), y, data.draw(st.integers(-9, 9))), version=2)
    assert check(content, [[values]]) == "equal"


def test_values_by_hand() -> None:
    """Ties go away from zero; what does not fit 32 bits becomes -2^31, then the zero point is added and wraps."""
    x = np.float32([0.5, -0.5, 1.5, 1000, np.nan, np.inf, -np.inf])
    session = bittrue.load(unary("QUANTIZE", T("f32", (7,)), T("s8", (), 1.0, 0))).prepare()
    assert session.run(x)["t1"].tolist() == [1, -1, 2, 127, -128, -128, -128]
    session = bittrue.load(unary("QUANTIZE", T("f32", (7,)), T("s8", (), 1.0, -1))).prepare()
    assert session.run(x)["t1"].tolist() == [0, -2, 1, 127, 127, 127, 127]


def test_requantize_by_hand() -> None:
    """0.75 to 0.5 is 1.5 times the number of steps; both ties (1.5 and -1.5) go up, since a left shift precedes."""
    session = bittrue.load(unary("QUANTIZE", T("s8", (4,), 0.75, 1), T("s8", (), f32(0.5), 0))).prepare()
    assert session.run(np.int8([1, 2, 0, 127]))["t1"].tolist() == [0, 2, -1, 127]


def test_output_without_scale_is_refused() -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-MISSING"):
        bittrue.load(unary("QUANTIZE", T("f32", (1,)), T("s8", ()))).prepare()

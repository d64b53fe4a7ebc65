"""CONV_2D and DEPTHWISE_CONV_2D against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for
from support.strategies import activations, scales, seeded, seeds, zero_points


@st.composite
def convolution(draw: st.DrawFn, depthwise: bool = False) -> tuple[bytes, int]:
    kind = draw(st.sampled_from(["s8", "s8", "u8", "s16", "s8s4"]))
    dtype = {"s8s4": "s8"}.get(kind, kind)
    weight_type = {"u8": "u8", "s8s4": "s4"}.get(kind, "s8")
    bias_type = draw(st.sampled_from(["s32", "s64"])) if kind == "s16" and not depthwise else "s32"
    if kind == "s16" and depthwise:
        bias_type = "s64"
    groups = 1 if depthwise else draw(st.sampled_from([1, 1, 1, 2]))
    depth, filters = draw(st.integers(1, 9)), draw(st.integers(1, 7)) * groups
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    taps_h, taps_w = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    seed = draw(seeds)
    if depthwise:
        multiplier = draw(st.integers(1, 3))
        channels, filters, weight_shape = depth, depth * multiplier, (1, taps_h, taps_w, depth * multiplier)
    else:
        channels, weight_shape = depth * groups, (filters, taps_h, taps_w, depth)
    per_axis = weight_type != "u8" and draw(st.booleans())
    weight_scale = [draw(scales(1e-3, 0.1)) for _ in range(filters)] if per_axis else draw(scales(1e-3, 0.1))
    input_scale = draw(scales(1e-3, 0.5))
    zero_point = draw(zero_points("u8")) if weight_type == "u8" else 0
    large = draw(st.sampled_from([100, 30000, 2**31 - 1]))
    rng = np.random.default_rng(seed)
    bias = rng.integers(-large - 1, large, filters, endpoint=True)
    output_scale = draw(scales(1e-3, 4.0))
    bias_scale = np.float32(input_scale) * np.float32(np.atleast_1d(weight_scale))
    options = {
        "padding": draw(st.integers(0, 1)),
        "strideW": draw(st.integers(1, 3)),
        "strideH": draw(st.integers(1, 3)),
        "fusedActivationFunction": draw(activations),
        "dilationWFactor": draw(st.sampled_from([1, 1, 2])),
        "dilationHFactor": draw(st.sampled_from([1, 1, 2])),
    }
    if depthwise:
        options["depthMultiplier"] = draw(st.sampled_from([0, 1, multiplier]))
    elif kind == "s16":
        options["quantizedBiasType"] = 2 if bias_type == "s32" else 4
    x = T(dtype, (draw(st.integers(1, 2)), height, width, channels), input_scale, draw(zero_points(dtype)))
    w = T(
        weight_type,
        weight_shape,
        weight_scale,
        zero_point,
        3 if depthwise else 0,
        seeded(weight_type, weight_shape, seed) if weight_type == "s4" or draw(st.integers(0, 5)) else None,
    )
    b = T(bias_type, (filters,), bias_scale.tolist(), 0, 0, bias)
    y = T(dtype, (), output_scale, draw(zero_points(dtype)))
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    version = 6 if depthwise else 8
    # Only depthwise kernels do without a bias; one that is named and absent is refused.
    biases = draw(st.sampled_from([[b], [b], [b], [], [None]])) if depthwise else [b]
    return single(name, (table, options), [x, w, *biases], [y], version=version), seed


@given(convolution())
def test_conv2d(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@given(convolution(depthwise=True))
def test_depthwise_conv2d(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_several_scales_of_uint8_weights_are_refused(operator: str) -> None:
    table = "Conv2DOptions" if operator == "CONV_2D" else "DepthwiseConv2DOptions"
    shape, axis = ((2, 1, 1, 2), 0) if operator == "CONV_2D" else ((1, 1, 1, 2), 3)
    x, w = T("u8", (1, 2, 2, 2), 0.5, 3), T("u8", shape, [0.5, 0.25], 0, axis, np.ones(shape))
    b, y = T("s32", (2,), [0.25, 0.125], data=np.zeros(2)), T("u8", (), 2.0)
    content = single(operator, (table, {"strideW": 1, "strideH": 1}), [x, w, b], [y])
    assert check(content, feeds_for(content, 0)) == "refused"


@pytest.mark.parametrize(("activations", "weights"), [("u8", "s8"), ("f32", "s2")])
def test_weights_that_kernels_read_as_another_type_are_refused(activations: str, weights: str) -> None:
    scales = (0.5, 0.25, 2.0) if activations == "u8" else (None,) * 3
    x, w = T(activations, (1, 2, 2, 2), scales[0], 3), T(weights, (1, 1, 1, 2), 0.5, data=np.int8([[[[-1, 1]]]]))
    b = T("f32" if activations == "f32" else "s32", (1,), scales[1], data=np.zeros(1))
    y = T(activations, (), scales[2])
    content = single("CONV_2D", ("Conv2DOptions", {"strideW": 1, "strideH": 1}), [x, w, b], [y])
    assert check(content, feeds_for(content, 0), may_refuse=("BT-UNDEFINED",)) == "refused"


def test_channels_of_zeros_with_scale_0() -> None:
    """Converters give pruned channels the scale 0; the runtime stores the zero point there."""
    x = T("s8", (1, 4, 4, 2), 0.5, 3)
    w = T("s8", (3, 1, 1, 2), [0.5, 0.0, 0.25], 0, 0, np.array([[1, -2], [0, 0], [3, 4]]))
    b = T("s32", (3,), [0.25, 0.0, 0.125], 0, 0, np.array([5, 0, -7]))
    y = T("s8", (), 0.75, -9)
    content = single("CONV_2D", ("Conv2DOptions", {"strideW": 1, "strideH": 1}), [x, w, b], [y])
    feeds = feeds_for(content, 1)
    check(content, feeds)
    stored = next(iter(bittrue.load(content).prepare().run(*feeds[0]).values()))
    assert (stored[..., 1] == -9).all()


@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize(("dilation", "runs"), [(100, True), (32768, False)])
def test_kernels_keep_geometry_in_16_bits(operator: str, dilation: int, runs: bool) -> None:
    table = "Conv2DOptions" if operator == "CONV_2D" else "DepthwiseConv2DOptions"
    options = {"strideW": 1, "strideH": 1, "dilationWFactor": dilation, "dilationHFactor": dilation}
    x, w = T("s8", (1, 5, 5, 1), 0.5, 0), T("s8", (1, 3, 3, 1), 0.5, data=np.arange(9).reshape(1, 3, 3, 1))
    b, y = T("s32", (1,), 0.25, data=np.zeros(1)), T("s8", (), 2.0)
    content = single(operator, (table, options), [x, w, b], [y], version=5)
    assert check(content, feeds_for(content, 0)) == ("equal" if runs else "refused")


def test_grouped_convolution_by_hand() -> None:
    """Two groups of one channel each: 3 * (5 - 1) and 2 * (7 - 1), in units of 1 * 1 / 2, ties away from zero."""
    x = T("s8", (1, 1, 1, 2), 1.0, 1)
    w = T("s8", (2, 1, 1, 1), 1.0, 0, 0, np.array([3, 2]))
    b = T("s32", (2,), 1.0, 0, 0, np.array([1, -1]))
    y = T("s8", (), 2.0, 0)
    content = single("CONV_2D", ("Conv2DOptions", {"strideW": 1, "strideH": 1}), [x, w, b], [y])
    stored = next(iter(bittrue.load(content).prepare().run(np.int8([5, 7]).reshape(1, 1, 1, 2)).values()))
    assert stored.reshape(-1).tolist() == [7, 6]  # 13 / 2 = 6.5 -> 7, 11 / 2 = 5.5 -> 6
    assert check(content, feeds_for(content, 4)) == "equal"


@pytest.mark.parametrize("padding", [0, 1])
def test_depthwise_filter_far_larger_than_the_image(padding: int) -> None:
    """Most taps only ever meet padding."""
    x = T("s8", (1, 8, 7, 2), 0.5, 3)
    w = T("s8", (1, 200, 301, 2), 0.5, 0, 3, seeded("s8", (1, 200, 301, 2), 9))
    b, y = T("s32", (2,), 0.25, data=np.array([100, -100])), T("s8", (), 40.0, 1)
    options = {"strideW": 2, "strideH": 3, "depthMultiplier": 1, "padding": padding}
    content = single("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", options), [x, w, b], [y], version=3)
    check(content, feeds_for(content, 2))

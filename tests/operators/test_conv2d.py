"""conv2d and depthwise_conv2d against the real runtime."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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
        seeded(weight_type, weight_shape, seed),
    )
    b = T(bias_type, (filters,), bias_scale.tolist(), 0, 0, bias)
    y = T(dtype, (), output_scale, draw(zero_points(dtype)))
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    version = 6 if depthwise else 8
    return single(name, (table, options), [x, w, b], [y], version=version), seed


@given(convolution())
def test_conv2d(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@given(convolution(depthwise=True))
def test_depthwise_conv2d(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))

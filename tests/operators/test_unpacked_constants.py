"""Weights and biases that nodes make of constants: the delegate unpacks binary16 and s8 ones, and no others.

What it does not take for constants stays with the built-in kernels, whose order of sums is another one.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import bittrue
from support.build import T, chain
from support.differential import check

pytestmark = pytest.mark.numerics("xnnpack")

UNPACKED = ("f16", "s8", "s8 with a zero point", "s8 per channel")
MADE = ("s4", "u8", "RESHAPE", "CAST")
OPTIONS = {
    "CONV_2D": ("Conv2DOptions", {"strideH": 1, "strideW": 1}),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", {"strideH": 1, "strideW": 1, "depthMultiplier": 1}),
    "FULLY_CONNECTED": ("FullyConnectedOptions", {}),
    "TRANSPOSE_CONV": ("TransposeConvOptions", {"strideH": 2, "strideW": 2}),
}
SHAPES = {
    "CONV_2D": ((5, 3, 3, 4), (1, 4, 4, 5)),
    "DEPTHWISE_CONV_2D": ((1, 3, 3, 4), (1, 4, 4, 4)),
    "FULLY_CONNECTED": ((5, 4), (16, 5)),
    "TRANSPOSE_CONV": ((5, 3, 3, 4), (1, 8, 8, 5)),
}
Nodes = list[tuple]


def made(rng: np.random.Generator, shape: tuple[int, ...], way: str) -> tuple[Nodes, T]:
    """A tensor of `shape` and the nodes that make it."""
    result, values = T("f32", shape), rng.standard_normal(shape).astype(np.float32)
    if way == "constant":
        return [], T("f32", shape, data=values)
    if way == "RESHAPE":
        flat, sizes = T("f32", (values.size,), data=values), T("s32", (len(shape),), data=np.int32(shape))
        return [("RESHAPE", ("ReshapeOptions", {"newShape": list(shape)}), [flat, sizes], [result])], result
    if way in ("f16", "CAST"):
        halves = T("f16", shape, data=values)
        options = ("CastOptions", {}) if way == "CAST" else None
        return [
            ("CAST" if way == "CAST" else "DEQUANTIZE", options, [halves], [result], 1 if way == "CAST" else 3)
        ], result
    small, dtype = rng.integers(-7, 8, shape), way[:2]
    several = way.endswith("channel")
    scale = rng.uniform(0.1, 0.3, shape[0]).tolist() if several else 0.1
    zero_point = 3 if way.endswith("point") else [0] * shape[0] if several else 0
    quantized = T(dtype, shape, scale, zero_point, data=np.where(small < 0, 0, small) if dtype == "u8" else small)
    return [("DEQUANTIZE", None, [quantized], [result], 6)], result


def layer(operator: str, weights_way: str, bias_way: str) -> tuple[bytes, list[np.ndarray]]:
    rng = np.random.default_rng(7)
    filters, out = SHAPES[operator]
    shape = (16, 4) if operator == "FULLY_CONNECTED" else (1, 4, 4, 4)
    (first, w), (second, b) = made(rng, filters, weights_way), made(rng, out[-1:], bias_way)
    x, y = T("f32", shape), T("f32", out)
    inputs, version = [x, w, b], 3
    if operator == "TRANSPOSE_CONV":
        inputs, version = [T("s32", (4,), data=np.int32(out)), w, x, b], 4
    content = chain([*first, *second, (operator, OPTIONS[operator], inputs, [y], version)])
    return content, [rng.standard_normal(shape).astype(np.float32)]


@pytest.mark.parametrize("operator", OPTIONS)
def test_what_is_a_constant_for_the_delegate(operator: str) -> None:
    ways = ("constant", *UNPACKED)
    alike = [*UNPACKED, *MADE]
    for weights, bias in (
        *product(alike, ways[:1]),
        *product(ways[:1], alike),
        ("f16", "f16"),
        ("s8", "f16"),
        ("f16", "s8"),
    ):
        content, feed = layer(operator, weights, bias)
        *_, step = bittrue.load(content).prepare("xnnpack").plan.steps
        # A bias of halves is taken beside weights of halves alone, but by transposed convolutions.
        alone = bias == "f16" and weights != "f16" and operator != "TRANSPOSE_CONV"
        taken = weights in ways and bias in ways and not alone
        assert step.rules["sum_of_products"].startswith("binary32_fused_from_bias") == taken, (weights, bias)
        assert not step.inexact
        assert check(content, [feed]) == "equal", (weights, bias)

"""Biases of 64 bits at the ends of their range: sums wrap around as the reference's do, in every layer that folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bittrue
from support.build import T, single
from support.native import needs_native, same

ENDS = np.int64([-(2**63), 2**63 - 1, -(2**63) + 1, 2**31])
_STRIDES = {"strideH": 1, "strideW": 1, "padding": 0}
_DILATED = {**_STRIDES, "dilationHFactor": 1, "dilationWFactor": 1}


def _layer(operator: str) -> tuple[tuple[str, dict[str, Any]], list[T], T]:
    filters = {"CONV_2D": (4, 2, 2, 4), "DEPTHWISE_CONV_2D": (1, 2, 2, 4), "FULLY_CONNECTED": (4, 4)}
    shape = filters.get(operator, (4, 2, 2, 4))
    values = np.random.default_rng(0).integers(-127, 128, shape).astype(np.int8)
    x = T("s16", (3, 4) if operator == "FULLY_CONNECTED" else (1, 5, 5, 4), scale=0.5)
    weights, bias = T("s8", shape, scale=0.25, data=values), T("s64", (4,), scale=0.125, data=ENDS)
    y = T("s16", x.shape, scale=2.0)
    if operator == "CONV_2D":
        return ("Conv2DOptions", _DILATED), [x, weights, bias], y
    if operator == "DEPTHWISE_CONV_2D":
        return ("DepthwiseConv2DOptions", {**_DILATED, "depthMultiplier": 1}), [x, weights, bias], y
    if operator == "FULLY_CONNECTED":
        return ("FullyConnectedOptions", {}), [x, weights, bias], y
    size = T("s32", (4,), data=np.int32(x.shape))
    return ("TransposeConvOptions", _STRIDES), [size, weights, x, bias], y


@needs_native
@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"])
def test_biases_at_the_ends(operator: str) -> None:
    options, inputs, result = _layer(operator)
    model = bittrue.load(single(operator, options, inputs, [result], version=4))
    for numerics in ("litert", "litert-optimized"):
        wanted = model.prepare(numerics, executor="reference")
        (port,) = wanted.inputs
        for seed in range(3):
            x = np.random.default_rng(seed).integers(-(2**15), 2**15, port.shape).astype(port.dtype)
            (expected,) = wanted.run(x).values()
            for isa in bittrue.isas():
                (value,) = model.prepare(numerics, executor="native", isa=isa).run(x).values()
                same(isa, value, expected)

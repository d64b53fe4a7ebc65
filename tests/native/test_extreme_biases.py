"""Biases of 64 bits at the ends of their range: sums wrap around as the reference's do, in every layer that folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bittrue
from support.build import NUMPY, T, single
from support.differential import random_values
from support.native import needs_native, same

ENDS = np.int64([-(2**63), 2**63 - 1, -(2**63) + 1, 2**31])
_STRIDES = {"strideH": 1, "strideW": 1, "padding": 0}
_DILATED = {**_STRIDES, "dilationHFactor": 1, "dilationWFactor": 1}


LAYERS = ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"]


def _layer(
    operator: str, images: str, bias: np.ndarray, constant: bool = True
) -> tuple[tuple[str, dict[str, Any]], list[T], T]:
    filters = {"CONV_2D": (4, 2, 2, 4), "DEPTHWISE_CONV_2D": (1, 2, 2, 4), "FULLY_CONNECTED": (4, 4)}
    shape = filters.get(operator, (4, 2, 2, 4))
    kind, middle = ("u8", 128) if images == "u8" else ("s8", 0)
    values = (np.random.default_rng(0).integers(-127, 128, shape) + middle).astype(NUMPY[kind])
    zero_point = 0 if images == "s16" else middle + 3
    x = T(images, (3, 4) if operator == "FULLY_CONNECTED" else (1, 5, 5, 4), 0.5, zero_point)
    weights = T(kind, shape, 0.25, middle, data=values if constant else None)
    addend = T("s64" if images == "s16" else "s32", (4,), 0.125, data=bias)
    y = T(images, x.shape, 2.0 if images == "s16" else 20.0, zero_point)
    if operator == "CONV_2D":
        return ("Conv2DOptions", _DILATED), [x, weights, addend], y
    if operator == "DEPTHWISE_CONV_2D":
        return ("DepthwiseConv2DOptions", {**_DILATED, "depthMultiplier": 1}), [x, weights, addend], y
    if operator == "FULLY_CONNECTED":
        return ("FullyConnectedOptions", {}), [x, weights, addend], y
    size = T("s32", (4,), data=np.int32(x.shape))
    return ("TransposeConvOptions", _STRIDES), [size, weights, x, addend], y


@needs_native
@pytest.mark.parametrize("operator", LAYERS)
def test_biases_at_the_ends(operator: str) -> None:
    options, inputs, result = _layer(operator, "s16", ENDS)
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


@needs_native
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("images", ["s8", "u8"])
@pytest.mark.parametrize("operator", LAYERS)
def test_biases_of_8_bit_layers_in_plans_that_lie(operator: str, images: str, constant: bool) -> None:
    """No row has them: 32-bit registers of sums that begin with 64 bits."""
    options, inputs, result = _layer(operator, images, np.zeros(4, np.int32), constant)
    model = bittrue.load(single(operator, options, inputs, [result], version=4 if images == "s8" else 3))
    plan = model.prepare(executor="reference").plan
    (step,) = plan.steps
    tensors = [
        replace(tensor, dtype="s64", value=ENDS) if index == step.inputs[2] else tensor
        for index, tensor in enumerate(plan.tensors)
    ]
    assert step.accumulator is not None
    step = replace(step, accumulator=replace(step.accumulator, magnitude=2**64, wraps=True))
    plan = replace(plan, tensors=tuple(tensors), steps=(step,))
    reference = bittrue.Session(plan, executor="reference")
    rng = np.random.default_rng(1)
    feed = [random_values(rng, port.dtype, port.shape) for port in reference.inputs]
    (expected,) = reference.run(*feed).values()
    for isa in bittrue.isas():
        session = bittrue.Session(plan, executor="native", isa=isa)
        (value,) = session.run(*feed).values()
        same(isa, value, expected)
    # Transposed convolutions of computed weights have no kernel.
    assert bool(session.missing) == (operator == "TRANSPOSE_CONV" and not constant)

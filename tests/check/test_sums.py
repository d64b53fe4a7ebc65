"""Bounds and witnesses of accumulators against loops over every output position."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.check.sums import Sums, layers
from bittrue.check.surveys import survey
from support.build import T, single
from support.findings import subject_of
from support.onnx_models import KIND
from support.onnx_models import single as onnx_single


def only_layer(content: bytes) -> Sums:
    found = list(layers(survey(subject_of(content))))
    assert len(found) == 1
    return found[0]


def convolved(x: np.ndarray, zero: int, w: np.ndarray, bias: np.ndarray, step: Any, depthwise: bool) -> np.ndarray:
    """Accumulators [positions, channels] of [1, H, W, C] by loops; filters [O, h, w, C / groups]."""
    height, width, channels = x.shape[1:]
    rows = []
    for oy, ox in product(range(step["out_h"]), range(step["out_w"])):
        totals = bias.copy()
        for o, ky, kx, i in np.ndindex(*w.shape):
            y = oy * step["stride_h"] - step["pad_top"] + ky * step["dilation_h"]
            column = ox * step["stride_w"] - step["pad_left"] + kx * step["dilation_w"]
            if 0 <= y < height and 0 <= column < width:
                groups = channels // w.shape[3]
                group = o // (w.shape[0] // groups)
                channel = o // (w.shape[0] // channels) if depthwise else group * w.shape[3] + i
                totals[o] += (int(x[0, y, column, channel]) - zero) * int(w[o, ky, kx, i])
        rows.append(totals)
    return np.array(rows)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_convolutions(seed: int, depthwise: bool) -> None:
    rng = np.random.default_rng([seed, depthwise])
    groups, depth, per_group = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    if depthwise:
        groups, depth = int(rng.integers(1, 4)), 1
    channels, outputs = groups * depth, groups * per_group
    taps = tuple(int(v) for v in rng.integers(1, 4, 2))
    height, width = (int(v) for v in rng.integers(3, 7, 2))
    stride, dilation = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    dilation = dilation if stride == 1 else 1
    w = rng.integers(-127, 128, (outputs, *taps, depth)).astype(np.int8)
    bias = rng.integers(-500, 500, outputs).astype(np.int32)
    zero = int(rng.integers(-128, 128))
    padding = int(rng.integers(0, 2))
    if padding == 1:
        height, width = max(height, (taps[0] - 1) * dilation + 1), max(width, (taps[1] - 1) * dilation + 1)
    stored = np.ascontiguousarray(w[..., 0].transpose(1, 2, 0)[None]) if depthwise else w
    reach = [(t - 1) * dilation + 1 for t in taps]
    sizes = (height, width)
    out = [-(-e // stride) if padding == 0 else -(-(e - r + 1) // stride) for e, r in zip(sizes, reach, strict=True)]
    options: dict[str, Any] = {"padding": padding, "strideH": stride, "strideW": stride}
    options |= {"dilationHFactor": dilation, "dilationWFactor": dilation}
    if depthwise:
        options["depthMultiplier"] = per_group
    content = single(
        "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D",
        ("DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", options),
        [
            T("s8", (1, height, width, channels), 0.5, zero),
            T("s8", stored.shape, 0.25, data=stored),
            T("s32", (outputs,), 0.125, data=bias),
        ],
        [T("s8", (1, *out, outputs), 40.0, 3)],
        version=3,
    )
    layer = only_layer(content)
    assert layer.channels == outputs
    for channel, high in product(range(outputs), (False, True)):
        witness = layer.witness(channel, high)
        assert witness is not None
        totals = convolved(witness, zero, w, bias.astype(np.int64), layer.step, depthwise)[:, channel]
        claimed = layer.reached[int(high)][channel]
        assert claimed in totals, f"channel {channel}: {claimed} is not among {totals}"
    for _ in range(5):
        x = rng.choice([-128, zero, 127], (1, height, width, channels))
        totals = convolved(x, zero, w, bias.astype(np.int64), layer.step, depthwise)
        assert (totals >= layer.bounds[0]).all()
        assert (totals <= layer.bounds[1]).all()


def run(content: bytes, x: np.ndarray) -> np.ndarray:
    session = bittrue.load(content).prepare(executor="reference")
    return np.asarray(next(iter(session.run(x).values())))


@pytest.mark.parametrize("seed", range(12))
def test_integer_layers_show_their_accumulators(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = np.uint8 if seed % 2 else np.int8
    zero = rng.integers(0, 128, 1).astype(kind)
    conv = seed % 4 < 2
    if conv:
        groups = int(rng.integers(1, 3))
        w = rng.integers(-128, 128, (2 * groups, 2, 3, 2)).astype(np.int8)
        shape = (1, 2 * groups, 5, 6)
        attributes: dict[str, Any] = {"group": groups, "pads": [1, 0, 2, 1], "strides": [2, 1]}
        w_zero = np.zeros(1, np.int8)
    else:
        w, shape, attributes = rng.integers(-128, 128, (7, 5)).astype(np.int8), (3, 7), {}
        w_zero = rng.integers(-5, 5, 5).astype(np.int8)
    inputs = {"x": np.zeros(shape, kind), "w": w, "x_zero": zero.reshape(()), "w_zero": w_zero}
    if conv:
        inputs["w_zero"] = w_zero.reshape(())
    content, _ = onnx_single(
        "ConvInteger" if conv else "MatMulInteger",
        inputs,
        [KIND[np.dtype(np.int32)]],
        attributes,
        constants=("w", "x_zero", "w_zero"),
    )
    layer = only_layer(content)
    for channel, high in product(range(layer.channels), (False, True)):
        witness = layer.witness(channel, high)
        assert witness is not None
        result = run(content, witness.astype(kind))
        totals = result[0, channel].reshape(-1) if conv else result[:, channel]
        assert layer.reached[int(high)][channel] in totals
    result = run(content, rng.choice([np.iinfo(kind).min, np.iinfo(kind).max], shape).astype(kind))
    totals = result[0].reshape(layer.channels, -1).T if conv else result
    assert (totals >= layer.bounds[0]).all()
    assert (totals <= layer.bounds[1]).all()

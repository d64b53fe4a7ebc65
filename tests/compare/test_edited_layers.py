"""A layer in files of other systems, run by a device that has other parameters in its file: the verdict says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue import numerics, qnn
from bittrue.compare.segments import Segment, segments
from bittrue.plan.declared import rewritten_graph
from support import caffe2_nets as nets
from support.caffe_models import Files
from support.verdicts import verdict

Layer = dict[str, Any]


def base() -> Layer:
    """Filters [O, I, kh, kw] of signed values, biases, and pads: top, left, bottom, right."""
    rng = np.random.default_rng(3)
    return {
        "weights": rng.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8),
        "bias": rng.integers(-3000, 3000, 6).astype(np.int32),
        "pads": (2, 2, 4, 0),
    }


def caffe2(layer: Layer) -> tuple[bittrue.Model, str]:
    predict, init = nets.new("predict"), nets.new("init")
    predict.external_input.extend(["data", "w", "b"])
    nets.add(predict, "Int8Quantize", "data", "x", Y_scale=0.05, Y_zero_point=117)
    filters = (layer["weights"].transpose(0, 2, 3, 1).astype(np.int64) + 128).astype(np.uint8)
    nets.fill(init, "w", np.ascontiguousarray(filters), 0.01, 128)
    nets.fill(init, "b", layer["bias"], 0.05 * 0.01)
    top, left, bottom, right = layer["pads"]
    pads = {"pad_t": top, "pad_l": left, "pad_b": bottom, "pad_r": right}
    nets.add(predict, "Int8Conv", "x w b", "y", order="NHWC", kernel=3, **pads, Y_scale=0.2, Y_zero_point=121)
    nets.add(predict, "Int8Dequantize", "y", "real")
    predict.external_output.append("real")
    return bittrue.load(predict.SerializeToString(), weights=init.SerializeToString()), "caffe2"


def snps(layer: Layer) -> tuple[bittrue.Model, str]:
    top, left, bottom, right = layer["pads"]
    files = Files({"data": (2, 4, 8, 7)})
    files.add("Power", "p", ["data"], ["x"], saturate="Signed_8bit")
    fields = {
        "num_output": 6,
        "kernel_h": 3,
        "kernel_w": 3,
        "stride_h": 1,
        "stride_w": 1,
        "dilation": 1,
        "group": 1,
        "pad_t": top,
        "pad_l": left,
        "pad_b": bottom,
        "pad_r": right,
        "bias_term": True,
        "quantize_method": "tflite",
        "input_scale": 0.05,
        "input_zero_point": -11,
        "weight_scale": 0.01,
        "weight_zero_point": 0,
        "output_scale": 0.2,
        "output_zero_point": 9,
        "saturate": "Signed_8bit",
    }
    files.add("Convolution", "y", ["x"], ["y"], [layer["weights"], layer["bias"]], **fields)
    return bittrue.load(files.network, weights=files.learned), "snps_caffe"


def tvm(layer: Layer) -> tuple[bittrue.Model, str]:
    x = qnn.var("x", (2, 4, 8, 7), "int8")
    scales = np.float32(0.05), np.float32(0.01)
    acc = qnn.conv2d(x, layer["weights"], -11, 0, *scales, (3, 3), 6, padding=layer["pads"])
    total = qnn.bias_add(acc, layer["bias"], 1)
    return qnn.model(qnn.requantize(total, scales[0] * scales[1], 0, 0.2, 9, axis=1)), "tvm-qnn"


FORMATS: dict[str, Callable[[Layer], tuple[bittrue.Model, str]]] = {"caffe2": caffe2, "snps": snps, "tvm": tvm}
EDITS: list[tuple[str, Callable[[Layer], dict[str, Any]]]] = [
    ("bias dropped", lambda a: {"bias": a["bias"] * 0}),
    ("bias added twice", lambda a: {"bias": a["bias"] * 2}),
    ("bias shifted by one channel", lambda a: {"bias": np.roll(a["bias"], 1)}),
    ("weights rotated by 180 degrees", lambda a: {"weights": a["weights"][:, :, ::-1, ::-1]}),
    ("weights transposed in height and width", lambda a: {"weights": a["weights"].swapaxes(2, 3)}),
    ("weights shifted by one output channel", lambda a: {"weights": np.roll(a["weights"], 1, 0)}),
    ("input channels of weights reversed", lambda a: {"weights": a["weights"][:, ::-1]}),
    ("weights negated", lambda a: {"weights": -a["weights"]}),
    ("padding swapped on both axes", lambda a: {"pads": (4, 0, 2, 2)}),
    ("padding all at the end", lambda a: {"pads": (0, 0, 6, 2)}),
]


def layer_of(model: bittrue.Model, session: bittrue.Session, name: str) -> Segment:
    own = numerics.find(name)
    graph, _ = rewritten_graph(model.graph, own)
    shown = [session.plan.tensors[i].name for i in session.plan.results]
    parts = segments(graph, session.plan, own, shown)
    return next(p for p in parts if any(step.accumulator is not None for step in p.own_plan.steps))


@pytest.mark.in_turns(5)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("name", "edit"), EDITS, ids=[name for name, _ in EDITS])
def test_edits_are_named(form: str, name: str, edit: Callable[[Layer], dict[str, Any]]) -> None:
    right, wrong = base(), base()
    wrong |= edit(right)
    (model, own), (edited, _) = FORMATS[form](right), FORMATS[form](wrong)
    shapes = {"data": (2, 8, 7, 4)} if form == "caffe2" else {}
    part = layer_of(model, model.prepare(own, shapes=shapes), own)
    other = edited.prepare(own, shapes=shapes)
    port = other.inputs[0]
    quantized = np.random.default_rng(1).integers(-128, 128, port.shape)
    feed = quantized * np.float32(0.05) if form == "caffe2" else quantized
    recorded = other.trace(feed.astype(port.dtype))
    values = [{tensor: recorded[tensor] for tensor in part.shapes}]
    found = verdict(part, values, [recorded[part.name]])
    assert found.exact, found.text
    assert [cause.name for cause in found.causes] == [name], found.text

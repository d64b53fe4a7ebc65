"""The same faults in the same layers, written in other formats: each has the name that it has in a .tflite file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from support import faulty_device as device
from support import layer_formats as formats
from support.layer_faults import LAYERS, layer_of
from support.onnx_models import build
from support.verdicts import random_inputs, segment_of, verdict

Device = Callable[[device.Layer, np.ndarray], np.ndarray]

FORMATS = {"qoperator": formats.qoperator, "qdq": formats.qdq}
# An activation is the end of the type there, or an operator of its own; weights have another order of axes.
FAULTS = [fault for fault in LAYERS if "activation" not in fault[2] and "OHWI" not in fault[0]]


def check(form: str, name: str, layer: device.Layer, source: tuple[int, ...], faulty: Device) -> None:
    part, ports = segment_of(FORMATS[form](layer, source), "onnxruntime")
    values = random_inputs(ports, 1)
    x = values[0]["x"] if len(source) == 2 else np.moveaxis(values[0]["x"], 1, -1)
    np.testing.assert_array_equal(formats.first(device.run(layer, x)), part.run(values[0]), err_msg="without a fault")
    found = verdict(part, values, [formats.first(faulty(layer, x))])
    assert found.exact, found.text
    assert [cause.name for cause in found.causes] == [name], found.text
    assert not found.unexplained


@pytest.mark.in_turns(6)
@pytest.mark.parametrize(
    ("name", "kind", "fields", "faulty"),
    FAULTS,
    ids=[f"{kind}-{name}-{i}" for i, (name, kind, *_) in enumerate(FAULTS)],
)
@pytest.mark.parametrize("form", FORMATS)
def test_layers(form: str, name: str, kind: str, fields: dict[str, Any], faulty: Device) -> None:
    check(form, name, *layer_of(kind, real=True, **dict(fields)), faulty)


@pytest.mark.parametrize("form", FORMATS)
def test_layouts_of_weights_have_the_names_of_the_file(form: str) -> None:
    def faulty(layer: device.Layer, x: np.ndarray) -> np.ndarray:
        o, h, w, i = layer.weights.shape
        stored = np.ascontiguousarray(layer.weights.transpose(0, 3, 1, 2))
        return device.run(replace(layer, weights=stored.reshape(h, w, i, o).transpose(3, 0, 1, 2)), x)

    check(form, "weights OIHW read as HWIO", *layer_of("conv", real=True), faulty)


@pytest.mark.parametrize(
    ("name", "fill"), [("padding with quantized value 0", 0), ("padding with quantized value 127", 127)]
)
def test_padding_of_other_formats(name: str, fill: int) -> None:
    amounts = np.array([0, 0, 1, 2, 0, 0, 2, 1])
    value = np.int8(-7)
    nodes = [helper.make_node("Pad", ["x", "amounts", "value"], ["y"])]
    constants = {"amounts": amounts, "value": np.asarray(value)}
    content, _ = build(nodes, {"x": np.zeros((1, 2, 4, 5), np.int8)}, {"y": TensorProto.INT8}, constants)
    part, ports = segment_of(content, "onnxruntime")
    values = random_inputs(ports, 1)
    pairs = [(0, 0), (0, 0), (1, 2), (2, 1)]
    right, wrong = (np.pad(values[0]["x"], pairs, constant_values=code) for code in (value, fill))
    np.testing.assert_array_equal(part.run(values[0]), right)
    found = verdict(part, values, [wrong])
    assert found.exact, found.text
    assert name in [cause.name for cause in found.causes], found.text


def test_what_a_comparison_is_mistaken_for() -> None:
    node = helper.make_node("Less", ["a", "b"], ["y"])
    zeros = np.zeros((4, 9), np.int32)
    part, ports = segment_of(build([node], {"a": zeros, "b": zeros}, {"y": TensorProto.BOOL}, {})[0], "onnxruntime")
    rng = np.random.default_rng(2)
    values = [{port.name: rng.integers(-3, 4, port.shape).astype(port.dtype) for port in ports}]
    found = verdict(part, values, [values[0]["a"] == values[0]["b"]])
    assert found.exact, found.text
    assert "equal instead of less" in [cause.name for cause in found.causes], found.text

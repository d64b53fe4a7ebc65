"""The same faults in the same layers, written in other formats: each has the name that it has in a .tflite file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import faulty_device as device
from support import layer_formats as formats
from support.layer_faults import LAYERS, layer_of
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

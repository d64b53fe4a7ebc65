"""The same faults in the same layers, written in other formats: each has the name that it has in a .tflite file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support import faulty_device as device
from support import layer_formats as formats
from support.layer_faults import LAYERS, layer_of
from support.verdicts import random_inputs, segment_of, verdict

FORMATS = {"qoperator": formats.qoperator, "qdq": formats.qdq}
# Formats that have fused activations at all.
ACTIVATIONS = {"relu": ("qdq",), "relu6": ()}


@pytest.mark.parametrize(
    ("name", "kind", "fields", "faulty"),
    LAYERS,
    ids=[f"{kind}-{name}-{i}" for i, (name, kind, *_) in enumerate(LAYERS)],
)
@pytest.mark.parametrize("form", FORMATS)
def test_layers(form: str, name: str, kind: str, fields: dict[str, Any], faulty: Callable[..., np.ndarray]) -> None:
    layer, source = layer_of(kind, real=True, **dict(fields))
    if form not in ACTIVATIONS.get(layer.activation, FORMATS):
        pytest.skip(f"{form} has no {layer.activation}")
    part, ports = segment_of(FORMATS[form](layer, source), "onnxruntime")
    values = random_inputs(ports, 1)
    x = values[0]["x"]
    x = x if kind == "dense" else np.moveaxis(x, 1, -1)
    np.testing.assert_array_equal(formats.first(device.run(layer, x)), part.run(values[0]), err_msg="without a fault")
    found = verdict(part, values, [formats.first(faulty(layer, x))])
    print(name, "|", found.text)
    assert found.exact, found.text
    assert name in [cause.name for cause in found.causes], found.text
    assert not found.unexplained

"""OpenVINO on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .base import Feed, Opened, Peer, fit, matches, pair


def _open_openvino(module: Any, path: Path, feeds: Sequence[Feed], threads: int) -> Opened:
    core = module.Core()
    model = core.read_model(str(path))
    names = [[*port.get_names()] for port in model.inputs]
    order = pair([f.name for f in feeds], names, "inputs")
    shapes = [_extents(port.get_partial_shape()) for port in model.inputs]
    if any(not matches(f.value.shape, shapes[i]) for f, i in zip(feeds, order, strict=True)) and path.suffix != ".onnx":
        model.reshape({model.inputs[i]: list(f.value.shape) for f, i in zip(feeds, order, strict=True)})
    options = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads)}
    compiled = core.compile_model(model, "CPU", options)
    ports = [compiled.inputs[i] for i in order]
    values, remarks = fit(feeds, [(p.get_element_type().to_dtype(), _extents(p.get_partial_shape())) for p in ports])
    inputs = dict(zip(order, values, strict=True))
    outputs = list(compiled.outputs)

    def run() -> list[np.ndarray]:
        results = compiled(inputs)
        return [results[port] for port in outputs]

    return Opened(run, tuple(next(iter(sorted(port.get_names())), "") for port in outputs), remarks)


def _extents(shape: Any) -> tuple[int | None, ...]:
    """Extents of an OpenVINO shape; None where they are open."""
    return tuple(None if extent.is_dynamic else extent.get_length() for extent in shape)


OPENVINO = Peer("openvino", "OpenVINO", "openvino", "openvino", ("tflite", "onnx"), _open_openvino)

"""ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .base import Feed, Opened, Peer, fit, pair


def _open_onnxruntime(module: Any, path: Path, feeds: Sequence[Feed], threads: int) -> Opened:
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Graphs of s8 activations are fused as those of u8 are: the setting whose bits numerics `onnxruntime` reproduces.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = module.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ports = session.get_inputs()
    order = pair([f.name for f in feeds], [port.name for port in ports], "inputs")
    wanted = []
    for port in (ports[i] for i in order):
        kind = port.type.removeprefix("tensor(").removesuffix(")")
        shape = tuple(extent if isinstance(extent, int) else None for extent in port.shape)
        wanted.append((np.dtype({"float": "float32", "double": "float64"}.get(kind, kind)), shape))
    values, remarks = fit(feeds, wanted)
    inputs = {ports[i].name: value for i, value in zip(order, values, strict=True)}

    def run() -> list[np.ndarray]:
        return list(session.run(None, inputs))

    return Opened(run, tuple(port.name for port in session.get_outputs()), remarks)


ONNXRUNTIME = Peer("onnxruntime", "ONNX Runtime", "onnxruntime", "onnxruntime", ("onnx",), _open_onnxruntime)

"""LiteRT: its reference kernels, and its default kernels with the XNNPACK delegate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .base import Feed, Opened, Peer, fit, pair


def _open_litert(resolver: str) -> Callable[[Any, Path, Sequence[Feed], int], Opened]:
    def prepare(module: Any, path: Path, feeds: Sequence[Feed], threads: int) -> Opened:
        interpreter = module.Interpreter(
            model_path=str(path),
            experimental_op_resolver_type=getattr(module.OpResolverType, resolver),
            num_threads=threads,
        )
        details = interpreter.get_input_details()
        order = pair([f.name for f in feeds], [d["name"] for d in details], "inputs")
        for feed, position in zip(feeds, order, strict=True):
            if tuple(details[position]["shape"]) != feed.value.shape:
                interpreter.resize_tensor_input(details[position]["index"], list(feed.value.shape))
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        values, remarks = fit(feeds, [(details[i]["dtype"], tuple(details[i]["shape"])) for i in order])
        indices = [details[i]["index"] for i in order]
        outputs = interpreter.get_output_details()

        def run() -> list[np.ndarray]:
            for index, value in zip(indices, values, strict=True):
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            return [interpreter.get_tensor(output["index"]) for output in outputs]

        return Opened(run, tuple(output["name"] for output in outputs), remarks)

    return prepare


LITERT = Peer(
    "litert",
    "LiteRT reference kernels",
    "ai-edge-litert",
    "ai_edge_litert.interpreter",
    ("tflite",),
    _open_litert("BUILTIN_REF"),
)
XNNPACK = Peer(
    "xnnpack",
    "LiteRT with XNNPACK",
    "ai-edge-litert",
    "ai_edge_litert.interpreter",
    ("tflite",),
    _open_litert("AUTO"),
)

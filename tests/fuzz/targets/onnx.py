"""ONNX models: protobuf messages, changed through their schema and as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mutate_onnx import change as change_message
from mutate_onnx import spoil
from oracle import tried_model

NUMERICS = (None, None, "onnx")


def seeds(folder: Path) -> Iterable[bytes]:
    """Models of the onnx package's own tests until every operator is there, one with a function, quantized ones."""
    import numpy as np
    from onnx import load_from_string
    from test_mutated_onnx import official, prepared, several_nodes

    from support.float_models import MODELS, forms, quantize

    yield several_nodes()
    for name, form in (("dense", "dynamic_s8"), ("dense", "pairs_u16"), ("branches", "operators_s8s8_per_channel")):
        yield quantize(MODELS[name](np.random.default_rng(0)), forms()[form], folder)
    met: set[str] = set()
    for content in sorted(official(), key=len):
        operators = {node.op_type for node in load_from_string(content).graph.node}
        if operators - met and len(content) < 8000 and prepared(content):
            met |= operators
            yield content


def change(content: bytes, seed: int) -> bytes:
    """Fields through the schema; one time in four bytes."""
    return change_message(content, seed) if seed % 4 else spoil(content, seed)


def attempt(content: bytes, folder: Path) -> str:
    return tried_model(content, content, numerics=NUMERICS)

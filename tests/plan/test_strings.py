"""Constants of strings, such as labels: nothing computes with them, and they are in nobody's way."""

from __future__ import annotations

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import bittrue
from support.build import T, single


def with_labels(output: bool) -> bytes:
    """An ADD, and a constant of three strings that nobody reads, or that is an output, too."""
    a, b, y = (T("s8", [2], 0.5, name=name) for name in "aby")
    model = schema.ModelT.InitFromPackedBuf(single("ADD", ("AddOptions", {}), [a, b], [y], version=2))
    buffer, labels = schema.BufferT(), schema.TensorT()
    buffer.data = np.frombuffer(b"\x03\0\0\0 fourteen bytes", np.uint8)
    model.buffers.append(buffer)
    labels.name, labels.type, labels.shape = "labels", schema.TensorType.STRING, [3]
    labels.buffer = len(model.buffers) - 1
    graph = model.subgraphs[0]
    graph.tensors.append(labels)
    if output:
        graph.outputs = [*graph.outputs, len(graph.tensors) - 1]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.parametrize("executor", ["reference", "native"])
def test_labels_that_nobody_reads(executor: str) -> None:
    session = bittrue.load(with_labels(False)).prepare(executor=executor)
    assert session.run(np.array([1, 2], np.int8), np.array([3, 4], np.int8))["y"].tolist() == [4, 6]


def test_labels_as_an_output_are_a_typed_error() -> None:
    model = bittrue.load(with_labels(True))
    with pytest.raises(bittrue.UnsupportedError, match="a constant of strings cannot be an output"):
        model.prepare(executor="reference")
    assert model.prepare(executor="reference", outputs=["y"]).outputs[0].name == "y"
    assert not bittrue.check_model(with_labels(True)).failures

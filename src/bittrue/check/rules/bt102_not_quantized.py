"""Models without quantized operators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...graph import Graph
from ..finding import Finding
from ..rule import Rule, Subject

_ONNX = re.compile(r"Quantize|^QLinear|^Q[A-Z]|Integer")


def find(subject: Subject) -> Iterator[Finding]:
    """One finding when there is nothing for rules about quantization to look at."""
    if any(_is_quantized(subject.format, graph) for graph in subject.graphs):
        return
    nodes = sum(len(graph.nodes) for graph in subject.graphs)
    yield RULE.finding(
        f"none of the {nodes} operators is quantized; rules about quantization have nothing to look at",
        expected="quantized operators",
        found="none",
        advice="convert the model with full integer quantization, if it was meant to be quantized",
        numbers={"nodes": nodes},
    )


def _is_quantized(file_format: str, graph: Graph) -> bool:
    if file_format == "onnx":
        return any(_ONNX.search(node.source.rpartition(":")[2]) for node in graph.nodes)
    used = {index for node in graph.nodes for index in (*node.inputs, *node.outputs) if index is not None}
    tensors = (graph.tensors[index] for index in used)
    return any(tensor.quantization is not None and tensor.type.is_integer for tensor in tensors)


RULE = Rule(
    code="BT102",
    name="not-quantized",
    severity="note",
    what="Something in the model is quantized: integer tensors with scales, or QuantizeLinear and its kin.",
    why="A check that finds nothing in a real-valued model says nothing about it.",
    enforced="Nobody: runtimes run such models in floating point.",
    fix="Convert with full integer quantization; see whether the converter was given representative data.",
    source="Definition of quantized models in the formats (read)",
    find=find,
    formats=("onnx", "tflite"),
)

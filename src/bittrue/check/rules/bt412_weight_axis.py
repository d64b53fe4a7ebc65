"""BT412: weights quantized along another axis than that of the output channels."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...graph import Graph, Node
from ..finding import Finding
from ..linear import dequantizes
from ..onnx_operands import known_shape, shown, writers
from ..rule import Rule, Subject


def _channels(node: Node, graph: Graph, rank: int) -> int | None:
    """The axis of weights that output channels lie on; None where it is not a matter of one."""
    if node.source == "Conv":
        return 0
    if node.source == "Gemm":
        return 0 if node.attributes.get("transpose_b") else 1
    return rank - 1 if rank > 1 else None


def find(subject: Subject) -> Iterator[Finding]:
    """Each Conv, Gemm and MatMul whose dequantized weights have several scales along another axis."""
    for graph in subject.graphs:
        written = writers(graph)
        for node in graph.nodes:
            if node.source not in ("Conv", "Gemm", "MatMul") or len(node.inputs) < 2 or node.inputs[1] is None:
                continue
            source = written.get(node.inputs[1])
            if source is None or not dequantizes(source) or source.attributes.get("block_size"):
                continue
            if len(source.inputs) < 2 or source.inputs[0] is None or source.inputs[1] is None:
                continue
            weights = graph.tensors[source.inputs[0]]
            shape, scales = (known_shape(subject, graph, i) for i in source.inputs[:2] if i is not None)
            axis = source.attributes.get("axis", 1)
            if shape is None or scales is None or not isinstance(axis, int) or math.prod(scales) == 1:
                continue
            wanted = _channels(node, graph, len(shape))
            if wanted is None or not -len(shape) <= axis < len(shape) or axis % len(shape) == wanted:
                continue
            alike = shape[axis] == shape[wanted]
            yield RULE.finding(
                f"weights '{weights.name}' {shown(shape)} of {node.source} have scales along axis {axis % len(shape)},"
                f" output channels lie on axis {wanted}"
                + (
                    ": both are as long, and ONNX Runtime silently takes the scales for those of output channels"
                    if alike
                    else ": an integer layer cannot rescale products of different scales in one sum"
                ),
                graph=graph,
                node=node,
                tensor=weights,
                severity="" if alike else "warning",
                expected=wanted,
                found=axis,
                advice=f"quantize the weights along axis {wanted}, or with one scale",
                numbers={"axis": axis, "output_axis": wanted},
            )


RULE = Rule(
    code="BT412",
    name="weight-axis",
    severity="error",
    what="Weights that are dequantized for Conv, Gemm or MatMul with several scales have them along the axis of the"
    " output channels: axis 0 for Conv, axis 1 for Gemm (0 with transB), the last one for MatMul. A warning where the"
    " two axes differ in length.",
    why="A sum of products can be rescaled once, at its end, so all its products must have one scale. Scales along the"
    " axis that is summed over are fine node by node, and wrong in an integer layer.",
    enforced="ONNX Runtime 1.31 fuses Conv, Gemm and MatMul without looking at the axis. Where both axes have the same"
    " length (square matrices, 3 channels to 3) the optimised model gives other results than the unoptimised one,"
    " without a word (run: differences of up to the whole range). Where the lengths differ, the fused operator fails"
    " when it runs (run).",
    fix="Set the quantizer's axis; the default of DequantizeLinear, 1, is wrong for Conv.",
    source="ONNX Runtime 1.31.1 (run: tests/check/test_onnx_rules.py)",
    find=find,
    formats=("onnx",),
)

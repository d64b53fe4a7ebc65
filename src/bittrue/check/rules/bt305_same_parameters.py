"""Operators whose inputs and outputs must all have the same scale and zero point."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node, Tensor
from ..finding import Finding
from ..operands import parameters, scheme, tensor_at
from ..rule import Rule, Subject
from ..specification import SOURCE, SPECIFICATION

_NAMES = tuple(name for name, operator in SPECIFICATION.items() if operator.same)


def find(subject: Subject) -> Iterator[Finding]:
    """Each input whose parameters are not the output's."""
    for graph, node in subject.nodes(*_NAMES):
        kind, output = scheme(graph, node), tensor_at(graph, node, "output", 0)
        # uint8 concatenations of LiteRT rescale their inputs, as their scheme allows.
        if output is None or kind not in ("s8", "u8", "s16") or (kind == "u8" and node.source == "CONCATENATION"):
            continue
        for position, index in enumerate(node.inputs):
            tensor = None if index is None else graph.tensors[index]
            if tensor is not None and tensor.dtype == kind == output.dtype and not _same(tensor, output):
                yield _finding(graph, node, position, tensor, output)


def _same(one: Tensor, other: Tensor) -> bool:
    if one.quantization is None or other.quantization is None:
        return one.quantization is other.quantization
    return one.quantization.same_as(other.quantization)


def _finding(graph: Graph, node: Node, position: int, tensor: Tensor, output: Tensor) -> Finding:
    int8 = tensor.dtype == "s8"
    if SPECIFICATION[node.source].same_enforced and int8:
        verdict = "LiteRT refuses it"
    else:
        verdict = "LiteRT passes the integers on as they are, so that they mean other real numbers than before"
    return RULE.finding(
        f"input {position} of {node.source} has {parameters(tensor)}, its output has {parameters(output)}, expected "
        f"the same; {verdict}",
        graph=graph,
        node=node,
        tensor=tensor,
        severity="error" if int8 else "warning",
        place=f"input {position}",
        expected=parameters(output),
        found=parameters(tensor),
        advice="give the output the input's scale and zero point"
        if len([i for i in node.inputs if i is not None and graph.tensors[i].dtype == tensor.dtype]) == 1
        else "insert a QUANTIZE that takes the input to the output's scale and zero point",
    )


RULE = Rule(
    code="BT305",
    name="same-parameters",
    severity="error",
    what="All int8 inputs and outputs of these operators have the same scale and zero point: "
    + ", ".join(_NAMES)
    + ". For uint8 and int16 tensors a finding is a warning: the specification does not speak of them, and uint8 "
    "CONCATENATION may differ.",
    why="These operators move, choose or average integers and never rescale them.",
    enforced="int8 CONCATENATION, BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND are refused by LiteRT, PADV2 when its "
    "pad value differs. Of all others the bytes are copied, and the output's parameters are ignored "
    "without a word; AVERAGE_POOL_2D reads the output's for a fused activation alone, PAD fills with the "
    "output's zero point (run). XNNPACK fails on PADs that differ (run).",
    fix="Give the output the input's parameters, or insert a QUANTIZE in front of the input that differs; "
    "converters do both by themselves.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

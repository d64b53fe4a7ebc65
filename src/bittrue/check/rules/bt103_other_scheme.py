"""Quantized operators that the 8-bit specification does not speak of: uint8, int16 activations, hybrid layers."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node
from ..finding import Finding
from ..operands import scheme
from ..rule import Rule, Subject
from ..specification import SOURCE, SPECIFICATION

_TITLES = {
    "u8": (
        "uint8 (per-tensor with any zero point, as before 2019)",
        "the scale of biases, parameters that must be the same and fixed outputs (shifted by 128) were looked at, as "
        "warnings",
    ),
    "s16": (
        "int16 activations",
        "weights, zero points, biases and parameters that must be the same were looked at, as warnings",
    ),
    "hybrid": (
        "quantized weights on real activations (dynamic range)",
        "the dimension of the scales and the shape of biases were looked at",
    ),
}


def find(subject: Subject) -> Iterator[Finding]:
    """One finding per scheme, with the number of its nodes and the first one."""
    found: dict[str, list[tuple[Graph, Node]]] = {}
    for graph, node in subject.nodes(*SPECIFICATION):
        found.setdefault(scheme(graph, node), []).append((graph, node))
    for name, (title, looked) in _TITLES.items():
        if name in found:
            graph, node = found[name][0]
            yield RULE.finding(
                f"{len(found[name])} operators work with {title}, which the 8-bit specification does not cover; "
                f"{looked}",
                graph=graph,
                node=node,
                expected="int8",
                found=name,
                advice="nothing, if the target runs it; else convert again with int8 activations",
                numbers={"nodes": len(found[name])},
            )


RULE = Rule(
    code="BT103",
    name="other-scheme",
    severity="note",
    what="The specification is about int8 activations and weights. Models in other schemes are checked for what still "
    "makes sense of it, and its restrictions are warnings there.",
    why="Without errors such a model is not one that obeys the specification: it is one that the specification "
    "does not speak of.",
    enforced="LiteRT has kernels for all three; hardware often for int8 only.",
    fix="Convert again with int8 activations and weights, if the target needs them.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

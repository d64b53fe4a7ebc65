"""int8 operators that are not among the 38 of the specification."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node
from ..finding import Finding
from ..rule import Rule, Subject
from ..specification import SOURCE, SPECIFICATION


def find(subject: Subject) -> Iterator[Finding]:
    """One finding per operator, with the number of its nodes and the first one."""
    found: dict[str, list[tuple[Graph, Node]]] = {}
    for graph, node in subject.nodes():
        tensors = [graph.tensors[index] for index in (*node.inputs, *node.outputs) if index is not None]
        int8 = any(tensor.dtype == "s8" and tensor.quantization is not None for tensor in tensors)
        if int8 and node.source not in SPECIFICATION and node.source != "DEQUANTIZE":
            found.setdefault(node.source, []).append((graph, node))
    for source, nodes in found.items():
        graph, node = nodes[0]
        custom = node.operator == "custom"
        count = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
        yield RULE.finding(
            f"{source} works on int8 ({count}) and is no operator of the specification"
            + ("; a custom operator is defined by the program that registers it" if custom else ""),
            graph=graph,
            node=node,
            severity="warning" if custom else "",
            found=source,
            advice="ask whether the target has it, and with which arithmetic; `bittrue numerics show litert` has "
            "LiteRT's",
            numbers={"nodes": len(nodes)},
        )


RULE = Rule(
    code="BT104",
    name="outside-specification",
    severity="note",
    what="int8 operators are among the 38 of the specification.",
    why="For others there is no published restriction to obey: types, scales and rounding are what a runtime's kernel "
    "does, and another implementation may do something else.",
    enforced="LiteRT has int8 kernels for many more (LEAKY_RELU, PRELU, HARD_SWISH, GELU, TRANSPOSE_CONV, "
    "BATCH_MATMUL, recurrent ones); what they check is the matter of the BT5 rules.",
    fix="Nothing, if the target has the operator; else build the network without it.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

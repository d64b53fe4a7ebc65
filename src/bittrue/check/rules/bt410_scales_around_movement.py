"""BT410: data movement between pairs with different parameters."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..linear import dequantizes, quantizes
from ..onnx_operands import parameters_of, readers, writers
from ..rule import Rule, Subject

_MOVERS = (
    "DepthToSpace Expand Flatten Gather GatherElements MaxPool Reshape Resize Slice SpaceToDepth Split Squeeze Tile"
    " Transpose Unsqueeze"
).split()


def find(subject: Subject) -> Iterator[Finding]:
    """Each mover between a DequantizeLinear and a QuantizeLinear of other parameters."""
    for graph in subject.graphs:
        written, read = writers(graph), readers(graph)
        for node in graph.nodes:
            if node.source not in _MOVERS or not node.inputs or node.inputs[0] is None:
                continue
            before = written.get(node.inputs[0])
            if before is None or not dequantizes(before):
                continue
            first = next((found.single for found in parameters_of(graph, before)), None)
            for index in node.outputs:
                for reader in read.get(index, ()):
                    second = next((found.single for found in parameters_of(graph, reader)), None)
                    if not quantizes(reader) or first is None or second is None or first == second:
                        continue
                    yield RULE.finding(
                        f"{node.source} stands between a dequantization with scale {first[0]:.9g}, zero point"
                        f" {first[1]}, and a quantization with scale {second[0]:.9g}, zero point {second[1]}: it stays"
                        " in real numbers and the quantized values are rounded again",
                        graph=graph,
                        node=node,
                        tensor=graph.tensors[index],
                        expected=f"scale {first[0]!r}, zero point {first[1]}",
                        found=f"scale {second[0]!r}, zero point {second[1]}",
                        advice="give both pairs the same scale and zero point",
                    )


RULE = Rule(
    code="BT410",
    name="scales-around-movement",
    severity="note",
    what="Operators that only move or choose values stand between a DequantizeLinear and a QuantizeLinear with the"
    " same scale and zero point: " + ", ".join(_MOVERS) + ".",
    why="With equal parameters the pair around the operator disappears and quantized values are moved as "
    "they are. With different"
    " ones every quantized value is dequantized, moved in binary32, and quantized again, which costs time and rounds "
    "once more.",
    enforced="ONNX Runtime 1.31 removes the pair only when both are equal (run: the optimised graph of a Reshape keeps"
    " both if they are not). The LiteRT specification forbids it outright (BT305).",
    fix="Let quantizers give the output of these operators the input's parameters.",
    source="ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)

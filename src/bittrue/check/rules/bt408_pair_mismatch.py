"""BT408: quantized values that are dequantized with other parameters than they were quantized with."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..onnx_operands import parameters_of, readers
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Each reader of quantized values whose constant scale or zero point is not that of their writer."""
    for graph in subject.graphs:
        read = readers(graph)
        for node in graph.nodes:
            written = next((found for found in parameters_of(graph, node) if found.is_output), None)
            if written is None or written.single is None:
                continue
            for reader in read.get(node.outputs[0], ()):
                for found in parameters_of(graph, reader):
                    if found.is_output or found.quantized is not written.quantized or found.single is None:
                        continue
                    if found.single != written.single:
                        yield RULE.finding(
                            f"'{written.quantized.name}' is written with scale {written.single[0]:.9g}, zero point"
                            f" {written.single[1]}, and read with scale {found.single[0]:.9g}, zero point"
                            f" {found.single[1]}",
                            graph=graph,
                            node=reader,
                            tensor=written.quantized,
                            expected=f"scale {written.single[0]!r}, zero point {written.single[1]}",
                            found=f"scale {found.single[0]!r}, zero point {found.single[1]}",
                            advice=f"give {reader.source} the parameters of {node.source}; use a Mul where scaling is"
                            " meant",
                        )


RULE = Rule(
    code="BT408",
    name="pair-mismatch",
    severity="warning",
    what="What reads quantized values (DequantizeLinear, QLinear operators) has the scale and zero point of "
    "what wrote them"
    " (QuantizeLinear, QLinear operators), where both are constants for the whole tensor.",
    why="Every value is multiplied by the ratio of the scales and moved by the zero points. It is legal and looks like"
    " a bug: mostly two initializers were exchanged, or one half of a pair was calibrated again.",
    enforced="Nobody checks it. ONNX Runtime 1.31 runs such pairs as they are (run), and fuses each half with its"
    " neighbours.",
    fix="Share one initializer for scale and zero point between both halves of a pair.",
    source="ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)

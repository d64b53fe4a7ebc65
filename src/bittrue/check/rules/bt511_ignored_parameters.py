"""BT511: operators that compute on quantized values as if they were the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node, Tensor
from ..finding import Finding
from ..rule import Rule, Subject

_ORDERED = ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_NARROW = ("s8", "u8", "s16")


def _plain(tensor: Tensor) -> bool:
    """Quantized values are the numbers themselves."""
    known = tensor.quantization
    return known is None or (not known.per_axis and known.scales[0] == 1 and known.zero_points[0] == 0)


def _problem(graph: Graph, node: Node) -> tuple[Tensor, str, str] | None:
    tensors = [graph.tensors[i] for i in node.inputs if i is not None]
    if not tensors or tensors[0].dtype not in _NARROW or not node.outputs:
        return None
    first, output = tensors[0], graph.tensors[node.outputs[0]]
    known = first.quantization
    if node.source == "CAST" and output.dtype != first.dtype and not _plain(first):
        return (
            first,
            f"CAST converts the quantized values of '{first.name}' ({known}), not the numbers",
            "use DEQUANTIZE",
        )
    if node.source == "NEG" and known is not None and not known.per_axis:
        other = output.quantization
        if known.zero_points[0] != 0 or (other is not None and not known.same_as(other)):
            return (
                first,
                f"NEG negates the quantized values of '{first.name}' ({known}) and ignores zero points; -128 stays "
                "-128",
                "use MUL by -1 or SUB from 0",
            )
    if node.source in _ORDERED and first.dtype == "s16" and len(tensors) == 2:
        second = tensors[1].quantization
        if known is not None and second is not None and not known.same_as(second):
            return (
                first,
                f"{node.source} compares 16-bit values as they are: {known} against {second}",
                "requantize one operand to the other's scale",
            )
    return None


def find(subject: Subject) -> Iterator[Finding]:
    """Each node of these kinds whose parameters matter."""
    for graph, node in subject.nodes("CAST", "NEG", *_ORDERED):
        problem = _problem(graph, node)
        if problem is not None:
            tensor, message, advice = problem
            yield RULE.finding(
                message,
                graph=graph,
                node=node,
                tensor=tensor,
                severity="warning" if node.source == "CAST" else "",
                found=str(tensor.quantization),
                advice=advice,
            )


RULE = Rule(
    code="BT511",
    name="ignored-parameters",
    severity="error",
    what="No NEG of quantized values with a zero point or with another output scale, no comparison by order "
    "of 16-bit values with"
    " different scales, and (a warning) no CAST from quantized values that carry a scale.",
    why="These kernels take quantized values for real ones. NEG of q stores -q, which means "
    "something else as soon as there is"
    " a zero point; LESS of 16-bit tensors is right only when both have one scale; CAST of int8 gives q, not scale *"
    " (q - zp).",
    enforced="Nobody (LiteRT 2.3.0, run: EQUAL and NOT_EQUAL of 16-bit values do rescale, the ordered comparisons do"
    " not).",
    fix="DEQUANTIZE instead of CAST, MUL instead of NEG, QUANTIZE in front of the comparison.",
    source="LiteRT fact sheet 2.2, 2.3 (run)",
    find=find,
    formats=("tflite",),
)

"""BT407: attributes that change nothing, or that the runtime does not read."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import data_type
from ..finding import Finding
from ..linear import linear_nodes, quantizes
from ..rule import Rule, Subject

_PRECISIONS = ("f32", "f16", "bf16")


def find(subject: Subject) -> Iterator[Finding]:
    """Each `saturate` of integers and each `precision` that is not the type of the scale."""
    for one in linear_nodes(subject):
        if not quantizes(one.node):
            continue
        output = one.graph.tensors[one.node.outputs[0]]
        if one.node.attributes.get("saturate", 1) == 0 and data_type(output.dtype).is_integer:
            yield RULE.finding(
                f"saturate = 0 has no effect on {output.dtype}: integers always saturate",
                graph=one.graph,
                node=one.node,
                tensor=output,
                severity="note",
                expected=1,
                found=0,
                advice="leave the attribute out",
            )
        precision = one.node.attributes.get("precision")
        if precision in _PRECISIONS and one.scale.dtype in _PRECISIONS and precision != one.scale.dtype:
            yield RULE.finding(
                f"the division is asked for in {precision}, the scale is {one.scale.dtype}: ONNX Runtime divides in"
                " binary32 whatever is asked for, other runtimes do as they are told",
                graph=one.graph,
                node=one.node,
                tensor=one.scale,
                expected=one.scale.dtype,
                found=str(precision),
                advice="give the scale the type that the division is meant to have",
            )


RULE = Rule(
    code="BT407",
    name="attribute-without-effect",
    severity="warning",
    what="QuantizeLinear to integers has no saturate = 0 (a note), and `precision` (from version 23 on) is the type of"
    " the scale.",
    why="`saturate` is about float8. `precision` decides in which type x / scale is rounded, and with it "
    "which quantized values numbers next to a tie get; a runtime that does not read it gives other values than one "
    "that does.",
    enforced="onnx.checker takes both. ONNX Runtime 1.31 reads neither: it divides in binary32 (run), and integers"
    " saturate.",
    fix="Leave the attributes out; convert the scale instead.",
    source="ONNX operators QuantizeLinear 19 to 25 (read); ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)

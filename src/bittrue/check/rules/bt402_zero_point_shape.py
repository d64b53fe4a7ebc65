"""BT402: zero points of another shape than their scales."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..linear import linear_nodes
from ..onnx_operands import shown
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Each zero point whose shape is not the scale's."""
    for one in linear_nodes(subject):
        scale, point = one.scale_shape, one.zero_point_shape
        if one.zero_point is None or scale is None or point is None or scale == point:
            continue
        # Quantizers write a scalar beside a vector of one element, and runtimes take it.
        if one.per_tensor and point in ((), (1,)):
            continue
        yield RULE.finding(
            f"zero point '{one.zero_point.name}' has shape {shown(point)}, its scale '{one.scale.name}' has"
            f" {shown(scale)}",
            graph=one.graph,
            node=one.node,
            tensor=one.zero_point,
            expected=shown(scale),
            found=shown(point),
            advice="give the zero point the shape of the scale; repeat a single one",
        )


RULE = Rule(
    code="BT402",
    name="zero-point-shape",
    severity="error",
    what="The zero point of QuantizeLinear and DequantizeLinear has the shape of its scale. A scalar beside a vector"
    " of one element is let pass: onnxruntime.quantization writes it, and runtimes take it.",
    why="One zero point for several scales is not broadcast, although it looks as if it could be; and several zero"
    " points for one scale are no granularity that the operator has.",
    enforced="onnx.checker (1.23, full_check=True) does not look. ONNX Runtime 1.31 takes a scalar beside a vector of"
    " one element, and for everything else loads the model and fails when it runs. bittrue refuses the plan"
    " (BT-QUANT-AXIS).",
    fix="Write the zero point out with the scale's shape, or leave it out when it is 0 (then the output type of"
    " QuantizeLinear is uint8, or that of output_dtype from version 21 on).",
    source="ONNX operators QuantizeLinear 10 to 25 (read); onnx 1.23.2, ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)

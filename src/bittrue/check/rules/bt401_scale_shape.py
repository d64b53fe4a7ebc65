"""BT401: scales that fit neither the tensor nor an axis of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..linear import linear_nodes
from ..onnx_operands import shown
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Each scale without block_size that is neither one value nor one per slice of the axis."""
    for one in linear_nodes(subject):
        data, scale = one.data_shape, one.scale_shape
        if one.block_size or data is None or scale is None or one.per_tensor or not one.axis_in_range:
            continue
        wanted = data[one.axis] if data else 1
        if scale == (wanted,):
            continue
        fitting = [axis for axis, size in enumerate(data) if scale == (size,)]
        if fitting:
            advice = f"the scale fits axis {fitting[0]}: set the attribute axis to it"
        elif len(scale) == len(data) and len(scale) > 1:
            advice = "a scale of the data's rank is a blocked one: give block_size (operator set 21), or reshape it"
        else:
            advice = f"give one scale, or {wanted} of them"
        yield RULE.finding(
            f"scale '{one.scale.name}' has shape {shown(scale)}, expected a scalar or [{wanted}], one value per slice"
            f" of axis {one.axis} of '{one.data.name}' {shown(data)}",
            graph=one.graph,
            node=one.node,
            tensor=one.scale,
            expected=f"a scalar or [{wanted}]",
            found=shown(scale),
            advice=advice,
        )


RULE = Rule(
    code="BT401",
    name="scale-shape",
    severity="error",
    what="Without block_size the scale of QuantizeLinear and DequantizeLinear is a scalar (one element of rank 1 is"
    " taken, too), or a vector with one value per slice of `axis`, whose default is 1.",
    why="The number of scales says what is quantized along which axis. The most common slip is a scale per output"
    " channel of weights [M, C, ...] without axis = 0: the default axis is 1.",
    enforced="onnx.checker (1.23, full_check=True) does not look. ONNX Runtime 1.31 loads the model and fails when it"
    " runs: 'scale must be 1D tensor with size'. bittrue refuses the plan (BT-QUANT-AXIS).",
    fix="Set `axis`, or give as many scales as the axis has slices.",
    source="ONNX operators QuantizeLinear 10 to 25, DequantizeLinear 10 to 25 (read); onnx 1.23.2, ONNX Runtime 1.31.1"
    " (run)",
    find=find,
    formats=("onnx",),
)

"""BT404: block sizes that do not go with the shape of the scale."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..linear import Linear, linear_nodes
from ..onnx_operands import shown
from ..rule import Rule, Subject


def _problem(one: Linear) -> tuple[str, str] | None:
    """What is expected, in words and short; None for a good one."""
    data, scale, block = one.data_shape, one.scale_shape, one.block_size
    if block < 0:
        return f"block_size {block} is negative", "a positive integer"
    if data is None or scale is None or not one.axis_in_range:
        return None
    if one.per_tensor and len(data) != len(scale):
        return f"block_size is {block}, but '{one.scale.name}' is one scale for the tensor", "no block_size"
    if len(scale) != len(data):
        return (
            f"block_size is {block}, but '{one.scale.name}' {shown(scale)} has not the data's rank",
            f"rank {len(data)}",
        )
    axis = one.axis % len(data)
    wanted = tuple(-(-size // block) if i == axis else size for i, size in enumerate(data))
    if scale == wanted:
        return None
    text = (
        f"blocks of {block} on axis {axis} of '{one.data.name}' {shown(data)} need scales of shape {shown(wanted)},"
        f" found {shown(scale)}"
    )
    blocks, size = scale[axis], data[axis]
    others = all(a == b for i, (a, b) in enumerate(zip(scale, wanted, strict=True)) if i != axis)
    if others and 0 < blocks <= size:
        low = -(-size // blocks)
        high = -(-size // (blocks - 1)) - 1 if blocks > 1 else size
        if low <= high:
            text += f" (block_size {low} to {high} would fit)"
    return text, shown(wanted)


def find(subject: Subject) -> Iterator[Finding]:
    """Each block_size that is negative or does not fit."""
    for one in linear_nodes(subject):
        problem = _problem(one) if one.block_size else None
        if problem is not None:
            message, expected = problem
            yield RULE.finding(
                message,
                graph=one.graph,
                node=one.node,
                tensor=one.scale,
                expected=expected,
                found="" if one.scale_shape is None else shown(one.scale_shape),
                advice="the scale has the data's shape but ceil(D / block_size) along the axis",
                numbers={"block_size": one.block_size},
            )


RULE = Rule(
    code="BT404",
    name="block-size",
    severity="error",
    what="`block_size` (from version 21 on) is positive, and the scale then has the input's rank and shape, but for"
    " the axis, where it has ceil(D / block_size): block_size lies in [ceil(D / S), ceil(D / (S - 1)) - 1] for S"
    " blocks of an axis of D. Without blocks it is 0 or absent.",
    why="Element i of the axis takes scale number i // block_size. With another number of scales some are never used,"
    " or there are too few.",
    enforced="onnx.checker (1.23, full_check=True) does not look. ONNX Runtime 1.31 refuses negative sizes at load;"
    " everything else fails when it runs, also a single scale together with block_size. bittrue refuses the plan"
    " (BT-QUANT-BLOCK).",
    fix="Count the blocks again, the last one may be short; or leave block_size out.",
    source="ONNX operators QuantizeLinear 21 to 25 (read); onnx 1.23.2, ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)

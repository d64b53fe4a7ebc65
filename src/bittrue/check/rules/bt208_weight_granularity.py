"""Weights of convolutions with one scale per output channel."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Convolutions of several output channels whose weights have one scale."""
    for place in specified_places(subject, "weight"):
        quantization, axis, shape = place.tensor.quantization, place.operand.axis, place.tensor.shape
        if place.node.source == "FULLY_CONNECTED" or quantization is None or quantization.per_axis:
            continue
        channels = shape[axis] if axis is not None and axis < len(shape) else 1
        if channels > 1:
            yield RULE.finding(
                f"one scale for the weights of all {channels} output channels, expected one per channel (dimension "
                f"{axis})",
                graph=place.graph,
                node=place.node,
                tensor=place.tensor,
                expected=f"per-axis (dim = {axis})",
                found="per-tensor",
                advice=f"repeat the scale {channels} times with quantized_dimension {axis}: the same bits; better "
                "quantize each channel by itself",
                numbers={"channels": channels},
            )


RULE = Rule(
    code="BT208",
    name="weight-granularity",
    severity="warning",
    what="Weights of CONV_2D and DEPTHWISE_CONV_2D are per-axis: one scale per output channel. (FULLY_CONNECTED: "
    "BT209.)",
    why="Per-axis weights lose less accuracy. One scale is only a special case of them, so this is a warning: an "
    "implementation may repeat the scale.",
    enforced="LiteRT takes both, with the same arithmetic (run).",
    fix="Convert again with per-channel quantization (the default of converters), or repeat the scale.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

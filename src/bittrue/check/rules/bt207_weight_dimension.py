"""Per-axis weights along the dimension of the output channels."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Per-axis weights along another dimension."""
    for place in specified_places(subject, "weight", ("s8", "s16", "hybrid")):
        quantization = place.tensor.quantization
        if quantization is None or quantization.axis in (None, place.operand.axis):
            continue
        yield RULE.finding(
            f"scales of the weights of {place.node.source} belong to dimension {quantization.axis}, expected dimension "
            f"{place.operand.axis} (the output channels)",
            graph=place.graph,
            node=place.node,
            tensor=place.tensor,
            severity=place.severity,
            place=f"dimension {quantization.axis}",
            expected=place.operand.axis,
            found=quantization.axis,
            advice="set quantized_dimension to the dimension of the output channels; where the number of scales does "
            "not fit that, quantize the weights again",
        )


RULE = Rule(
    code="BT207",
    name="weight-dimension",
    severity="error",
    what="Scales of per-axis weights belong to the output channels: quantized_dimension is 0 for CONV_2D and "
    "FULLY_CONNECTED, 3 for DEPTHWISE_CONV_2D.",
    why="A scale per output channel leaves the integer sums alone and is applied once per result; along any other "
    "dimension every product would need its own.",
    enforced="LiteRT refuses such fully connected layers, and convolutions whose dimension has another size than the "
    "output channels; with the same size it takes the scales for theirs without a word (run).",
    fix="Set quantized_dimension; where the number of scales does not fit, quantize the weights again.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

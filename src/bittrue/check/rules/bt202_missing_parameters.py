"""int8 and int32 operands without scale and zero point."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Operands of int8 nodes that carry no parameters."""
    for place in specified_places(subject):
        if place.tensor.quantization is None and place.tensor.dtype == place.operand.dtype:
            yield RULE.finding(
                f"{place.title} of an int8 {place.node.source} has no scale and no zero point",
                graph=place.graph,
                node=place.node,
                tensor=place.tensor,
                expected="scale and zero point",
                found="none",
                advice="set scale = input scale * weight scale and zero point 0"
                if place.operand.role == "bias"
                else "calibrate the tensor and convert the model again",
            )


RULE = Rule(
    code="BT202",
    name="missing-parameters",
    severity="error",
    what="Every operand of an int8 operator carries a scale and a zero point: real = scale * (q - zero_point). "
    "Integers that are only moved or compared may do without, when no tensor of the node has any.",
    why="Without a scale the integers stand for no real numbers; multipliers cannot be formed, or are formed from 0.",
    enforced="LiteRT refuses convolutions whose input or weights have none, and per-tensor FULLY_CONNECTED whose "
    "bias has none; it reads scale 0 elsewhere: ADD and SOFTMAX abort the process, an output of CONV_2D "
    "becomes 0 everywhere, a bias of CONV_2D is added as it is (run).",
    fix="Calibrate the tensor (representative data that reaches it) and convert again. A bias gets input scale * "
    "weight scale and zero point 0.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

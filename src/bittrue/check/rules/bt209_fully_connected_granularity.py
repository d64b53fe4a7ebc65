"""Weights of fully connected layers: where the two published versions of the specification differ."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Every int8 FULLY_CONNECTED of several outputs, and which version it follows."""
    for place in specified_places(subject, "weight"):
        quantization, shape = place.tensor.quantization, place.tensor.shape
        if not place.operand.older_granularity or quantization is None or not shape or shape[0] <= 1:
            continue
        if quantization.per_axis:
            found, follows, other = "per-axis", "the current version", "the older one (per-tensor)"
        else:
            found, follows, other = "per-tensor", "the older version", "the current one (per-axis, dim = 0)"
        yield RULE.finding(
            f"weights are {found}: as in {follows} of the specification, not as in {other}; neither is an error",
            graph=place.graph,
            node=place.node,
            tensor=place.tensor,
            expected="per-axis (dim = 0), in the older version per-tensor",
            found=found,
            advice="ask which version your target follows; the converter's switch is "
            "_experimental_disable_per_channel_quantization_for_dense_layers",
        )


RULE = Rule(
    code="BT209",
    name="fully-connected-granularity",
    severity="note",
    what="The published versions of the specification differ: weights of FULLY_CONNECTED are per-axis (dim = 0) in the "
    "current one, per-tensor in the older one. The bias is called per-tensor in both, and with per-axis weights it has "
    "a scale per output all the same, since it must be input scale * weight scale. Neither is an error.",
    why="A target built to the older version may read the first scale of per-axis weights alone.",
    enforced="LiteRT runs both. TensorFlow's converter wrote per-tensor weights once and writes per-axis ones today "
    "(run).",
    fix="Nothing, unless your target takes one of them only: then convert with "
    "_experimental_disable_per_channel_quantization_for_dense_layers set or not.",
    source="LiteRT 8-bit quantization specification, current and older version (both read)",
    find=find,
    formats=("tflite",),
)

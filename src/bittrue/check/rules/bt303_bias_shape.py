"""A bias has one value per output channel, and as many scales as the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..finding import Finding
from ..operands import specified_places, tensor_at
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Biases with another number of values or scales."""
    for place in specified_places(subject, "bias", ("s8", "u8", "s16", "hybrid")):
        weight, bias = tensor_at(place.graph, place.node, "input", 1), place.tensor
        axis = {"DEPTHWISE_CONV_2D": 3}.get(place.node.source, 0)
        if weight is None or axis >= len(weight.shape):
            continue
        channels, size = weight.shape[axis], math.prod(bias.shape)
        if size != channels:
            yield RULE.finding(
                f"a bias of shape {list(bias.shape)} has {size} values, expected {channels}: one per output channel",
                graph=place.graph,
                node=place.node,
                tensor=bias,
                severity=place.severity,
                expected=channels,
                found=size,
                advice="give the layer one bias value per output channel",
            )
        scales = bias.quantization.scales.size if bias.quantization is not None else 1
        wanted = weight.quantization.scales.size if weight.quantization is not None else 1
        if scales not in (1, wanted) and wanted != 1:
            yield RULE.finding(
                f"the bias has {scales} scales and the weights have {wanted}, expected the same number",
                graph=place.graph,
                node=place.node,
                tensor=bias,
                severity=place.severity,
                expected=wanted,
                found=scales,
                advice="bias scale[c] = input scale * weight scale[c]",
            )


RULE = Rule(
    code="BT303",
    name="bias-shape",
    severity="error",
    what="A bias has one value per output channel, and a scale for each scale of the weights.",
    why="Otherwise some channels have no bias, or one that is not theirs.",
    enforced="LiteRT refuses layers whose bias has another number of values (run); it does not count the scales of"
    " a bias (read).",
    fix="Shape the bias [output channels] and give it input scale * weight scale[c] in each.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

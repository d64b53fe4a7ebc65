"""Biases with zero point 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Biases with another zero point."""
    for place in specified_places(subject, "bias", ("s8", "u8", "s16")):
        quantization = place.tensor.quantization
        if quantization is None or not quantization.zero_points.any():
            continue
        first = int(np.flatnonzero(quantization.zero_points)[0])
        found = int(quantization.zero_points[first])
        yield RULE.finding(
            f"zero point of the bias is {found}, expected 0",
            graph=place.graph,
            node=place.node,
            tensor=place.tensor,
            severity=place.severity,
            place=f"channel {first}" if quantization.zero_points.size > 1 else "",
            expected=0,
            found=found,
            advice=f"subtract {found} from the bias' values and set the zero point to 0",
        )


RULE = Rule(
    code="BT302",
    name="bias-zero-point",
    severity="error",
    what="The zero point of a bias is 0 in every channel.",
    why="The bias' integer is added to the sum of products as it is.",
    enforced="LiteRT does not read it: CONV_2D and FULLY_CONNECTED of int8 run without a word and give the bits "
    "that zero point 0 gives (run).",
    fix="Subtract the zero point from the bias' values and set it to 0.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

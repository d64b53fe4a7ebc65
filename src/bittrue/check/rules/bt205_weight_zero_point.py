"""Weights with zero point 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Signed weights with another zero point."""
    for place in specified_places(subject, "weight", ("s8", "s16")):
        quantization = place.tensor.quantization
        if quantization is None or not quantization.zero_points.any():
            continue
        points = quantization.zero_points
        first = int(np.flatnonzero(points)[0])
        several = f", as the first of {np.count_nonzero(points)} channels" if points.size > 1 else ""
        yield RULE.finding(
            f"zero point of the weights is {int(points[first])}{several}, expected 0",
            graph=place.graph,
            node=place.node,
            tensor=place.tensor,
            severity=place.severity,
            place=f"channel {first}" if points.size > 1 else "",
            expected=0,
            found=int(points[first]),
            advice="quantize the weights symmetrically; setting the zero point to 0 alone changes what they mean",
            numbers={"channels": int(np.count_nonzero(points))},
        )


RULE = Rule(
    code="BT205",
    name="weight-zero-point",
    severity="error",
    what="Weights are symmetric: every zero point is 0.",
    why="sum (x - zx)(w - zw) has the term zw * sum x, which depends on the input and costs as much as another "
    "channel. Implementations of the specification leave it out.",
    enforced="LiteRT refuses int8 and int16 convolutions with another one. FULLY_CONNECTED takes a per-tensor one into "
    "account, and ignores those of per-axis weights: then the result is wrong without a word (run).",
    fix="Quantize the weights symmetrically: scale = max|w| / 127, q = round(w / scale).",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)

"""BT608: biases at the ends of 32 bits, which their converter has most likely clamped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...operators import find as find_operator
from ...operators.core.roles import position_of
from ..finding import Finding
from ..rule import Rule, Subject

S32_MIN, S32_MAX = -(2**31), 2**31 - 1


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    for graph, node in subject.nodes():
        position = position_of(find_operator(node.operator), "bias")
        if position is None or position >= len(node.inputs) or node.inputs[position] is None:
            continue
        bias = graph.tensors[node.inputs[position] or 0]
        if bias.dtype != "s32" or not bias.is_constant:
            continue
        values = bias.values().reshape(-1)
        # A symmetric clamp ends one above the minimum.
        ends = np.flatnonzero((values == S32_MAX) | (values <= S32_MIN + 1))
        if ends.size:
            yield RULE.finding(
                f"{ends.size} of {values.size} values of bias '{bias.name}' lie at the end of 32 bits: channel"
                f" {ends[0]} is {values[ends[0]]}",
                graph=graph,
                node=node,
                tensor=bias,
                place=f"channel {ends[0]}",
                expected=f"between {S32_MIN + 1} and {S32_MAX}, ends excluded",
                found=int(values[ends[0]]),
                advice="quantize the weights of these channels with a larger scale, so that the bias fits",
                numbers={"channels": int(ends.size), "channel": int(ends[0])},
            )


RULE = Rule(
    "BT608",
    "saturated-bias",
    "warning",
    what="No 32-bit bias value is 2^31 - 1, -2^31 or -2^31 + 1.",
    why="Quantized biases are bias / (input scale * weight scale). A channel with tiny weights has a tiny "
    "scale, the quotient"
    " leaves 32 bits, and the converter clamps it: the channel's output is off by what was cut, and any positive"
    " product on top wraps the accumulator around (BT601).",
    enforced="Nobody checks it. Newer TensorFlow converters raise the weight scale until the bias stays within half of"
    " the range; older ones, and many home-made quantizers, clamp.",
    fix="Convert with a newer converter, or give the channel a weight scale of at least |bias| / (2^30 * input scale).",
    find=find,
    source="TensorFlow Lite converter, quantization_utils (AdjustWeightsForBiasScale), read; docs/facts/litert.md 1.3"
    " (run)",
)

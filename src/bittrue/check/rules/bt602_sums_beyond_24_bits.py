"""BT602: sums that binary32 does not represent exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..rule import Rule, Subject
from ..sums import layers, stored, without_overflow
from ..surveys import in_file, survey

EXACT = 2**24


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    found = []
    for layer in layers(made):
        least, most = layer.reached
        magnitude = np.maximum(-least, most)
        ends = [stored(layer, np.clip(bound, -(2**31), 2**31 - 1)) for bound in layer.bounds]
        if ends[0] is not None and ends[1] is not None:
            # Channels that store one quantized value anyway (BT607) are beside the point.
            magnitude[(ends[0] == ends[1]) & without_overflow(layer)] = 0
        if (magnitude > EXACT).any():
            found.append((int(magnitude.max()), int(np.argmax(magnitude)), int((magnitude > EXACT).sum()), layer))
    if not found:
        return
    magnitude, channel, _, layer = max(found, key=lambda one: one[0])
    graph, node = in_file(subject, made, layer.step)
    yield RULE.finding(
        f"{len(found)} layers ({sum(one[2] for one in found)} channels) have sums beyond 2^24, which binary32 rounds;"
        f" the largest is {magnitude} in channel {channel}"
        f" ({layer.pattern(channel, bool(layer.reached[1][channel] == magnitude))})",
        graph=graph,
        node=node,
        tensor=made.graph.tensors[layer.step.outputs[0]],
        place=f"channel {channel}",
        expected=f"|acc| <= {EXACT}",
        found=magnitude,
        advice="nothing to do for runtimes with integer accumulators; do not simulate this layer in binary32",
        numbers={
            "layers": len(found),
            "channels": sum(one[2] for one in found),
            "channel": channel,
            "magnitude": magnitude,
            "nodes": ", ".join(str(one[3].step.index) for one in found[:16]),
        },
    )


RULE = Rule(
    "BT602",
    "sums-beyond-24-bits",
    "note",
    what="Sums of (q - z) * w + bias stay within 2^24, up to which binary32 represents every integer. One note per"
    " model, for the channel with the largest sum that some input reaches; found as for BT601, without the constant"
    " channels of BT607.",
    why="Simulators, training frameworks and GPU or NPU delegates that add products in binary32 get another sum beyond"
    " 2^24, and XNNPACK and ONNX Runtime, which add integers, still convert the sum to binary32 before they multiply:"
    " it is rounded to 24 bits first. Where the multiplier is small this never shows; near a tie it decides.",
    enforced="Nobody checks it. LiteRT's reference kernels keep all 32 bits; XNNPACK (docs/facts/xnnpack.md 2.1, run)"
    " and ONNX Runtime (binary32_multiply_even, run) round the sum to binary32.",
    fix="Nothing for integer runtimes. Compare runtimes byte for byte (bittrue compare) rather than with a float"
    " simulation. A bias that is far larger than the sums of products is worth a look: see BT601 and BT607.",
    find=find,
    source="docs/facts/xnnpack.md 2.1 and docs/facts/onnxruntime.md (both run)",
)

"""BT605: rescale multipliers that lose information: zero, or one and above."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..rule import Rule, Subject
from ..sums import layers, multipliers
from ..surveys import in_file, steps_with_sums, survey


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    # Channels without weights have any scale.
    alive = {layer.step.index: layer.rows.any(axis=1) for layer in layers(made)}
    for step in steps_with_sums(made):
        real = multipliers(step)
        if real is None or not real.size:
            continue
        graph, node = in_file(subject, made, step)
        output = made.graph.tensors[step.outputs[0]]
        looked = alive.get(step.index, np.ones(real.size, bool))
        chosen = np.where(looked, real, 0.5) if looked.size == real.size else real
        none, large = np.flatnonzero(chosen == 0), np.flatnonzero(np.abs(chosen) >= 1)
        if none.size:
            yield RULE.finding(
                f"the multiplier of {none.size} of {real.size} channels is 0: every result is the output's zero point"
                f" {step.parameters.get('output_zero_point', '')}".rstrip(),
                graph=graph,
                node=node,
                tensor=output,
                severity="warning",
                place=f"channel {none[0]}",
                expected="at least 2^-32",
                found="0",
                advice="the weight scale is far too small beside the output's: quantize the weights again",
                numbers={"channels": int(none.size), "channel": int(none[0])},
            )
        if large.size:
            channel = int(np.argmax(np.abs(chosen)))
            yield RULE.finding(
                f"the multiplier of {large.size} of {real.size} channels is 1 or more (up to {real[channel]:.6g}): one"
                " unit of the sum moves the output by more than one quantized value",
                graph=graph,
                node=node,
                tensor=output,
                place=f"channel {channel}",
                expected="below 1",
                found=f"{real[channel]:.9g}",
                advice="calibrate the output again: its scale is smaller than input scale * weight scale",
                numbers={"channels": int(large.size), "channel": channel, "multiplier": float(real[channel])},
            )


RULE = Rule(
    "BT605",
    "extreme-multiplier",
    "note",
    what="The rescale multiplier M = input scale * weight scale / output scale of every channel lies in [2^-32, 1);"
    " channels whose weights are all 0 are left out.",
    why="Below 2^-32 LiteRT's encoding flushes M to zero, and the channel stores its zero point whatever comes in."
    " From 1 on, one unit of the sum is more than one quantized value of the output: quantized values in between never "
    "occur, the left shift"
    " that carries it out can wrap (BT604), and hardware that only shifts right cannot run the layer.",
    enforced="Convolution, depthwise convolution and fully-connected layers of LiteRT take any M below 2^31. ADD"
    " aborts the process for an output multiplier of 1 and more, SQUARED_DIFFERENCE, too; SUB is undefined there (fact"
    " sheet LiteRT 2.2, run): those are found as BT501. XNNPACK fails the whole model from 256 on. Old TFLite releases"
    " and several microcontroller kernels assert M < 1.",
    fix="Look at the calibration of the output (too narrow) or at the weights of the channel (all near zero).",
    find=find,
    source="docs/facts/litert.md 1.1 and 2.2 (run); docs/facts/xnnpack.md 1.2 (run)",
)

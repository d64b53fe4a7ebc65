"""BT604: accumulators that overflow while they are rescaled."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..rule import Rule, Subject
from ..sums import layers, meant, multipliers, stored
from ..surveys import in_file, survey

_HELD = 2**31


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    for layer in layers(made):
        real = multipliers(layer.step)
        if real is None:
            continue
        worst: tuple[float, int, int, int, float, bool] | None = None
        channels: set[int] = set()
        for high, totals in ((False, layer.reached[0]), (True, layer.reached[1])):
            # Sums that do not even fit are another rule's.
            fits = (totals >= -_HELD) & (totals < _HELD)
            quantized = stored(layer, np.where(fits, totals, 0))
            if quantized is None:
                break
            apart = np.where(fits, np.abs(quantized - meant(layer, totals)), 0)
            # Roundings move a quantized value by one at most.
            for index in np.flatnonzero(apart > 1.5):
                channels.add(int(index))
                one = (float(apart[index]), int(index), int(totals[index]), int(quantized[index]))
                if worst is None or one[0] > worst[0]:
                    worst = (*one, float(meant(layer, totals)[index]), high)
        if worst is None:
            continue
        _, channel, total, code, wanted, end = worst
        graph, node = in_file(subject, made, layer.step)
        yield RULE.finding(
            f"{len(channels)} of {layer.channels} channels overflow while they are rescaled: accumulator {total} of"
            f" channel {channel} times {float(np.broadcast_to(real, layer.channels)[channel]):.6g} should store"
            f" {wanted:.6g}, but stores {code} ({layer.pattern(channel, end)})",
            graph=graph,
            node=node,
            tensor=made.graph.tensors[layer.step.outputs[0]],
            place=f"channel {channel}",
            expected=f"{wanted:.6g}",
            found=code,
            advice="the output scale is far too small beside input scale * weight scale: calibrate the output again",
            numbers={
                "channel": channel,
                "channels": len(channels),
                "accumulator": total,
                "multiplier": float(np.broadcast_to(real, layer.channels)[channel]),
                "stored": code,
                "end": "high" if end else "low",
            },
        )


RULE = Rule(
    "BT604",
    "rescale-overflow",
    "error",
    what="Rescaling an accumulator gives acc * M + zero point, limited to the output's type, to within the rule's own"
    " rounding, for every accumulator that some input reaches. Checked at both ends of every channel by running the"
    " numerics' rule and comparing with real numbers.",
    why="Multipliers M = input scale * weight scale / output scale of 1 and more are carried out as a left shift in 32"
    " bits ahead of the multiplication. The shift wraps: a large positive result is stored as the smallest quantized "
    "value, where"
    " it should saturate at the largest.",
    enforced="LiteRT's reference and optimised convolutions shift without a check (fact sheet LiteRT 1.3: w32(x *"
    " 2^L), run); its fully-connected reference multiplies in binary64 and converts what 32 bits do not hold to -2^31,"
    " to which the zero point is added, wrapping (run). XNNPACK and ONNX Runtime multiply in binary32 and limit before"
    " they convert. XNNPACK refuses multipliers of 256 and more; ADD, SUB and SQUARED_DIFFERENCE abort or are"
    " undefined from 1 on.",
    fix="Calibrate the layer's output again with real data; a multiplier above 1 means that the output's scale is"
    " smaller than one unit of the sum, which is rarely meant.",
    find=find,
    source="LiteRT 2.3.0 (run); tests/check/test_hazards.py runs the witness",
)

"""BT607: output channels that store the same quantized value for every input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..rule import Rule, Subject
from ..sums import layers, stored, without_overflow
from ..surveys import in_file, survey


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    for layer in layers(made):
        ends = [stored(layer, np.clip(bound, -(2**31), 2**31 - 1)) for bound in layer.bounds]
        if ends[0] is None or ends[1] is None:
            continue
        same = (ends[0] == ends[1]) & without_overflow(layer)
        if not same.any():
            continue
        channels = np.flatnonzero(same)
        empty = channels[~layer.rows[channels].any(axis=1)]
        graph, node = in_file(subject, made, layer.step)
        shown = ", ".join(f"{c} ({ends[0][c]})" for c in channels[:8]) + (", ..." if channels.size > 8 else "")
        why = "; all their weights are 0" if empty.size == channels.size else f"; {empty.size} of them by weights of 0"
        yield RULE.finding(
            f"{channels.size} of {layer.channels} channels store{'s' if channels.size == 1 else ''} one and the same"
            f" quantized value for every input{why if empty.size else ''}:"
            f" channel (quantized value) {shown}",
            graph=graph,
            node=node,
            tensor=made.graph.tensors[layer.step.outputs[0]],
            severity="warning" if channels.size == layer.channels else "",
            place=f"channel {channels[0]}",
            advice="prune these channels, or look at their weight scales if the original network uses them"
            if channels.size < layer.channels
            else "nothing that comes in changes the output of this layer: calibrate its scales again",
            numbers={
                "channels": int(channels.size),
                "of": layer.channels,
                "all_weights_zero": int(empty.size),
                "first": int(channels[0]),
                "code": int(ends[0][channels[0]]),
            },
        )


RULE = Rule(
    "BT607",
    "constant-channel",
    "note",
    what="Every output channel depends on the input. A channel is reported when its smallest and its largest possible"
    " accumulator (bounds as for BT601) store the same quantized value: rescaling never decreases, so every input "
    "stores that"
    " quantized value.",
    why="The channel costs time and memory and carries nothing. Mostly the network has learned it so (a ReLU that never"
    " fires, weights decayed to zero); sometimes quantization did it: an output scale that is too large, a bias that"
    " dominates, or one weight scale for all channels that rounds small ones to zero.",
    enforced="Nobody checks it; runtimes compute it.",
    fix="Compare with the float network: if the channel moves there, quantize its weights per channel or calibrate the"
    " output again. Otherwise prune it. It is a warning when all channels of a layer are constant.",
    find=find,
    source="follows from the numerics' rules; tests/check/test_hazards.py runs random inputs through such channels",
)

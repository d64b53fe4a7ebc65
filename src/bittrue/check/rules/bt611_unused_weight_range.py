"""BT611: weights that use only a small part of their type's quantized values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..finding import Finding
from ..rule import Rule, Subject
from ..sums import layers
from ..surveys import in_file, survey

# Of the largest quantized value, 127 for 8 bits: two bits less.
SHARE = 0.25
_BITS = {"s8": 127, "u8": 127, "s16": 32767, "s4": 7}


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    for layer in layers(made):
        # Weights are the widest constant operand; their type tells how many quantized values there are.
        constants = [i for i in layer.step.inputs if i is not None and i in made.values]
        index = max(constants, key=lambda i: made.values[i].size)
        weights = made.graph.tensors[index]
        full = _BITS.get(weights.dtype)
        if full is None:
            continue
        largest = np.abs(layer.rows).max(axis=1)
        per_channel = _scales(layer.step.arrays) > 1
        if per_channel:
            few = np.flatnonzero((largest > 0) & (largest < SHARE * full))
        else:
            few = np.arange(layer.channels if 0 < largest.max() < SHARE * full else 0)
        if not few.size:
            continue
        worst = int(few[np.argmin(np.where(largest[few] > 0, largest[few], full))])
        graph, node = in_file(subject, made, layer.step)
        what = f"{few.size} of {layer.channels} channels of '{weights.name}'" if per_channel else f"'{weights.name}'"
        yield RULE.finding(
            f"{what} use few quantized values: the largest magnitude"
            + (f" in channel {worst}" if per_channel else "")
            + f" is {int(largest[worst] if per_channel else largest.max())} of {full}",
            graph=graph,
            node=node,
            tensor=weights,
            place=f"channel {worst}" if per_channel else "",
            expected=f"at least {int(np.ceil(SHARE * full))}",
            found=int(largest[worst] if per_channel else largest.max()),
            advice="choose the scale of each channel as its largest weight / 127",
            numbers={"channels": int(few.size), "of": layer.channels},
        )


def _scales(arrays: object) -> int:
    """How many multipliers a step has, which tells weights quantized per channel from others."""
    found = [a.size for name, a in dict(arrays).items() if name in ("factor", "multiplier")]  # type: ignore[call-overload]
    return max(found, default=1)


RULE = Rule(
    "BT611",
    "unused-weight-range",
    "note",
    what="The largest |w - zero point| of a channel with a scale of its own, or of the whole tensor where it has one"
    " scale, is at least a quarter of what the type holds (32 of 127). Channels that are all zero are left out"
    " (BT607).",
    why="Each halving costs one bit of the weights' precision: 31 of 127 is a 6-bit weight in an 8-bit tensor. With one"
    " scale per tensor small channels are expected to look so, and only the tensor as a whole is judged.",
    enforced="Nobody checks it.",
    fix="Quantize weights per channel, by the largest magnitude. The TensorFlow converter widens the scale of a"
    " channel on purpose when its bias would not fit into 32 bits (BT608): then the network has a channel with nearly"
    " no weights.",
    find=find,
    source="follows from the formula of quantization; threshold chosen so that the shared models are quiet but for"
    " channels that were really widened",
)

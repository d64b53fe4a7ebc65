"""BT513: multipliers that make LiteRT's kernels shift by more bits than their registers have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...numerics import find as find_numerics
from ..finding import Finding
from ..rule import Rule, Subject
from ..surveys import in_file, survey

# The arithmetic that goes on where others refuse: its plan knows the shifts.
_GOES_ON = "litert-as-compiled"
_MARK = "undefined_shift"


def find(subject: Subject) -> Iterator[Finding]:
    """Each node whose multiplier asks for such a shift."""
    made = survey(subject)
    if subject.numerics.name != _GOES_ON:
        if not any(refusal.error.code == "BT-MULTIPLIER" for refusal in made.refused):
            return
        made = survey(subject, find_numerics(_GOES_ON))
    for step in made.steps:
        asked = [array for name, array in step.arrays.items() if name.endswith(_MARK)]
        if not asked:
            continue
        largest = max(int(np.max(array)) for array in asked)
        graph, node = in_file(subject, made, step)
        yield RULE.finding(
            f"the scales ask {step.source} for a left shift by {largest} bits in a register of 32: undefined in C++;"
            f" builds for x86-64 and aarch64 shift by {largest % 32}",
            graph=graph,
            node=node,
            tensor=made.graph.tensors[step.outputs[0]],
            expected="at most 30",
            found=largest,
            advice="calibrate the output again: its scale is far too small beside the inputs'. Where a product is"
            f" shipped with this model, --numerics {_GOES_ON} gives the bits that it has",
            numbers={"shift": largest},
        )


RULE = Rule(
    code="BT513",
    name="undefined-shift",
    severity="warning",
    what="The left shift of every rescale multiplier is at most 30 bits, so that a register of 32 bits can hold it.",
    why="LiteRT's kernels write a multiplier of 1 and more as a left shift of a 32-bit register ahead of the product"
    " and do not check its count. C++ leaves counts of 31 and more undefined: the released builds for x86-64 and"
    " aarch64 take them modulo 32, so that the output has nothing to do with the scales, and another compiler, or one"
    " that uses vector instructions (whose shifts give 0 there), may give other bits. Such models run and look healthy"
    " where the values happen to saturate or be 0.",
    enforced="Nobody: LiteRT 2.3.0 runs such models (run). bittrue refuses them (BT-MULTIPLIER), but under"
    " `litert-as-compiled`, which reproduces the released builds and names such shifts in its plans (undefined_shift).",
    fix="Look at the scales of the node: an output scale near zero comes from calibration without data, or from an"
    " output that was 0 all the time.",
    source="docs/facts/litert.md 1.10 (run on x86-64, and on aarch64 under qemu)",
    find=find,
    formats=("tflite",),
)

"""conv_transpose: every element of x adds its multiple of a filter to the result, in groups.

acc[n, o, p stride + t dilation - pad] += sum over c of (x[n, c, p] - z_x)(w[c, o, t] - z_w). x is [N, C, spatial...],
or has its channels last with `channels_last`; w is [C, O / groups, spatial...]. Operands are those of `conv`. The row
chooses the arithmetic: real numbers, sums of integers, or integers in binary32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.base import Call, Lower, Lowered, Operator, Reference, Shape, Step
from ..core.indexing import bounded
from ..core.roles import OPERAND_LAYER
from . import integer_conv_transpose, real_conv_transpose, whole_conv
from .conv_geometry import transposed_shape
from .whole_numbers import SLOTS

_ARITHMETIC: dict[str, tuple[Lower, Reference]] = {
    "real": (real_conv_transpose.lower, real_conv_transpose.reference),
    "integers": (integer_conv_transpose.lower, integer_conv_transpose.reference),
    "whole": (whole_conv.lower_transpose, whole_conv.reference_transpose),
}


def infer(call: Call) -> list[Shape]:
    """[N, O, sizes of the result], or with the channels last."""
    call.expect((2, 9))
    (batch, channels, *inner) = transposed_shape(call)
    return [bounded(call, (batch, *inner, channels) if call.attribute("channels_last") else (batch, channels, *inner))]


def lower(call: Call) -> Lowered:
    """What the row's arithmetic needs."""
    kind = {None: "real", "binary32": "whole"}.get(call.rules.get("accumulate"), "integers")
    lowered = _ARITHMETIC[kind][0](call)
    return replace(lowered, parameters={**lowered.parameters, "arithmetic": kind})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The convolution by the step's arithmetic."""
    last = step["channels_last"]
    x = np.moveaxis(inputs[0], -1, 1) if last else inputs[0]
    found = _ARITHMETIC[step["arithmetic"]][1](step, [x, *inputs[1:]])
    return [np.ascontiguousarray(np.moveaxis(one, 1, -1)) for one in found] if last else found


OPERATOR = Operator(
    "conv_transpose",
    SLOTS,
    infer,
    lower,
    reference,
    "transposed convolution over one to three axes, in groups",
    roles=OPERAND_LAYER,
    weights="IOS",
    transposed=True,
    multiplies=True,
)

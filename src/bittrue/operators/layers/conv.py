"""conv: y[n, o, p] = sum over c, t of (x[n, g C + c, p stride + t dilation - pad] - z_x)(w[o, c, t] - z_w) + bias[o].

x is [N, C, D, H, W] with one to three spatial axes, or [N, D, H, W, C] with `channels_last`; w is [O, C / groups, ...];
g is the group of o. Scales and zero points are operands. The row chooses the arithmetic: real numbers
(`real_conv`), integers (`integer_conv`), whose sums are rescaled and stored where the row has rules for it, or whole
numbers in binary32 (`whole_conv`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.roles import OPERAND_LAYER
from . import integer_conv, real_conv, whole_conv
from .conv_geometry import convolution_shape
from .integer_layers import REQUANTIZE_SLOTS, check_channels, check_single


def infer(call: Call) -> list[Shape]:
    """[N, O, sizes of the windows], or with the channels last."""
    call.expect((2, 9))
    shapes = convolution_shape(call)
    for role in OPERAND_LAYER:
        for position, text in ((role.scale, f"{role.name} scale"), (role.zero_point, f"{role.name} zero point")):
            if position is not None and role.name == "input":
                check_single(call, position, text)
            elif position is not None:
                check_channels(call, position, call.input(1).shape[0], text)
    return shapes


_ARITHMETIC = {"real": real_conv, "integers": integer_conv, "whole": whole_conv}


def lower(call: Call) -> Lowered:
    """What the row's arithmetic needs. Integers in binary32 are integers where the plan proves that equal."""
    kind, lowers = "integers", integer_conv.lower
    if "accumulate" not in call.rules:
        kind, lowers = "real", real_conv.lower
    elif call.rules["accumulate"] == "binary32":
        whole = not whole_conv.is_of_integers(call)
        kind, lowers = ("whole", whole_conv.lower) if whole else (kind, whole_conv.lower_integers)
    lowered = lowers(call)
    return replace(lowered, parameters={**lowered.parameters, "arithmetic": kind})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The convolution by the step's arithmetic."""
    return _ARITHMETIC[step["arithmetic"]].reference(step, inputs)


OPERATOR = Operator(
    "conv",
    ("real_product", *REQUANTIZE_SLOTS, "channel_parameters"),
    infer,
    lower,
    reference,
    "convolution over one to three axes, in groups",
    roles=OPERAND_LAYER,
    weights="OIS",
    multiplies=True,
)

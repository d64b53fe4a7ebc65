"""conv: y[n, o, p] = sum over c, t of (x[n, g C + c, p stride + t dilation - pad] - z_x)(w[o, c, t] - z_w) + bias[o].

x is [N, C, D, H, W] with one to three spatial axes, or [N, D, H, W, C] with `channels_last`; w is [O, C / groups, ...];
g is the group of o. Scales and zero points are operands. The row chooses the arithmetic: real numbers
(`real_conv`) or integers (`integer_conv`), whose sums are rescaled and stored where the row has rules for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import integer_conv, real_conv
from .base import Call, Lowered, Operator, Shape, Step
from .conv_geometry import convolution_shape
from .integer_layers import REQUANTIZE_SLOTS, check_channels, check_single
from .roles import OPERAND_LAYER


def infer(call: Call) -> list[Shape]:
    """[N, O, sizes of the windows], or with the channels last."""
    call.expect((2, 9))
    shapes = convolution_shape(call)
    for role in OPERAND_LAYER:
        for position, text in ((role.scale, f"{role.name} scale"), (role.zero_point, f"{role.name} zero point")):
            if position is not None and role.name == "weights":
                check_channels(call, position, call.input(1).shape[0], text)
            elif position is not None:
                check_single(call, position, text)
    return shapes


def lower(call: Call) -> Lowered:
    """As the row's arithmetic has it."""
    return real_conv.lower(call) if "real_product" in call.rules else integer_conv.lower(call)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """As the row's arithmetic has it."""
    return (real_conv if "real_product" in step.rules else integer_conv).reference(step, inputs)


OPERATOR = Operator(
    "conv",
    ("real_product", *REQUANTIZE_SLOTS),
    infer,
    lower,
    reference,
    "convolution over one to three axes, in groups",
    roles=OPERAND_LAYER,
    weights="OIS",
    multiplies=True,
)

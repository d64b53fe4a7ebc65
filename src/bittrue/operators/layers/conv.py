"""conv: y[n, o, p] = sum over c, t of (x[n, g C + c, p stride + t dilation - pad] - z_x)(w[o, c, t] - z_w) + bias[o].

x is [N, C, D, H, W] with one to three spatial axes, or [N, D, H, W, C] with `channels_last`; w is [O, C / groups, ...],
or in the order that `filter_layout` names; g is the group of o. Scales and zero points are operands; behind them, real
numbers may have an addend of the result's shape. The row chooses the arithmetic: real numbers, by the rules of products
(`real_conv`) or term by term (`real_layers`), integers (`integer_conv`), whose sums are rescaled and stored where the
row has rules for it, or integers in binary32 (`whole_conv`). Images with channels last also have integers with a fused
activation, and integers beside real activations that are quantized while running (`image_conv`; `depthwise_conv` where
filters have one channel).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...records import replace
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.roles import OPERAND_LAYER
from . import depthwise_conv, image_conv, integer_conv, real_conv, real_layers, whole_conv
from .conv_geometry import ADDEND, convolution_shape, filter_layout, filter_sizes
from .integer_layers import check_channels, check_single
from .slots import HYBRID_SLOTS, REAL_SLOTS, REQUANTIZE_SLOTS


def infer(call: Call) -> list[Shape]:
    """[N, O, sizes of the windows], or with the channels last."""
    call.expect((2, 10))
    shapes = convolution_shape(call)
    for role in OPERAND_LAYER:
        for position, text in ((role.scale, f"{role.name} scale"), (role.zero_point, f"{role.name} zero point")):
            if position is not None and role.name == "input":
                check_single(call, position, text)
            elif position is not None:
                check_channels(call, position, filter_sizes(call)[0], text)
    return shapes


# What images with channels last have for themselves, by the order of the filters' axes.
_OF_IMAGES = {"OSI": image_conv, "ISO": depthwise_conv}

_ARITHMETICS = {
    "depthwise": depthwise_conv,
    "images": image_conv,
    "real": real_conv,
    "ordered": real_layers,
    "integers": integer_conv,
    "whole": whole_conv,
}


def lower(call: Call) -> Lowered:
    """What the row's arithmetic needs. Integers in binary32 are integers where the plan proves that equal."""
    of_images = _OF_IMAGES.get(filter_layout(call))
    if of_images is not None:
        of_images.check(call)
    if "sum_of_products" in call.rules:
        kind, lowers = "ordered", real_layers.lower
    elif "quantize_asymmetric" in call.rules and of_images is not None:
        kind, lowers = "hybrid", of_images.lower_hybrid
    elif "accumulate" not in call.rules:
        kind, lowers = "real", real_conv.lower
    elif call.rules["accumulate"] == "binary32":
        whole = not whole_conv.is_of_integers(call)
        kind, lowers = ("whole", whole_conv.lower) if whole else ("integers", whole_conv.lower_integers)
    elif of_images is not None and "store" in call.rules:
        kind, lowers = "depthwise" if of_images is depthwise_conv else "images", of_images.lower
    else:
        kind, lowers = "integers", integer_conv.lower
    if kind not in ("depthwise", "images", "hybrid", "ordered") and filter_layout(call) != "OIS":
        raise call.unsupported("BT-NODE-ATTRIBUTE", "this arithmetic has filters of the order OIS")
    if kind != "real" and call.has(ADDEND):
        raise call.unsupported("BT-CONV-SUM", "sums of this arithmetic begin with no tensor")
    lowered = lowers(call)
    return replace(lowered, parameters={**lowered.parameters, "arithmetic": kind})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The convolution by the step's arithmetic."""
    if step["arithmetic"] == "hybrid":
        return _OF_IMAGES[step["filter_layout"]].reference_hybrid(step, inputs)
    return _ARITHMETICS[step["arithmetic"]].reference(step, inputs)


OPERATOR = Operator(
    "conv",
    (
        "real_product",
        *REAL_SLOTS,
        *HYBRID_SLOTS,
        "rows",
        "row_sums",
        "scale_back_per_axis",
        *REQUANTIZE_SLOTS,
        "center",
        "shift_count",
        "rescale_tail",
        "lanes",
        "activation_range",
        "channel_parameters",
    ),
    infer,
    lower,
    reference,
    "convolution over one to three axes, in groups",
    roles=OPERAND_LAYER,
    weights="OIS",
    multiplies=True,
    layout="filters",
    writes_rows=True,
    reads_rows=True,
)

"""conv_transpose: every element of x adds its multiple of a filter to the result, in groups.

acc[n, o, p stride + t dilation - pad] += sum over c of (x[n, c, p] - z_x)(w[c, o, t] - z_w). x is [N, C, spatial...],
or has its channels last with `channels_last`; w is [C, O / groups, spatial...], or in the order that `filter_layout`
names. Operands are those of `conv`; behind them may stand the result's shape, or pads. The row chooses the
arithmetic: real numbers, by the rules of products or term by term, real numbers and weights of integers (hybrid), sums
of integers, rescaled where the row has rules for it, or integers in binary32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...records import replace
from ..core.base import Call, Lower, Lowered, Operator, Reference, Shape, Step
from ..core.indexing import bounded
from ..core.roles import OPERAND_LAYER
from . import (
    integer_conv_transpose,
    ordered_conv_transpose,
    real_conv_transpose,
    rescaled_conv_transpose,
    whole_conv,
)
from .conv_geometry import PADS, check_shape_input, filter_layout, transposed_shape
from .slots import REAL_SLOTS
from .whole_numbers import SLOTS

_ARITHMETIC: dict[str, tuple[Lower, Reference]] = {
    "real": (real_conv_transpose.lower, real_conv_transpose.reference),
    "integers": (integer_conv_transpose.lower, integer_conv_transpose.reference),
    "ordered": (ordered_conv_transpose.lower, ordered_conv_transpose.reference),
    "hybrid": (ordered_conv_transpose.lower_hybrid, ordered_conv_transpose.reference),
    "rescaled": (rescaled_conv_transpose.lower, rescaled_conv_transpose.reference),
    "whole": (whole_conv.lower_transpose, whole_conv.reference_transpose),
}


def infer(call: Call) -> list[Shape]:
    """[N, O, sizes of the result], or with the channels last."""
    call.expect((2, 10))
    (batch, channels, *inner) = transposed_shape(call)
    return [bounded(call, (batch, *inner, channels) if call.attribute("channels_last") else (batch, channels, *inner))]


# Those that take channels and filters as they lie.
_ANY_LAYOUT = ("ordered", "hybrid", "rescaled")


def _kind(rules: Mapping[str, str]) -> str:
    if "sum_of_products" in rules:
        return "ordered"
    if "quantize_asymmetric" in rules:
        return "hybrid"
    if "accumulate" not in rules:
        return "real"
    if rules["accumulate"] == "binary32":
        return "whole"
    return "rescaled" if "activation_range" in rules else "integers"


def lower(call: Call) -> Lowered:
    """What the row's arithmetic needs."""
    kind = _kind(call.rules)
    if kind not in _ANY_LAYOUT and filter_layout(call, True) != "IOS":
        raise call.unsupported("BT-NODE-ATTRIBUTE", "this arithmetic has filters of the order IOS")
    if kind in _ANY_LAYOUT and not call.attribute("channels_last"):
        raise call.unsupported("BT-NODE-ATTRIBUTE", "this arithmetic has channels last")
    lowered = _ARITHMETIC[kind][0](call)
    if call.has(PADS) and "auto_pad" in call.node.attributes:
        # The geometry has them.
        lowered = replace(lowered, inputs=(0, 1, 2) if call.has(2) else (0, 1))
    return replace(lowered, parameters={**lowered.parameters, "arithmetic": kind})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The convolution by the step's arithmetic."""
    check_shape_input(step, inputs)
    computed = _ARITHMETIC[step["arithmetic"]][1]
    if step["arithmetic"] in _ANY_LAYOUT or not step["channels_last"]:
        return computed(step, inputs)
    found = computed(step, [np.moveaxis(inputs[0], -1, 1), *inputs[1:]])
    return [np.ascontiguousarray(np.moveaxis(one, 1, -1)) for one in found]


OPERATOR = Operator(
    "conv_transpose",
    (
        *SLOTS,
        "shift_count",
        "rescale_tail",
        "lanes",
        "activation_range",
        *REAL_SLOTS,
        "quantize_asymmetric",
        "multiply_add",
    ),
    infer,
    lower,
    reference,
    "transposed convolution over one to three axes, in groups",
    roles=OPERAND_LAYER,
    weights="IOS",
    transposed=True,
    multiplies=True,
)

"""The devices: which operator is wrong, how, and what a verdict must call it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bittrue.conformance.devices import Answer, Device
from bittrue.conformance.suite import SuiteCase

from . import layers, others
from .reading import read
from .rounding import (
    floored,
    one_step_away,
    one_step_up,
    real_even,
    truncated,
    two_step,
    two_step_down,
    two_step_toward_zero,
    two_step_up,
)

KERNELS = {
    "CONV_2D": layers.layer,
    "DEPTHWISE_CONV_2D": layers.layer,
    "FULLY_CONNECTED": layers.layer,
    "AVERAGE_POOL_2D": layers.pool,
    "MAX_POOL_2D": layers.pool,
    "ADD": others.add,
    "SUB": others.add,
    "MUL": others.mul,
    "LOGISTIC": others.logistic,
    "CONCATENATION": others.concatenate,
    "PAD": others.pad,
    "PADV2": others.pad,
    "TRANSPOSE": others.transpose,
    "MAXIMUM": others.extreme,
    "MINIMUM": others.extreme,
    "ARG_MAX": others.arg_max,
    "RESIZE_BILINEAR": others.resize_bilinear,
    **dict.fromkeys(others.COMPARED, others.compare),
}


@dataclass(frozen=True)
class Planted:
    """One fault.

    Attributes:
        operator: that has it; every other one is right.
        names: what the cause may be called; every one of them describes the fault.
        wrong: keywords of the kernel.
    """

    operator: str
    names: tuple[str, ...]
    wrong: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.operator}: {self.names[0]}"


class PlantedDevice(Device):
    """Answers cases of the operators in `KERNELS`."""

    reads = ("tflite",)

    def __init__(self, planted: Planted | None = None) -> None:
        self.planted = planted
        self.spec = self.title = "without a fault" if planted is None else planted.title

    def answer(self, case: SuiteCase) -> Answer:
        if case.rejects:
            return Answer("refused", text="refused")
        op = read(case.content, dict(case.inputs))
        if op.name not in KERNELS:
            return Answer("refused", text=f"no {op.name}")
        wrong = self.planted.wrong if self.planted is not None and self.planted.operator == op.name else {}
        with np.errstate(all="ignore"):
            return Answer("outputs", {op.output.name: np.array(KERNELS[op.name](op, **wrong), order="C")})


RIGHT = PlantedDevice()


PLANTED = (
    Planted("CONV_2D", ("rescale=q31_two_step_up_up",), {"rounding": two_step_up}),
    # Alike where no left shift leaves 32 bits.
    Planted(
        "CONV_2D",
        ("rescale=q31_one_step_up", "rescale=q31_one_step_up_shift_wraps"),
        {"rounding": one_step_up},
    ),
    Planted("CONV_2D", ("rescale=q31_one_step_away",), {"rounding": one_step_away}),
    Planted("CONV_2D", ("rescale=binary32_multiply_even",), {"rounding": real_even}),
    Planted("CONV_2D", ("product with a 31-bit multiplier, floor", "exact product, floor"), {"rounding": floored}),
    Planted("CONV_2D", ("two steps, ties up then ties toward zero",), {"rounding": two_step_toward_zero}),
    Planted("CONV_2D", ("two steps, ties up then ties down",), {"rounding": two_step_down}),
    Planted("CONV_2D", ("weights shifted by one output channel",), {"neighbour": True}),
    Planted("CONV_2D", ("bias added twice",), {"bias_twice": True}),
    Planted("CONV_2D", ("exponent one too large",), {"exponent": 1}),
    Planted("CONV_2D", ("input zero point ignored",), {"no_input_zero": True}),
    Planted("CONV_2D", ("output zero point ignored",), {"no_output_zero": True}),
    Planted("CONV_2D", ("padding with quantized value 0",), {"pad_code": 0}),
    Planted("CONV_2D", ("bias dropped",), {"no_bias": True}),
    Planted("CONV_2D", ("bias added after rescaling",), {"bias_behind": True}),
    Planted("CONV_2D", ("fused activation ignored",), {"no_activation": True}),
    Planted("CONV_2D", ("clamp before the zero point",), {"clamp_first": True}),
    Planted("CONV_2D", ("saturates to [-127, 127]",), {"symmetric": True}),
    Planted("CONV_2D", ("wraps instead of saturating",), {"wrap": True}),
    Planted("CONV_2D", ("accumulator wraps at 16 bits",), {"register_wraps": True}),
    Planted("CONV_2D", ("multiplier of channel 0 for all channels",), {"first_multiplier": True}),
    Planted("CONV_2D", ("strides of height and width swapped",), {"strides_swapped": True}),
    Planted(
        "DEPTHWISE_CONV_2D",
        ("product with a 31-bit multiplier, trunc", "exact product, trunc"),
        {"rounding": truncated},
    ),
    Planted("DEPTHWISE_CONV_2D", ("accumulator saturates at 16 bits",), {"register_saturates": True}),
    Planted("DEPTHWISE_CONV_2D", ("dilation ignored",), {"no_dilation": True}),
    Planted("DEPTHWISE_CONV_2D", ("weights -128 read as -127",), {"no_minus_128": True}),
    Planted("DEPTHWISE_CONV_2D", ("padding swapped on both axes",), {"pads_at_the_beginning": True}),
    Planted("FULLY_CONNECTED", ("weights transposed",), {"weights_transposed": True}),
    Planted("FULLY_CONNECTED", ("rescale=q31_two_step_up_away",), {"rounding": two_step}),
    Planted("FULLY_CONNECTED", ("multiplier truncated to 8 bits",), {"short_multiplier": True}),
    Planted(
        "FULLY_CONNECTED", ("relu6 taken for relu", "upper end of the activation ignored"), {"relu_for_relu6": True}
    ),
    Planted("AVERAGE_POOL_2D", ("average counts padding",), {"pads_count": True}),
    Planted("AVERAGE_POOL_2D", ("average=integer_trunc",), {"trunc": True}),
    Planted("AVERAGE_POOL_2D", ("fused activation ignored",), {"no_activation": True}),
    Planted("MAX_POOL_2D", ("padding with quantized value 0",), {"pads_count": True}),
    Planted("RESIZE_BILINEAR", ("asymmetric in place of half_pixel",), {"no_half": True}),
    Planted("RESIZE_BILINEAR", ("asymmetric in place of align_corners",), {"no_corners": True}),
    Planted("ADD", ("second input zero point ignored",), {"no_second_zero": True}),
    Planted("ADD", ("first input and second input scales swapped",), {"scales_swapped": True}),
    Planted("ADD", ("rescale=q31_one_step_up",), {"rounding": one_step_up}),
    Planted("ADD", ("product with a 31-bit multiplier, trunc",), {"rounding": truncated}),
    Planted(
        "ADD",
        ("two steps, ties up then ties toward zero", "product with a 31-bit multiplier, ties toward zero"),
        {"rounding": two_step_toward_zero},
    ),
    Planted("ADD", ("second input scale's exponent one too small",), {"exponents": (0, -1, 0)}),
    Planted("ADD", ("output scale's exponent one too small",), {"exponents": (0, 0, 1)}),
    Planted("SUB", ("operands swapped",), {"operands_swapped": True}),
    Planted("SUB", ("sum instead of difference",), {"other_sign": True}),
    Planted("MUL", ("first input zero point ignored",), {"no_input_zero": True}),
    Planted("MUL", ("rescale=q31_two_step_up_up",), {"rounding": two_step_up}),
    Planted("LOGISTIC", ("input zero point ignored",), {"no_input_zero": True}),
    Planted("LOGISTIC", ("table shifted by one entry",), {"shifted": True}),
    Planted("LOGISTIC", ("table read with the wrong signedness",), {"unsigned_index": True}),
    Planted("LOGISTIC", ("computed in binary32, rounded down",), {"floor": True}),
    Planted("CONCATENATION", ("operands in reversed order",), {"reversed": True}),
    Planted("PAD", ("padding with quantized value 0", "output zero point ignored"), {"zero_code": True}),
    Planted("PAD", ("padding swapped",), {"sides_swapped": True}),
    Planted("TRANSPOSE", ("permutation inverted",), {"inverse": True}),
    Planted("MAXIMUM", ("quantized values compared as unsigned",), {"unsigned": True}),
    Planted("MINIMUM", ("maximum instead of minimum",), {"other": True}),
    Planted("ARG_MAX", ("last of equal values",), {"last": True}),
    Planted("ARG_MAX", ("arg_min instead of arg_max",), {"smallest": True}),
    Planted("LESS", ("less_equal instead of less",), {"or_equal": True}),
    Planted("EQUAL", ("zero points of all inputs ignored",), {"no_zero": True}),
)

"""dequantize: scale * (q - zero point), with one scale, one per slice of an axis, or one per block.

Scales and zero points belong to the tensor, are operands (`dequantize_operands`), or follow from ranges that are
operands (`quantize_ranges`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...rules import quantize as quantize_rules
from ..core.base import Call, Lowered, Operator, Role, Step
from ..core.elementwise import blockwise, in_lanes
from . import dequantize_operands, quantize_in_reals, quantize_ranges
from .quantize import body_parameter, infer, per_axis_arrays


def lower(call: Call) -> Lowered:
    """Scales and zero points; nothing for 16-bit floats, which are only widened."""
    if call.node.attributes.get("in_reals"):
        return quantize_in_reals.lower(call)
    if "narrow" in call.rules:
        return dequantize_operands.lower(call)
    if "range_dequantize" in call.rules:
        return quantize_ranges.lower_dequantize(call)
    source = call.input(0)
    given = source.tensor.quantization
    if given is not None and given.per_axis and source.type.bits > 8:
        raise call.invalid("BT-QUANT-PER-AXIS", f"{source.type.title} input '{source.name}' cannot have several scales")
    if not source.type.is_integer:
        return Lowered()
    return Lowered(parameters=body_parameter(call), arrays=per_axis_arrays(call, source))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    if "in_reals" in step.parameters:
        return quantize_in_reals.reference_dequantize(step, inputs)
    if "narrow" in step.rules:
        return dequantize_operands.reference(step, inputs)
    if "ranged" in step.parameters:
        return quantize_ranges.reference_dequantize(step, inputs)
    if not step.arrays:
        return [inputs[0].astype(np.float32)]

    def one(slot: str) -> Callable[..., np.ndarray]:
        rule = quantize_rules.DEQUANTIZE[step.rules[slot]]
        return lambda q, scale, zero_point: rule(q, scale, zero_point.astype(np.int64))

    arrays = [inputs[0], step.arrays["scales"], step.arrays["zero_points"]]
    dtype, compute = np.dtype(np.float32), np.dtype(np.float64)
    if "dequantize_tail" in step.rules:
        return [in_lanes(one("dequantize"), one("dequantize_tail"), step["body"], arrays, dtype, compute)]
    return [blockwise(one("dequantize"), arrays, dtype, compute)]


OPERATOR = Operator(
    "dequantize",
    ("dequantize", "dequantize_tail", "lanes", "zero_points", "narrow", "range_dequantize"),
    infer,
    lower,
    reference,
    "integers or narrow floats to real numbers",
    roles=(Role("input", 0, 1, 2),),
    elementwise=1,
    dequantizes=True,
)

"""dequantize: scale * (q - zero point) in binary32, with one scale or one per slice of an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import quantize as quantize_rules
from .base import Call, Lowered, Operator, Step, same_shape
from .elementwise import blockwise
from .quantize import per_axis_arrays


def lower(call: Call) -> Lowered:
    """Scales and zero points; nothing for 16-bit floats, which are only widened."""
    source = call.input(0)
    if not source.type.is_integer:
        return Lowered()
    if source.quantization.per_axis and source.type.bits > 8:
        raise call.invalid("BT-QUANT-PER-AXIS", f"{source.type.title} input '{source.name}' cannot have several scales")
    return Lowered(arrays=per_axis_arrays(source.quantization, source.rank))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    if not step.arrays:
        return [inputs[0].astype(np.float32)]
    rule = quantize_rules.DEQUANTIZE[step.rules["dequantize"]]

    def one(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        return rule(q, scale, zero_point.astype(np.int64))

    arrays = [inputs[0], step.arrays["scales"], step.arrays["zero_points"]]
    return [blockwise(one, arrays, np.dtype(np.float32), np.dtype(np.float64))]


OPERATOR = Operator("dequantize", ("dequantize",), same_shape, lower, reference, "integers to real numbers")

"""quantize and dequantize of tensors that have a range: its ends are operands of one binary32 number each.

From real numbers: x (f32), low, high. From sums: acc (s32), low and high of the result, low and high of the sums.
To real numbers: q (s8, u8), low, high. R = max(|low|, |high|).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import data_type
from ...rules.range_quantize import DEQUANTIZE, QUANTIZE, REQUANTIZE
from ..core.base import Call, Lowered, Shape, Step
from ..core.elementwise import blockwise
from .range_operands import check_range, ends_of


def infer(call: Call) -> list[Shape]:
    """The shape of the first input."""
    call.expect((3, 5))
    check_range(call, *range(1, len(call.inputs)))
    if len(call.inputs) == 4:
        raise call.invalid("BT-NODE-ARITY", "4 inputs are no pairs of a minimum and a maximum")
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """The type of the quantized values."""
    return Lowered({"dtype": call.output.dtype, "ranged": True})


def lower_dequantize(call: Call) -> Lowered:
    """The type of the quantized values."""
    return Lowered({"dtype": call.input(0).dtype, "ranged": True})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    ends, name = ends_of(inputs, 1), step["dtype"]
    dtype = data_type(name).numpy
    if "range_requantize" in step.rules:
        again, given = REQUANTIZE[step.rules["range_requantize"]], ends_of(inputs, 3)
        return [blockwise(lambda acc: again(acc, given, ends, name), [inputs[0]], dtype, np.dtype(np.int32))]
    rule = QUANTIZE[step.rules["range_quantize"]]
    return [blockwise(lambda x: rule(x, ends, name), [inputs[0]], dtype, np.dtype(np.float32))]


def reference_dequantize(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    rule, ends, name = DEQUANTIZE[step.rules["range_dequantize"]], ends_of(inputs, 1), step["dtype"]
    dtype = np.dtype(np.float32)
    return [blockwise(lambda q: rule(q, ends, name), [inputs[0]], dtype, inputs[0].dtype)]

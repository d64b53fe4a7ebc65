"""range_quantize, range_dequantize, range_requantize: between real numbers, sums, and quantized values of tensors with
a range.

range_quantize: x (f32), low, high; range_dequantize: q (s8, u8), low, high; range_requantize: acc (s32), low and high
of the sums, low and high of the result. Ranges are operands of one binary32 number each. R = max(|low|, |high|).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import data_type
from ...rules.range_quantize import DEQUANTIZE, QUANTIZE, REQUANTIZE
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import blockwise
from .range_operands import check_range, ends_of


def infer(call: Call) -> list[Shape]:
    """The shape of the first input."""
    call.expect(3)
    check_range(call, 1, 2)
    return [call.input(0).shape]


def infer_requantize(call: Call) -> list[Shape]:
    """The shape of the first input."""
    call.expect(5)
    check_range(call, 1, 2, 3, 4)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """The type of the quantized values."""
    return Lowered({"dtype": call.output.dtype})


def lower_dequantize(call: Call) -> Lowered:
    """The type of the quantized values."""
    return Lowered({"dtype": call.input(0).dtype})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    rule, ends, name = QUANTIZE[step.rules["range_quantize"]], ends_of(inputs, 1), step["dtype"]
    dtype = data_type(name).numpy
    return [blockwise(lambda x: rule(x, ends, name), [inputs[0]], dtype, np.dtype(np.float32))]


def reference_dequantize(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    rule, ends, name = DEQUANTIZE[step.rules["range_dequantize"]], ends_of(inputs, 1), step["dtype"]
    dtype = np.dtype(np.float32)
    return [blockwise(lambda q: rule(q, ends, name), [inputs[0]], dtype, inputs[0].dtype)]


def reference_requantize(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element."""
    rule, name = REQUANTIZE[step.rules["range_requantize"]], step["dtype"]
    given, wanted = ends_of(inputs, 1), ends_of(inputs, 3)
    dtype = data_type(name).numpy
    return [blockwise(lambda acc: rule(acc, given, wanted, name), [inputs[0]], dtype, np.dtype(np.int32))]


OPERATORS = (
    Operator(
        "range_quantize",
        ("range_quantize",),
        infer,
        lower,
        reference,
        "real numbers to quantized values of a range",
        elementwise=1,
        quantizes=True,
    ),
    Operator(
        "range_dequantize",
        ("range_dequantize",),
        infer,
        lower_dequantize,
        reference_dequantize,
        "quantized values of a range to real numbers",
        elementwise=1,
        dequantizes=True,
    ),
    Operator(
        "range_requantize",
        ("range_requantize",),
        infer_requantize,
        lower,
        reference_requantize,
        "sums that have a range to quantized values of another one",
        elementwise=1,
    ),
)

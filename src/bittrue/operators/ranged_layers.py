"""ranged_matmul: matrix products of tensors with ranges.

Operands: x, low and high of x, w [K, O], scales of w, bias (s32 [O]), low of the result, a zero of the result's type,
high of the result: y = store(rescale(sum)), where bias and scales are parameters of `rescale` (see
`range_operands.range_multiplier`). Where ranges and scales are known at plan time, the step is matmul's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..graph import Attribute, data_type
from . import matmul_integer
from .base import Call, Lowered, Operator, Role, Shape, Step
from .late import Prepared, Values, prepare_late, prepare_now
from .matmul import product_shape
from .range_operands import check_range, ends_of, range_multiplier

# What `_prepare` reads, and what the steps of other operators read.
_OPERANDS, _READ = (1, 2, 4, 5, 6, 8), (0, 1, 2, 3, 4, 5, 6, 7)
# No zero points are operands.
_NOWHERE = 99


def _check(call: Call, channels: int) -> None:
    check_range(call, 1, 2, 6, 8)
    scales, bias = call.input(4, "scales"), call.input(5, "bias")
    if scales.shape not in ((1,), (channels,)) or bias.shape != (channels,):
        raise call.invalid(
            "BT-BIAS-LENGTH",
            f"scales {list(scales.shape)} and bias {list(bias.shape)} for {channels} output channels",
        )


def infer_matmul(call: Call) -> list[Shape]:
    """[N, O]."""
    call.expect(9)
    call.rank(call.input(0), 2)
    call.rank(call.input(3), 2)
    shape = product_shape(call, 3)
    _check(call, shape[-1])
    return [shape]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    """The multipliers."""
    return {}, range_multiplier(
        rules, known, ends_of(values, 1), values[4].reshape(-1), (values[6], values[8]), values[5]
    )


def _parameters(call: Call) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    dtype = data_type(call.output.dtype)
    known: dict[str, Attribute] = {
        "codes": call.input(0).dtype,
        "dtype": dtype.name,
        "low": dtype.minimum,
        "high": dtype.maximum,
        "output_zero_point": 0,
        "input_zero_point": 0,
        "weight_zero_point": 0,
    }
    return prepare_now(call, _OPERANDS, known, _prepare)


def lower_matmul(call: Call) -> Lowered:
    """Multipliers and the accumulator bound."""
    parameters, arrays = _parameters(call)
    parameters |= {"transpose_a": False, "transpose_b": False}
    depth = call.input(0).shape[-1]
    lowered = matmul_integer.lowered(call, parameters, arrays, depth, 3, _NOWHERE, _NOWHERE)
    # Steps whose numbers are known are another operator's.
    return lowered if parameters["late"] else replace(lowered, operator="matmul", inputs=(0, 3))


def _prepared(step: Step, inputs: Sequence[np.ndarray]) -> tuple[Step, Sequence[np.ndarray]]:
    step = prepare_late(step, inputs, _prepare)
    return replace(step, parameters={**step.parameters, "late": False}), inputs[: len(_READ)]


def reference_matmul(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The multipliers of this run, then as matmul."""
    step, _ = _prepared(step, inputs)
    return matmul_integer.reference(step, (inputs[0], inputs[3]))


OPERATOR = Operator(
    "ranged_matmul",
    ("accumulate", "rescale", "store"),
    infer_matmul,
    lower_matmul,
    reference_matmul,
    "matrix product of codes that have a range",
    roles=(Role("input", 0), Role("weights", 3), Role("bias", 5)),
    weights="IO",
    multiplies=True,
)

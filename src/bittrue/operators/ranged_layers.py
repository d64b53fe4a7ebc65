"""conv_sums, ranged_conv, ranged_matmul: layers over tensors with ranges.

conv_sums: x (s8, u8) [N, C, ...], w (s8) [O, C / groups, ...]: sums of products as s32.
ranged_conv, ranged_matmul: x, low and high of x, w (ranged_matmul: [K, O]), scales of w, bias (s32 [O]), low of the
result, a zero of the result's type, high of the result: y = store(rescale(sum)), where bias and scales are parameters
of `rescale`: f = f32(f32(s_y / s_x) / s_w), or f32(f32(1 / s_x) / s_w) and s_y, s being codes per unit.
Where ranges and scales are known at plan time, steps are those of qlinear_conv and matmul.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..graph import Attribute, data_type
from ..rules import accumulate, rescale
from ..rules.range_levels import scale_of
from . import matmul_integer, qlinear_conv
from .base import Call, Lowered, Operator, Role, Shape, Step
from .late import Prepared, Values, prepare_late, prepare_now
from .matmul import product_shape
from .range_operands import check_range, ends_of
from .roles import LAYER

_SLOTS = ("accumulate", "rescale", "store")
_ROLES = (Role("input", 0), Role("weights", 3), Role("bias", 5))
# Of ranged_conv and ranged_matmul: what `_prepare` reads, and what the steps of other operators read.
_OPERANDS, _READ = (1, 2, 4, 5, 6, 8), (0, 1, 2, 3, 4, 5, 6, 7)
# No zero points are operands.
_NOWHERE = 99


def infer_sums(call: Call) -> list[Shape]:
    """[N, O, extents of the windows]."""
    call.expect(2)
    return qlinear_conv.infer_layer(call, 1)


def lower_sums(call: Call) -> Lowered:
    """Geometry and bound; sums of exact products are those of conv_integer."""
    lowered = qlinear_conv.lower_integer(call)
    exact = accumulate.RULES[call.rules["accumulate"]].lost is None
    return replace(lowered, operator="conv_integer" if exact else "")


def reference_sums(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The sums, without what the rule loses."""
    return qlinear_conv.sums_alone(step, inputs, False)


def _check(call: Call, channels: int) -> None:
    check_range(call, 1, 2, 6, 8)
    scales, bias = call.input(4, "scales"), call.input(5, "bias")
    if scales.shape not in ((1,), (channels,)) or bias.shape != (channels,):
        raise call.invalid(
            "BT-BIAS-LENGTH",
            f"scales {list(scales.shape)} and bias {list(bias.shape)} for {channels} output channels",
        )


def infer_conv(call: Call) -> list[Shape]:
    """[N, O, extents of the windows]."""
    call.expect(9)
    shapes = qlinear_conv.infer_layer(call, 3)
    _check(call, call.input(3).shape[0])
    return shapes


def infer_matmul(call: Call) -> list[Shape]:
    """[N, O]."""
    call.expect(9)
    call.rank(call.input(0), 2)
    call.rank(call.input(3), 2)
    shape = product_shape(call, 3)
    _check(call, shape[-1])
    return [shape]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    """The multipliers; ValueError where they are not finite."""
    data, result = scale_of(ends_of(values, 1), known["codes"]), scale_of((values[6], values[8]), known["dtype"])
    twice = "second" in rescale.RULES[rules["rescale"]].operands
    with np.errstate(all="ignore"):
        factor = ((np.float32(1) if twice else result) / data) / values[4].reshape(-1)
    if not (np.isfinite(factor).all() and np.isfinite(result)):
        raise ValueError("the ranges give no finite multiplier: one of them is empty, infinite or no number")
    arrays = {"factor": factor.astype(np.float32), "addend": values[5].astype(np.int32)}
    if twice:
        arrays["second"] = np.array([result], np.float32)
    return {}, arrays


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


def lower_conv(call: Call) -> Lowered:
    """Geometry, multipliers and the accumulator bound."""
    parameters, arrays = _parameters(call)
    lowered = qlinear_conv.lowered(call, parameters, arrays, (0, _NOWHERE), (3, _NOWHERE))
    return lowered if parameters["late"] else replace(lowered, operator="qlinear_conv", inputs=_READ)


def lower_matmul(call: Call) -> Lowered:
    """Multipliers and the accumulator bound."""
    parameters, arrays = _parameters(call)
    parameters |= {"transpose_a": False, "transpose_b": False}
    depth = call.input(0).shape[-1]
    lowered = matmul_integer.lowered(call, parameters, arrays, depth, 3, _NOWHERE, _NOWHERE)
    return lowered if parameters["late"] else replace(lowered, operator="matmul", inputs=(0, 3))


def _prepared(step: Step, inputs: Sequence[np.ndarray]) -> tuple[Step, Sequence[np.ndarray]]:
    step = prepare_late(step, inputs, _prepare)
    return replace(step, parameters={**step.parameters, "late": False}), inputs[: len(_READ)]


def reference_conv(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The multipliers of this run, then as qlinear_conv."""
    return qlinear_conv.reference(*_prepared(step, inputs))


def reference_matmul(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The multipliers of this run, then as matmul."""
    step, _ = _prepared(step, inputs)
    return matmul_integer.reference(step, (inputs[0], inputs[3]))


OPERATORS = (
    Operator(
        "conv_sums",
        ("accumulate",),
        infer_sums,
        lower_sums,
        reference_sums,
        "sums of a convolution of codes",
        roles=LAYER[:2],
        weights="OIS",
        multiplies=True,
    ),
    Operator(
        "ranged_conv",
        _SLOTS,
        infer_conv,
        lower_conv,
        reference_conv,
        "convolution of codes that have a range",
        roles=_ROLES,
        weights="OIS",
        multiplies=True,
    ),
    Operator(
        "ranged_matmul",
        _SLOTS,
        infer_matmul,
        lower_matmul,
        reference_matmul,
        "matrix product of codes that have a range",
        roles=_ROLES,
        weights="IO",
        multiplies=True,
    ),
)

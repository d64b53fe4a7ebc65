"""add_bias, layer_sum, range_to_real: what becomes of a layer's sums [N, O, ...] over tensors with ranges.

add_bias: acc (s32), bias (s32 or s8 [O]): s32. range_to_real: acc, low and high of x, scales of w, bias: f32.
layer_sum: acc, low and high of x, scales of w, bias, low and high of the result, another tensor, its low and high:
v = f32(f32(acc) + f32(bias)) * f, f of range_operands; y = store(fma(other, f32(s_y / s_other), v)). Results that are
sums themselves, s32, have f = 1 and s_y = f32(s_x * s_w).
Attributes `relu_first` and `relu_last` limit v, and what is stored, to 0 and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import data_type
from ...rules.range_layer import ADD, SUM
from ...rules.range_levels import scale_of
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..quantization.range_operands import check_range, ends_of

_ZERO = np.float32(0)


def _check(call: Call, bias: int, scales: int | None = None) -> Shape:
    """The shape of the sums; bias and scales are one per channel."""
    acc = call.input(0, "sums")
    call.rank(acc, 2, 5)
    if call.input(bias, "bias").shape != (acc.shape[1],):
        shape = list(call.input(bias).shape)
        raise call.invalid("BT-BIAS-LENGTH", f"bias has shape {shape} for {acc.shape[1]} output channels")
    if scales is not None and call.input(scales, "scales").shape not in ((1,), (acc.shape[1],)):
        shape = list(call.input(scales).shape)
        raise call.invalid("BT-BIAS-LENGTH", f"scales have shape {shape} for {acc.shape[1]} output channels")
    return acc.shape


def infer_bias(call: Call) -> list[Shape]:
    """The shape of the sums."""
    call.expect(2)
    return [_check(call, 1)]


def infer_sum(call: Call) -> list[Shape]:
    """The shape of the sums."""
    call.expect(10)
    check_range(call, 1, 2, 5, 6, 8, 9)
    shape = _check(call, 4, 3)
    if call.input(7).shape != shape:
        raise call.invalid("BT-SHAPE-BROADCAST", f"a tensor {list(call.input(7).shape)} is added to sums {list(shape)}")
    return [shape]


def infer_real(call: Call) -> list[Shape]:
    """The shape of the sums."""
    call.expect(5)
    check_range(call, 1, 2)
    return [_check(call, 4, 3)]


def lower_bias(call: Call) -> Lowered:
    """Whether negative sums become 0."""
    return Lowered({"relu_last": bool(call.attribute("relu_last")), "channels_last": False})


def lower_real(call: Call) -> Lowered:
    """The type of x, and whether negative results become 0."""
    flags = {"relu_last": bool(call.attribute("relu_last")), "channels_last": False}
    return Lowered({"codes": call.attribute("codes"), **flags})


def lower_sum(call: Call) -> Lowered:
    """Types, and where numbers below 0 become 0."""
    relu = {name: bool(call.attribute(name)) for name in ("relu_first", "relu_last")}
    types = {"codes": call.attribute("codes"), "other": call.input(7).dtype, "dtype": call.output.dtype}
    return Lowered({**types, **relu, "channels_last": False})


def _by_channel(step: Step, vector: np.ndarray, rank: int) -> np.ndarray:
    return vector if step["channels_last"] else vector.reshape(-1, *(1,) * (rank - 2))


def _total(step: Step, acc: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return acc.astype(np.float32) + _by_channel(step, bias, acc.ndim).astype(np.float32)


def reference_bias(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Channel by channel."""
    acc, bias = inputs
    total = ADD[step.rules["add_bias"]](acc, _by_channel(step, bias, acc.ndim))
    return [(np.maximum(total, 0) if step["relu_last"] else total).astype(np.int32)]


def reference_real(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """f32(f32(acc) + f32(bias)) * f32(f32(1 / s_x) / s_w)."""
    acc, scales = inputs[0], inputs[3]
    with np.errstate(all="ignore"):
        factor = np.float32(1) / scale_of(ends_of(inputs, 1), step["codes"]) / _by_channel(step, scales, acc.ndim)
        real = _total(step, acc, inputs[4]) * factor
    return [(np.where(real > 0, real, _ZERO) if step["relu_last"] else real).astype(np.float32)]


def reference_sum(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Stored as the other tensor's type, whose quantized values the result has in common; s32 in its own."""
    acc, other = inputs[0], inputs[7]
    scales = _by_channel(step, inputs[3], acc.ndim)
    with np.errstate(all="ignore"):
        data, others = scale_of(ends_of(inputs, 1), step["codes"]), scale_of(ends_of(inputs, 8), step["other"])
        value = _total(step, acc, inputs[4])
        result: Any = data * scales
        if step["dtype"] != "s32":
            result = scale_of(ends_of(inputs, 5), step["dtype"])
            value = value * (result / data / scales)
        if step["relu_first"]:
            value = np.maximum(value, _ZERO)
        factor = result / others
    rule = SUM[step.rules["layer_sum"]]
    stored = rule(value, other, factor, "s32" if step["dtype"] == "s32" else step["other"])
    if step["relu_last"]:
        stored = np.maximum(stored, 0)
    if step["dtype"] == "s32":
        return [stored.astype(np.int32)]
    return [stored.astype(other.dtype).view(data_type(step["dtype"]).numpy)]


OPERATORS = (
    Operator("add_bias", ("add_bias",), infer_bias, lower_bias, reference_bias, "sums and a bias per channel"),
    Operator(
        "layer_sum",
        ("layer_sum",),
        infer_sum,
        lower_sum,
        reference_sum,
        "a layer's sums and another tensor as quantized values of a range",
    ),
    Operator("range_to_real", (), infer_real, lower_real, reference_real, "a layer's sums as real numbers"),
)

"""finish_sums: what becomes of a layer's sums [N, O, ...] over tensors with ranges.

Operands: acc (s32), bias (f32 or s8 [O]), another tensor; low and high of x, scales of w, low and high of the result,
low and high of the other tensor. To s32 without ranges: acc + bias. To f32: v = f32(f32(acc) + f32(bias)) * f, f of
range_operands. With another tensor: y = store(fma(other, f32(s_y / s_other), v)); results that are sums themselves,
s32, have f = 1 and s_y = f32(s_x * s_w). Attributes `relu_first` and `relu_last` limit v, and what is stored, to 0 and
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import Attribute, data_type
from ...rules.range_layer import ADD, SUM
from ...rules.range_levels import scale_of
from ..core.base import Call, Lowered, Operator, Role, Shape, Step
from ..quantization.range_operands import check_range, ends_of

_ZERO = np.float32(0)


def infer(call: Call) -> list[Shape]:
    """The shape of the sums; bias and scales are one per channel."""
    call.expect((2, 10))
    acc = call.input(0, "sums")
    call.rank(acc, 2, 5)
    for position, role, shapes in ((1, "bias", [(acc.shape[1],)]), (5, "scales", [(1,), (acc.shape[1],)])):
        if (position == 1 or len(call.inputs) > 2) and call.input(position, role).shape not in shapes:
            shape = list(call.input(position).shape)
            raise call.invalid("BT-BIAS-LENGTH", f"{role} of shape {shape} for {acc.shape[1]} output channels")
    if len(call.inputs) > 2:
        check_range(call, 3, 4, *((6, 7, 8, 9) if call.has(2) else ()))
    if call.has(2) and call.input(2).shape != acc.shape:
        shapes_text = f"a tensor {list(call.input(2).shape)} is added to sums {list(acc.shape)}"
        raise call.invalid("BT-SHAPE-BROADCAST", shapes_text)
    return [acc.shape]


def lower(call: Call) -> Lowered:
    """Types, and where numbers below 0 become 0."""
    flags: dict[str, Attribute] = {"relu_last": bool(call.attribute("relu_last")), "channels_last": False}
    if "add_bias" in call.rules:
        return Lowered(flags)
    flags["data_type"] = call.attribute("data_type")
    if "layer_sum" in call.rules:
        flags["relu_first"] = bool(call.attribute("relu_first"))
        flags |= {"other": call.input(2).dtype, "dtype": call.output.dtype}
    return Lowered(flags)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Channel by channel."""
    way = _bias if "add_bias" in step.rules else _sum if "layer_sum" in step.rules else _real
    return [way(step, inputs)]


def _by_channel(step: Step, vector: np.ndarray, rank: int) -> np.ndarray:
    return vector if step["channels_last"] else vector.reshape(-1, *(1,) * (rank - 2))


def _total(step: Step, acc: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return acc.astype(np.float32) + _by_channel(step, bias, acc.ndim).astype(np.float32)


def _bias(step: Step, inputs: Sequence[np.ndarray]) -> np.ndarray:
    acc, bias = inputs
    total = ADD[step.rules["add_bias"]](acc, _by_channel(step, bias, acc.ndim))
    return (np.maximum(total, 0) if step["relu_last"] else total).astype(np.int32)


def _real(step: Step, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """f32(f32(acc) + f32(bias)) * f32(f32(1 / s_x) / s_w)."""
    acc = inputs[0]
    with np.errstate(all="ignore"):
        factor = (
            np.float32(1) / scale_of(ends_of(inputs, 3), step["data_type"]) / _by_channel(step, inputs[5], acc.ndim)
        )
        real = _total(step, acc, inputs[1]) * factor
    return (np.where(real > 0, real, _ZERO) if step["relu_last"] else real).astype(np.float32)


def _sum(step: Step, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """Stored as the other tensor's type, whose quantized values the result has in common; s32 in its own."""
    acc, bias, other = inputs[:3]
    scales = _by_channel(step, inputs[5], acc.ndim)
    with np.errstate(all="ignore"):
        data, others = scale_of(ends_of(inputs, 3), step["data_type"]), scale_of(ends_of(inputs, 8), step["other"])
        value = _total(step, acc, bias)
        result: Any = data * scales
        if step["dtype"] != "s32":
            result = scale_of(ends_of(inputs, 6), step["dtype"])
            value = value * (result / data / scales)
        if step["relu_first"]:
            value = np.maximum(value, _ZERO)
        factor = result / others
    rule = SUM[step.rules["layer_sum"]]
    stored = rule(value, other, factor, "s32" if step["dtype"] == "s32" else step["other"])
    if step["relu_last"]:
        stored = np.maximum(stored, 0)
    if step["dtype"] == "s32":
        return stored.astype(np.int32)
    return stored.astype(other.dtype).view(data_type(step["dtype"]).numpy)


OPERATOR = Operator(
    "finish_sums",
    ("add_bias", "layer_sum"),
    infer,
    lower,
    reference,
    "a layer's sums with their bias and another tensor, as sums, quantized values or real numbers",
    roles=(Role("input", 0), Role("addend", 2)),
    layout="channels",
)

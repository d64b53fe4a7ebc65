"""QLinearConv and QLinearMatMul of ONNX in NumPy, read with the onnx package: nothing of bittrue. Every keyword is a
way to be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

Array = np.ndarray


def run(content: bytes, given: dict[str, Array], **wrong: Any) -> dict[str, Array] | None:
    """The outputs of a model of one of these operators, as ONNX Runtime computes them; None for other models."""
    graph = onnx.ModelProto.FromString(content).graph
    if len(graph.node) != 1 or graph.node[0].op_type not in _KERNELS:
        return None
    (node,) = graph.node
    known = {one.name: numpy_helper.to_array(one) for one in graph.initializer} | given
    operands = [known[name] if name else None for name in node.input]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return {node.output[0]: _KERNELS[node.op_type](operands, attributes, wrong)}


def _whole(value: Array) -> Array:
    return value.astype(np.int64)


def _convolution(operands: list[Any], attributes: dict[str, Any], wrong: dict[str, Any]) -> Array:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *rest = operands
    outside = int(x_zero) if wrong.get("pad_code") is None else wrong["pad_code"]
    zero = 0 if wrong.get("no_input_zero") else int(x_zero)
    weights = _whole(w) - _whole(np.asarray(w_zero)).reshape(-1, *(1,) * (w.ndim - 1))
    bias = _whole(rest[0]) if rest and rest[0] is not None else np.zeros(len(w), np.int64)
    if wrong.get("neighbour"):
        weights = np.roll(weights, 1, 0)
    if wrong.get("bias_twice"):
        bias = 2 * bias
    axes, taps = w.ndim - 2, w.shape[2:]
    stride = list(attributes.get("strides") or [1] * axes)
    dilation = list(attributes.get("dilations") or [1] * axes)
    before, after = _pads(x.shape[2:], taps, stride, dilation, attributes, wrong)
    wide = np.pad(_whole(x), [(0, 0), (0, 0), *zip(before, after, strict=True)], constant_values=outside) - zero
    groups = int(attributes.get("group", 1))
    out = [(wide.shape[2 + k] - (taps[k] - 1) * dilation[k] - 1) // stride[k] + 1 for k in range(axes)]
    acc = np.zeros((x.shape[0], len(w), *out), np.int64)
    inside, per_group = w.shape[1], len(w) // groups
    for tap in np.ndindex(*taps):
        place = [slice(None), slice(None)]
        for k in range(axes):
            first = tap[k] * dilation[k]
            place.append(slice(first, first + (out[k] - 1) * stride[k] + 1, stride[k]))
        part = wide[tuple(place)]
        for group in range(groups):
            rows = slice(group * per_group, (group + 1) * per_group)
            own = part[:, group * inside : (group + 1) * inside]
            acc[:, rows] += np.moveaxis(np.tensordot(weights[(rows, slice(None), *tap)], own, (1, 1)), 0, 1)
    per_channel = (-1, *(1,) * axes)
    factor = np.float32(x_scale) * np.asarray(w_scale, np.float32).reshape(-1) / np.float32(y_scale)
    return _ended(acc + bias.reshape(per_channel), factor.reshape(per_channel), y_zero, wrong)


def _pads(
    size: tuple[int, ...],
    taps: tuple[int, ...],
    stride: list[int],
    dilation: list[int],
    attributes: dict[str, Any],
    wrong: dict[str, Any],
) -> tuple[list[int], list[int]]:
    kind = attributes.get("auto_pad", b"NOTSET")
    axes = len(size)
    if kind in (b"SAME_UPPER", b"SAME_LOWER"):
        total = [
            max(0, (-(-size[k] // stride[k]) - 1) * stride[k] + (taps[k] - 1) * dilation[k] + 1 - size[k])
            for k in range(axes)
        ]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        before, after = (less, more) if kind == b"SAME_UPPER" else (more, less)
    else:
        given = [0] * 2 * axes if kind == b"VALID" else list(attributes.get("pads") or [0] * 2 * axes)
        before, after = given[:axes], given[axes:]
    return (after, before) if wrong.get("pads_swapped") else (before, after)


def _product(operands: list[Any], attributes: dict[str, Any], wrong: dict[str, Any]) -> Array:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = operands
    zero = 0 if wrong.get("no_input_zero") else int(np.asarray(a_zero).reshape(-1)[0])
    acc = (_whole(a) - zero) @ (_whole(b) - _whole(np.asarray(b_zero)))
    factor = np.float32(a_scale) * np.asarray(b_scale, np.float32) / np.float32(y_scale)
    return _ended(acc, factor, y_zero, wrong)


def _even(acc: Array, factor: Array) -> Array:
    return np.rint(acc.astype(np.float32) * factor)


def _ended(acc: Array, factor: Array, zero: Any, wrong: dict[str, Any]) -> Array:
    zero = np.asarray(zero)
    register: Callable[[Array], Array] = wrong.get("register", lambda a: (a + (1 << 31)) % (1 << 32) - (1 << 31))
    rounding: Callable[[Array, Array], Array] = wrong.get("rounding", _even)
    value = rounding(register(acc), factor * np.float32(wrong.get("times", 1)))
    limits = np.iinfo(zero.dtype)
    point = float(zero.reshape(-1)[0])
    if wrong.get("no_output_zero"):
        point = 0.0
    if wrong.get("clamp_first"):
        value = np.clip(value, limits.min, limits.max)
    return np.clip(value + point, limits.min, limits.max).astype(zero.dtype)


_KERNELS = {"QLinearConv": _convolution, "QLinearMatMul": _product}

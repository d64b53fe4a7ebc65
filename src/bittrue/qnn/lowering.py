"""Every function of `bittrue.qnn` as nodes of a graph, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..graph import Attribute, data_type
from .expr import Expr
from .writer import Writer, quantization

Lowering = Callable[[Writer, Expr, Sequence[int]], int]


def _rounding(expr: Expr) -> dict[str, Attribute]:
    """What the node says about requantization; what it leaves open is not written."""
    return {name: expr.attributes[name] for name in ("rounding", "compute_dtype") if expr.attributes[name] != "None"}


def _pair(expr: Expr, prefix: str) -> tuple[np.ndarray, np.ndarray]:
    return expr.parameters[f"{prefix}_scale"], expr.parameters[f"{prefix}_zero_point"]


def _axis(expr: Expr) -> int:
    axis = expr.attributes["axis"]
    assert isinstance(axis, int)
    return axis


def _quantize(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    given = quantization(*_pair(expr, "output"), _axis(expr))
    return writer.node("quantize", expr.operator, inputs, expr.dtype, expr.shape, {}, given, expr.name)


def _dequantize(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    scale, zero_point = _pair(expr, "input")
    several, source = scale.ndim or zero_point.ndim, writer.tensors[inputs[0]]
    if expr.dtype == "f32" and not (several and source.type.bits > 8):
        index = writer.quantized(inputs[0], quantization(scale, zero_point, _axis(expr)))
        return writer.node("dequantize", expr.operator, (index,), "f32", expr.shape, name=expr.name)
    scales, points = np.broadcast_arrays(scale, zero_point)
    operands = (
        inputs[0],
        writer.constant(scales, "f32", "input_scale"),
        writer.constant(points, "s32", "input_zero_point"),
    )
    attributes: dict[str, Attribute] = {"axis": _axis(expr), "block_size": 0, "domain": ""}
    return writer.node("dequantize_linear", expr.operator, operands, expr.dtype, expr.shape, attributes, name=expr.name)


def requantized(
    writer: Writer,
    index: int,
    given: tuple[np.ndarray, np.ndarray],
    wanted: tuple[np.ndarray, np.ndarray],
    dtype: str,
    rounding: dict[str, Attribute],
    axis: int = -1,
    name: str = "",
    source: str = "qnn.requantize",
) -> int:
    """Tensor `index` with scale and zero point `given` brought to those `wanted`, as `dtype`."""
    index = writer.quantized(index, quantization(*given, axis))
    shape = writer.tensors[index].shape
    return writer.node("quantize", source, (index,), dtype, shape, rounding, quantization(*wanted), name)


def _requantize(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return requantized(
        writer,
        inputs[0],
        _pair(expr, "input"),
        _pair(expr, "output"),
        expr.dtype,
        _rounding(expr),
        _axis(expr),
        expr.name,
        expr.operator,
    )


def _conv2d(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    """Kernels come as [O, I, h, w] here."""
    a = expr.attributes
    top, left, bottom, right = a["padding"]  # type: ignore[misc]
    points = [np.atleast_1d(expr.parameters[f"{role}_zero_point"]) for role in ("input", "kernel")]
    operands = (
        *inputs,
        writer.constant(points[0], "s32", "input_zero_point"),
        writer.constant(points[1], "s32", "kernel_zero_point"),
    )
    last = a["data_layout"] == "NHWC"
    kernel = writer.tensors[inputs[1]].shape
    attributes: dict[str, Attribute] = {
        "channels_last": last,
        "kernel_shape": kernel[2:],
        "strides": a["strides"],
        "dilations": a["dilation"],
        "pads": (top, left, bottom, right),
        "auto_pad": "NOTSET",
        "groups": a["groups"],
    }
    return writer.node("conv_integer", expr.operator, operands, expr.dtype, expr.shape, attributes, name=expr.name)


def _matmul(writer: Writer, expr: Expr, inputs: Sequence[int], points: tuple[str, str]) -> int:
    operands = [writer.constant(expr.parameters[name], "s32", name) for name in points]
    rank = len(writer.tensors[inputs[1]].shape)
    turned = writer.transpose(inputs[1], (*range(rank - 2), rank - 1, rank - 2))
    return writer.node(
        "matmul_integer", expr.operator, (inputs[0], turned, *operands), expr.dtype, expr.shape, {}, name=expr.name
    )


def _dense(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return _matmul(writer, expr, inputs, ("input_zero_point", "kernel_zero_point"))


def _batch_matmul(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return _matmul(writer, expr, inputs, ("x_zero_point", "y_zero_point"))


def _bias_add(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    shape = [1] * expr.rank
    shape[_axis(expr)] = expr.shape[_axis(expr)]
    bias = writer.tensors[inputs[1]]
    if bias.data is not None:
        addend = writer.constant(bias.values().reshape(shape), bias.dtype, bias.name)
    else:
        addend = writer.reshape(inputs[1], shape, expr.operator)
    attributes: dict[str, Attribute] = {"activation": "none", "pot_scale_int16": False}
    return writer.node("add", expr.operator, (inputs[0], addend), expr.dtype, expr.shape, attributes, name=expr.name)


def _clip(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    ends = [writer.constant(np.asarray(expr.attributes[end]), expr.dtype, end) for end in ("a_min", "a_max")]
    given = writer.tensors[inputs[0]].quantization
    return writer.node("clip", expr.operator, (*inputs, *ends), expr.dtype, expr.shape, {}, given, expr.name)


def _transpose(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return writer.transpose(inputs[0], expr.attributes["axes"], expr.operator)  # type: ignore[arg-type]


def _reshape(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return writer.reshape(inputs[0], expr.shape, expr.operator, writer.tensors[inputs[0]].quantization)


LOWERINGS: dict[str, Lowering] = {
    "clip": _clip,
    "nn.bias_add": _bias_add,
    "qnn.batch_matmul": _batch_matmul,
    "qnn.conv2d": _conv2d,
    "qnn.dense": _dense,
    "qnn.dequantize": _dequantize,
    "qnn.quantize": _quantize,
    "qnn.requantize": _requantize,
    "reshape": _reshape,
    "transpose": _transpose,
}


def limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest integer of a type."""
    kind = data_type(dtype)
    return kind.minimum, kind.maximum

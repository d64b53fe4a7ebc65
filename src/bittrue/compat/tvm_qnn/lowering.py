"""Every function of `bittrue.qnn` as nodes of a graph, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from .expr import Expr
from .lowering_elementwise import ELEMENTWISE
from .requantization import described, pair, requantized, rounding_of
from .windows import pool_attributes
from .writer import Writer, quantization

Lowering = Callable[[Writer, Expr, Sequence[int]], int]


def _axis(expr: Expr) -> int:
    axis = expr.attributes["axis"]
    assert isinstance(axis, int)
    return axis


def _linear(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    """Scales and zero points as operands."""
    attributes: dict[str, Attribute] = {"axis": max(_axis(expr), 0), "block_size": 0, "domain": ""}
    stem = "dequantize"
    if expr.operator == "qnn.quantize":
        stem, attributes = "quantize", {**attributes, "saturate": 1, "precision": "f32"}
    return writer.node(stem, expr.operator, inputs, expr.dtype, expr.shape, attributes, name=expr.name)


def _quantize(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    if len(inputs) > 1:
        return _linear(writer, expr, inputs)
    scale, zero_point = expr.parameters["output_scale"], expr.parameters["output_zero_point"]
    # One scale beside several zero points.
    attributes: dict[str, Attribute] = {"one_scale": True} if zero_point.ndim and not scale.ndim else {}
    given = quantization(scale, zero_point, _axis(expr))
    return writer.node("quantize", expr.operator, inputs, expr.dtype, expr.shape, attributes, given, expr.name)


def _dequantize(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    if len(inputs) > 1:
        return _linear(writer, expr, inputs)
    scale, zero_point = expr.parameters["input_scale"], expr.parameters["input_zero_point"]
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
    return writer.node("dequantize", expr.operator, operands, expr.dtype, expr.shape, attributes, name=expr.name)


def _requantize(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return requantized(
        writer,
        inputs[0],
        pair(expr, "input", inputs),
        pair(expr, "output", inputs),
        expr.dtype,
        rounding_of(expr),
        _axis(expr),
        expr.name,
        expr.operator,
    )


def _points(writer: Writer, expr: Expr, inputs: Sequence[int], roles: Sequence[str], vector: bool) -> list[int]:
    """Both zero points of a layer as operands, computed ones as they come; `vector`: one number is a vector, too."""
    if len(inputs) == 2:
        arrays = [(expr.parameters[f"{role}_zero_point"], role) for role in roles]
        return [writer.constant(np.atleast_1d(a) if vector else a, "s32", f"{role}_zero_point") for a, role in arrays]
    scalar = [vector and not writer.tensors[i].shape for i in inputs[2:]]
    return [writer.reshape(i, (1,), expr.operator) if s else i for i, s in zip(inputs[2:], scalar, strict=True)]


def _conv2d(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    """Kernels come as [O, I, h, w] here."""
    a = expr.attributes
    top, left, bottom, right = a["padding"]
    points = _points(writer, expr, inputs, ("input", "kernel"), vector=True)
    operands = (*inputs[:2], None, None, points[0], None, points[1])
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
    return writer.node("conv", expr.operator, operands, expr.dtype, expr.shape, attributes, name=expr.name)


def _conv2d_transpose(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    """Kernels come as [I, O, h, w] here."""
    a = expr.attributes
    points = _points(writer, expr, inputs, ("input", "kernel"), vector=True)
    attributes: dict[str, Attribute] = {
        "channels_last": a["data_layout"] == "NHWC",
        "strides": a["strides"],
        "dilations": a["dilation"],
        "pads": a["padding"],
        "output_padding": a["output_padding"],
        "output_shape": (),
        "kernel_shape": (),
        "auto_pad": "NOTSET",
        "groups": a["groups"],
    }
    return writer.node(
        "conv_transpose",
        expr.operator,
        (*inputs[:2], None, None, points[0], None, points[1]),
        expr.dtype,
        expr.shape,
        attributes,
        name=expr.name,
    )


def _simulated(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    stem = "quantize" if expr.operator.endswith("simulated_quantize") else "dequantize"
    kind = "output" if stem == "quantize" else "input"
    operands = [inputs[0]]
    for role, dtype in (("scale", "f32"), ("zero_point", "s32")):
        name = f"{kind}_{role}"
        if name in expr.computed:
            index = inputs[expr.computed.index(name) - len(expr.computed)]
            scalar = not writer.tensors[index].shape
            operands.append(writer.reshape(index, (1,), expr.operator) if scalar else index)
        else:
            operands.append(writer.constant(np.atleast_1d(expr.parameters[name]), dtype, name))
    attributes = {**expr.attributes, "in_reals": True}
    return writer.node(stem, expr.operator, operands, "f32", expr.shape, attributes, name=expr.name)


def _matmul(writer: Writer, expr: Expr, inputs: Sequence[int], roles: tuple[str, str]) -> int:
    points = _points(writer, expr, inputs, roles, vector=False)
    rank = len(writer.tensors[inputs[1]].shape)
    turned = writer.transpose(inputs[1], (*range(rank - 2), rank - 1, rank - 2))
    given = (inputs[0], turned, None, None, points[0], None, points[1])
    return writer.node("matmul", expr.operator, given, expr.dtype, expr.shape, {}, name=expr.name)


def _dense(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return _matmul(writer, expr, inputs, ("input", "kernel"))


def _batch_matmul(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return _matmul(writer, expr, inputs, ("x", "y"))


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
    return writer.transpose(inputs[0], expr.attributes["axes"], expr.operator)


def _reshape(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return writer.reshape(inputs[0], expr.shape, expr.operator, writer.tensors[inputs[0]].quantization)


def _tile(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    """One number as a vector."""
    times = writer.constant(np.array(expr.shape, np.int32), "s32", "times")
    return writer.node("tile", expr.operator, (*inputs, times), expr.dtype, expr.shape)


def _average(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    """Of the quantized values themselves where scales stay and padding does not count; else in 32 bits, padded with
    0.
    """
    a, source, output = expr.attributes, pair(expr, "input", inputs), pair(expr, "output", inputs)
    same = not expr.computed and all(np.array_equal(one, other) for one, other in zip(source, output, strict=True))
    attributes, given = pool_attributes(expr), described(output)
    padded = any(a["padding"])
    if given is not None and same and not (padded and a["count_include_pad"]):
        index = writer.quantized(inputs[0], given)
    else:
        index = requantized(writer, inputs[0], source, output, "s32", rounding_of(expr))
        attributes["counted"] = "padded" if a["count_include_pad"] else "inside"
    return writer.node("average_pool", expr.operator, (index,), expr.dtype, expr.shape, attributes, given, expr.name)


def _plain_average(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    attributes = pool_attributes(expr) | {"counted": "padded" if expr.attributes["count_include_pad"] else "inside"}
    return writer.node("average_pool", expr.operator, inputs, expr.dtype, expr.shape, attributes, name=expr.name)


def _maximum(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    given, attributes = writer.tensors[inputs[0]].quantization, pool_attributes(expr)
    if expr.dtype != "f32":
        return writer.node("max_pool", expr.operator, inputs, expr.dtype, expr.shape, attributes, given, expr.name)
    # Real numbers are compared in the order of the taps, as those in blocks of channels are.
    attributes["block"] = 1
    if not attributes["channels_last"]:
        return writer.node("max_pool", expr.operator, inputs, "f32", expr.shape, attributes, None, expr.name)
    attributes["channels_last"] = False
    first, shape = writer.transpose(inputs[0], (0, 3, 1, 2)), [expr.shape[axis] for axis in (0, 3, 1, 2)]
    found = writer.node("max_pool", expr.operator, (first,), "f32", shape, attributes, None, expr.name)
    return writer.transpose(found, (0, 2, 3, 1))


LOWERINGS: dict[str, Lowering] = {
    **ELEMENTWISE,
    "clip": _clip,
    "nn.bias_add": _bias_add,
    "nn.avg_pool2d": _plain_average,
    "nn.max_pool2d": _maximum,
    "qnn.avg_pool2d": _average,
    "qnn.batch_matmul": _batch_matmul,
    "qnn.conv2d": _conv2d,
    "qnn.conv2d_transpose": _conv2d_transpose,
    "qnn.dense": _dense,
    "qnn.dequantize": _dequantize,
    "qnn.quantize": _quantize,
    "qnn.requantize": _requantize,
    "qnn.simulated_dequantize": _simulated,
    "qnn.simulated_quantize": _simulated,
    "reshape": _reshape,
    "tile": _tile,
    "transpose": _transpose,
}

"""The plain operators of `bittrue.qnn.nn` as nodes of a graph. Values that are moved keep their parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from .expr import Expr
from .lowering import Lowering
from .writer import ONE_VALUE, Writer


def _cast(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return writer.node("cast", expr.operator, inputs, expr.dtype, expr.shape, name=expr.name)


def _reduced(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    axes = writer.constant(np.array(expr.attributes["axes"], np.int32), "s32", "axes")
    attributes = {"keep_dims": expr.attributes["keep_dims"]}
    return writer.node(expr.operator, expr.operator, (inputs[0], axes), "s32", expr.shape, attributes, name=expr.name)


def _pad(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    widths = np.array(expr.attributes["widths"], np.int32).reshape(-1, 2)
    given = writer.tensors[inputs[0]].quantization
    value = writer.constant(np.array([expr.attributes["value"]]), expr.dtype, "pad_value", given)
    operands = (inputs[0], writer.constant(widths, "s32", "paddings"), value)
    return writer.node("pad", expr.operator, operands, expr.dtype, expr.shape, ONE_VALUE, given, expr.name)


def _strided_slice(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    begin = writer.constant(np.array(expr.attributes["begin"], np.int32), "s32", "begin")
    size = writer.constant(np.array(expr.shape, np.int32), "s32", "size")
    given = writer.tensors[inputs[0]].quantization
    return writer.node("slice", expr.operator, (inputs[0], begin, size), expr.dtype, expr.shape, {}, given, expr.name)


def _of_two(stem: str) -> Lowering:
    def lowering(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
        attributes: dict[str, Attribute] = {"activation": "none", "pot_scale_int16": False}
        return writer.node(stem, expr.operator, inputs, expr.dtype, expr.shape, attributes, name=expr.name)

    return lowering


# Operators on two tensors of quantized values as they are stored.
OF_STORED = ("equal", "greater", "greater_equal", "less", "less_equal", "maximum", "minimum", "not_equal")


def _of_stored(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    """Operands may have scales, which play no part."""
    attributes: dict[str, Attribute] = {"stored": True}
    return writer.node(expr.operator, expr.operator, inputs, expr.dtype, expr.shape, attributes, name=expr.name)


# Functions of real numbers that have an operator on quantized values: its stem.
FUNCTIONS = {
    "nn.hard_swish": "hard_swish",
    "nn.leaky_relu": "leaky_relu",
    "nn.sigmoid": "logistic",
    "nn.softmax": "softmax",
    "nn.tanh": "tanh",
}


def function_attributes(expr: Expr) -> dict[str, Attribute]:
    """What the operator of one of FUNCTIONS has."""
    return {"beta": 1.0} if expr.operator == "nn.softmax" else dict(expr.attributes)


def _function(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    stem, attributes = FUNCTIONS[expr.operator], function_attributes(expr)
    return writer.node(stem, expr.operator, inputs, "f32", expr.shape, attributes, name=expr.name)


# Those that stand between real numbers: their stems.
_OF_REALS = {f"nn.{name}": name for name in ("abs", "exp", "log", "log_softmax", "rsqrt", "sqrt")}


def _function_of_reals(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    return writer.node(_OF_REALS[expr.operator], expr.operator, inputs, "f32", expr.shape, name=expr.name)


def _relu(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    attributes: dict[str, Attribute] = {"activation": "relu"}
    return writer.node("relu", expr.operator, inputs, "f32", expr.shape, attributes, name=expr.name)


def _argmax(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    axis = writer.constant(np.array(expr.attributes["axis"], np.int32), "s32", "axis")
    attributes = {"output_type": "s32"}
    return writer.node("arg_max", expr.operator, (inputs[0], axis), "s32", expr.shape, attributes, name=expr.name)


def _blocks(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    sizes = writer.constant(np.array(expr.attributes["block"], np.int32), "s32", "block_shape")
    borders = writer.constant(np.array(expr.attributes["borders"], np.int32).reshape(-1, 2), "s32", "borders")
    given, stem = writer.tensors[inputs[0]].quantization, expr.operator.removeprefix("nn.").removesuffix("_nd")
    operands = (inputs[0], sizes, borders)
    return writer.node(stem, expr.operator, operands, expr.dtype, expr.shape, {}, given, expr.name)


def _take(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    attributes: dict[str, Attribute] = {"axis": expr.attributes["axis"], "batch_dims": 0}
    given = writer.tensors[inputs[0]].quantization
    return writer.node("gather", expr.operator, inputs, expr.dtype, expr.shape, attributes, given, expr.name)


def _space_to_depth(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    given, attributes = writer.tensors[inputs[0]].quantization, dict(expr.attributes)
    return writer.node("space_to_depth", expr.operator, inputs, expr.dtype, expr.shape, attributes, given, expr.name)


def _resize2d(writer: Writer, expr: Expr, inputs: Sequence[int]) -> int:
    size = writer.constant(np.array(expr.attributes["size"], np.int32), "s32", "size")
    attributes = {"transformation": expr.attributes["mode"], "channels_last": expr.attributes["layout"] == "NHWC"}
    return writer.node("resize_linear", expr.operator, (inputs[0], size), "f32", expr.shape, attributes, name=expr.name)


PLAIN_LOWERINGS: dict[str, Lowering] = {
    "add": _of_two("add"),
    "argmax": _argmax,
    "cast": _cast,
    "image.resize2d": _resize2d,
    "mean": _reduced,
    "multiply": _of_two("mul"),
    "nn.batch_to_space_nd": _blocks,
    "nn.pad": _pad,
    "nn.relu": _relu,
    "nn.space_to_batch_nd": _blocks,
    "nn.space_to_depth": _space_to_depth,
    "strided_slice": _strided_slice,
    "sum": _reduced,
    "take": _take,
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(_OF_REALS, _function_of_reals),
    **dict.fromkeys(OF_STORED, _of_stored),
}

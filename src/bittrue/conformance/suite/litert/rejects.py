"""Negative tests of all operators of the specification: models with one thing wrong, which a device must refuse.

Each is a small model that runs, changed in one place. What is wrong with it, the reference resolver of LiteRT refuses,
or the specification alone forbids in words (`Draft.advisory`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....check.specification import SPECIFICATION
from ....graph import data_type
from ..draft import Draft, distinct
from ..tflite import one_operator
from .small_models import Parts, small_model

_Change = Callable[[Parts], Parts]


@dataclass(frozen=True)
class _Wrong:
    """One thing that is wrong.

    Attributes:
        reason: what, for people.
        change: makes it so.
        refused: the operators where LiteRT refuses it.
        forbidden: the operators where the specification forbids it; LiteRT runs it unless they are in `refused`.
    """

    reason: str
    change: _Change
    refused: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


_BINARY = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
_COMPARED = ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")
_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
_FIXED = tuple(name for name, found in SPECIFICATION.items() if found.fixed)
_SAME = tuple(name for name, found in SPECIFICATION.items() if found.same)
_ALL = tuple(SPECIFICATION)
# Their outputs are no quantized numbers.
_UNQUANTIZED = (*_COMPARED, "ARG_MAX", "SHAPE")
_QUANTIZED = tuple(name for name in _ALL if name not in _UNQUANTIZED)


def _but(names: tuple[str, ...], *left_out: str) -> tuple[str, ...]:
    return tuple(name for name in names if name not in left_out)


def _input(position: int, **changes: Any) -> _Change:
    return lambda parts: parts.input(position, **changes)


def _output(**changes: Any) -> _Change:
    return lambda parts: parts.output(**changes)


def _options(**changes: Any) -> _Change:
    return lambda parts: parts.option(**changes)


def _constant(position: int, *values: Any) -> _Change:
    """Other numbers as a constant operand, of its type."""

    def change(parts: Parts) -> Parts:
        old = parts.inputs[position]
        data = np.array(values, np.int64 if old.dtype == "s64" else np.int32)
        return parts.input(position, shape=data.shape, data=data)

    return change


def _per_axis(parts: Parts) -> Parts:
    """The first input's last axis has scales of its own."""
    size = parts.inputs[0].shape[-1]
    return parts.input(
        0, scale=np.linspace(0.25, 0.5, size).astype(np.float32), zero_point=0, axis=len(parts.inputs[0].shape) - 1
    )


def _other_scale(parts: Parts) -> Parts:
    return parts.output(scale=float(np.asarray(parts.outputs[0].scale)) * 1.5)


def _other_point(parts: Parts) -> Parts:
    return parts.output(zero_point=int(np.asarray(parts.outputs[0].zero_point)) - 1)


def _one_input_less(parts: Parts) -> Parts:
    return replace(parts, inputs=parts.inputs[:-1])


def _one_input_more(parts: Parts) -> Parts:
    return replace(parts, inputs=(*parts.inputs, parts.inputs[0]))


def _weights(**changes: Any) -> _Change:
    """Other weights; `scale` is a function of the right scales."""

    def change(parts: Parts) -> Parts:
        old = parts.inputs[1]
        made = dict(changes)
        if callable(made.get("scale")):
            made["scale"] = made["scale"](np.asarray(old.scale))
        if "dtype" in made:
            made["data"] = np.zeros(old.shape, np.int64)
        if "shape" in made:
            made["data"] = np.zeros(made["shape"], np.int64)
        return parts.input(1, **made)

    return change


def _bias(**changes: Any) -> _Change:
    def change(parts: Parts) -> Parts:
        old = parts.inputs[2]
        made = dict(changes)
        if callable(made.get("scale")):
            made["scale"] = made["scale"](np.asarray(old.scale))
        if "shape" in made:
            made["data"] = np.zeros(made["shape"], np.int64)
        return parts.input(2, **made)

    return change


WRONG: tuple[_Wrong, ...] = (
    # Of all operators.
    _Wrong("the operator has a version that does not exist", lambda parts: replace(parts, version=120), _ALL),
    _Wrong(
        "an input is missing",
        _one_input_less,
        _but(_ALL, "CONCATENATION", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "RESHAPE", "PADV2"),
    ),
    _Wrong("there is an input too many", _one_input_more, _but(_ALL, "CONCATENATION")),
    _Wrong(
        "the first input is real and the output quantized",
        _input(0, dtype="f32", scale=None),
        _but(_ALL, "RESHAPE", "RESIZE_BILINEAR", "SOFTMAX", "GATHER", "MEAN", "SUM", "ARG_MAX", "SHAPE", "QUANTIZE"),
    ),
    _Wrong(
        "the first input has 16 bits and all others have 8",
        _input(0, dtype="s16", zero_point=0),
        _but(_ALL, "FULLY_CONNECTED", "RESHAPE", "RESIZE_BILINEAR", "GATHER", "SHAPE", "QUANTIZE"),
    ),
    _Wrong(
        "the output has 16 bits and the inputs have 8",
        _output(dtype="s16", zero_point=0),
        _but(
            _QUANTIZED,
            "ADD",
            "FULLY_CONNECTED",
            "RESHAPE",
            "RESIZE_BILINEAR",
            "SOFTMAX",
            "GATHER",
            "MEAN",
            "SUB",
            "SUM",
            "MAXIMUM",
            "MINIMUM",
            "QUANTIZE",
        ),
    ),
    _Wrong(
        "the first input is uint8 and all others are int8",
        _input(0, dtype="u8"),
        _but(_ALL, "RESHAPE", "RESIZE_BILINEAR", "GATHER", "MEAN", "SUM", "SQUEEZE", "ARG_MAX", "SHAPE", "QUANTIZE"),
    ),
    _Wrong(
        "the first input's zero point, 128, lies outside of [-128, 127]",
        _input(0, zero_point=128),
        ("CONCATENATION", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "SUB"),
        _ALL,
    ),
    _Wrong(
        "the output's zero point, -129, lies outside of [-128, 127]",
        _output(zero_point=-129),
        (
            "CONCATENATION",
            "L2_NORMALIZATION",
            "SOFTMAX",
            "PAD",
            "BATCH_TO_SPACE_ND",
            "SPACE_TO_BATCH_ND",
            "SUB",
            "LOG_SOFTMAX",
            "PADV2",
        ),
        _QUANTIZED,
    ),
    _Wrong(
        "the first input is quantized per axis, and activations are per tensor",
        _per_axis,
        (*_COMPARED, "ADD", "CONCATENATION", "SOFTMAX", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "SUB", "LOG_SOFTMAX"),
        _ALL,
    ),
    _Wrong(
        "the first input has no scale",
        _input(0, scale=None),
        (
            *_COMPARED,
            *_LAYERS,
            "ADD",
            "CONCATENATION",
            "SOFTMAX",
            "BATCH_TO_SPACE_ND",
            "SPACE_TO_BATCH_ND",
            "SUB",
            "LOG_SOFTMAX",
        ),
    ),
    # Parameters that operators prescribe.
    _Wrong(
        "the output has another scale than the input, and both must be the same",
        _other_scale,
        ("CONCATENATION", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "PADV2"),
        _SAME,
    ),
    _Wrong(
        "the output has another zero point than the input, and both must be the same",
        _other_point,
        ("CONCATENATION", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "PADV2"),
        _SAME,
    ),
    _Wrong(
        "the output's scale is not the prescribed one",
        _other_scale,
        ("L2_NORMALIZATION", "LOGISTIC", "SOFTMAX", "LOG_SOFTMAX"),
        ("TANH",),
    ),
    _Wrong(
        "the output's zero point is not the prescribed one",
        lambda p: p.output(zero_point=5),
        ("L2_NORMALIZATION", "SOFTMAX", "LOG_SOFTMAX"),
        ("LOGISTIC", "TANH"),
    ),
    _Wrong(
        "the inputs have different scales, and all must be the same",
        _input(1, scale=0.75),
        ("CONCATENATION",),
        ("MAXIMUM", "MINIMUM"),
    ),
    _Wrong("the value for the border has another scale than the input", _input(2, scale=0.75), ("PADV2",)),
    # Weights and biases.
    _Wrong(
        "the weights' zero point is not 0",
        _weights(zero_point=3),
        ("CONV_2D",),
        ("DEPTHWISE_CONV_2D", "FULLY_CONNECTED"),
    ),
    _Wrong(
        "the weights are quantized along another axis", _weights(axis=1, scale=lambda s: np.resize(s, 2)), ("CONV_2D",)
    ),
    _Wrong(
        "the weights are quantized along another axis",
        _weights(axis=1, scale=lambda s: np.resize(s, 2)),
        (),
        ("DEPTHWISE_CONV_2D",),
    ),
    _Wrong(
        "the weights are quantized along another axis",
        _weights(axis=1, scale=lambda s: np.resize(s, 8)),
        ("FULLY_CONNECTED",),
    ),
    _Wrong("the weights have one scale too few", _weights(scale=lambda s: s[:-1]), ("CONV_2D", "FULLY_CONNECTED")),
    _Wrong("the weights have one scale too many", _weights(scale=lambda s: np.append(s, s[-1])), _LAYERS),
    _Wrong("the weights are 16-bit integers", _weights(dtype="s16"), _LAYERS),
    _Wrong("the weights are unsigned and the inputs are not", _weights(dtype="u8"), _LAYERS),
    _Wrong("the weights have no scale", _weights(scale=None), _LAYERS),
    _Wrong("the filters have rank 3", _weights(shape=(3, 2, 2)), ("CONV_2D", "DEPTHWISE_CONV_2D")),
    _Wrong("the filters have 3 input channels and the image has 2", _weights(shape=(3, 2, 2, 3)), ("CONV_2D",)),
    _Wrong(
        "the filters have 3 channels and the image has 2",
        _weights(shape=(1, 2, 2, 3), scale=lambda s: np.resize(s, 3)),
        ("DEPTHWISE_CONV_2D",),
    ),
    _Wrong("the bias has one element too few", _bias(shape=(1,)), _LAYERS),
    _Wrong("the bias has one element too many", _bias(shape=(7,)), _LAYERS),
    _Wrong("the bias has 8 bits", _bias(dtype="s8"), _LAYERS),
    _Wrong("the bias has 64 bits beside an 8-bit input", _bias(dtype="s64"), ("CONV_2D", "DEPTHWISE_CONV_2D")),
    _Wrong("the bias is real", _bias(dtype="f32", scale=None), _LAYERS),
    _Wrong("the bias has a zero point", _bias(zero_point=9), (), _LAYERS),
    _Wrong(
        "the bias has twice the scale of input times weights", _bias(scale=lambda s: s * np.float32(2)), (), _LAYERS
    ),
    _Wrong("the stride is 0", _options(stride_w=0, stride_h=0), (*_POOLS, "CONV_2D", "DEPTHWISE_CONV_2D")),
    _Wrong("the dilation is 0", _options(dilation_w_factor=0, dilation_h_factor=0), ("CONV_2D", "DEPTHWISE_CONV_2D")),
    _Wrong(
        "the input has rank 2",
        _input(0, shape=(4, 8)),
        (
            *_POOLS,
            "CONV_2D",
            "DEPTHWISE_CONV_2D",
            "RESIZE_BILINEAR",
            "SPACE_TO_DEPTH",
            "BATCH_TO_SPACE_ND",
            "SPACE_TO_BATCH_ND",
        ),
    ),
    _Wrong(
        "the input's channels are no multiple of the filter's",
        _input(0, shape=(1, 4, 4, 3)),
        ("CONV_2D", "DEPTHWISE_CONV_2D"),
    ),
    # Shapes.
    _Wrong("dimensions 3 and 4 do not broadcast", _input(1, shape=(2, 4)), (*_BINARY, *_COMPARED)),
    _Wrong("the second input has another type", _input(1, dtype="u8"), (*_BINARY, *_COMPARED, "CONCATENATION")),
    _Wrong("the second input is real", _input(1, dtype="f32", scale=None), (*_BINARY, *_COMPARED, "CONCATENATION")),
    _Wrong("dimensions beside the axis differ", _input(1, shape=(3, 5)), ("CONCATENATION",)),
    _Wrong("ranks differ", _input(1, shape=(2, 5, 1)), ("CONCATENATION",)),
    _Wrong("the axis, 2, is beyond the rank", _options(axis=2), ("CONCATENATION", "GATHER")),
    _Wrong(
        "there is a fused activation", _options(fused_activation_function="RELU"), ("CONCATENATION", "L2_NORMALIZATION")
    ),
    _Wrong("the fused activation is TANH", _options(fused_activation_function="TANH"), ("FULLY_CONNECTED",)),
    _Wrong("the wanted shape has another number of elements", _constant(1, 3, 5), ("RESHAPE",)),
    _Wrong("two sizes of the wanted shape are left open", _constant(1, -1, -1), ("RESHAPE",)),
    _Wrong("a dimension of the wanted shape is -2", _constant(1, -2, 6), ("RESHAPE",)),
    _Wrong("the rest does not divide by the wanted dimensions", _constant(1, -1, 5), ("RESHAPE",)),
    _Wrong("the squeezed axis has size 6", _options(squeeze_dims=(1,)), ("SQUEEZE",)),
    _Wrong("the squeezed axis, 3, is beyond the rank", _options(squeeze_dims=(3,)), ("SQUEEZE",)),
    _Wrong("three numbers for height and width", _constant(1, 8, 8, 2), ("RESIZE_BILINEAR",)),
    _Wrong("the new height is negative", _constant(1, -8, 8), ("RESIZE_BILINEAR",)),
    _Wrong("the new height is 0", _constant(1, 0, 8), ("RESIZE_BILINEAR",)),
    _Wrong(
        "corners and pixel centres are both aligned",
        _options(align_corners=True, half_pixel_centers=True),
        ("RESIZE_BILINEAR",),
    ),
    _Wrong("the block is 3 and the image 4 x 4", _options(block_size=3), ("SPACE_TO_DEPTH",)),
    _Wrong("the block is 0", _options(block_size=0), ("SPACE_TO_DEPTH",)),
    _Wrong(
        "the block is 3 in one direction and the image 4 x 4",
        _constant(1, 3, 2),
        ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"),
    ),
    _Wrong("the block is 0 in one direction", _constant(1, 0, 2), ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND")),
    _Wrong("a block of three directions", _constant(1, 2, 2, 1), ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND")),
    _Wrong("a padding or crop is negative", _constant(2, (-1, 0), (0, 0)), ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND")),
    _Wrong("crops are larger than the image", _constant(2, (3, 2), (0, 0)), ("BATCH_TO_SPACE_ND",)),
    _Wrong("paddings leave no whole blocks", _constant(2, (1, 0), (0, 0)), ("SPACE_TO_BATCH_ND",)),
    _Wrong("paddings for one axis of two", _constant(1, (0, 1)), ("PAD", "PADV2")),
    _Wrong("paddings for three axes of two", _constant(1, (0, 1), (2, 0), (0, 0)), ("PAD", "PADV2")),
    _Wrong("a padding is negative", _constant(1, (-1, 1), (2, 0)), ("PAD", "PADV2")),
    _Wrong("the value for the border has two elements", _input(2, shape=(2,), data=np.array([7, 8])), ("PADV2",)),
    _Wrong("the value for the border has another type", _input(2, dtype="u8"), ("PADV2",)),
    _Wrong("a position, 4, is beyond the axis", _constant(1, 4, 0), ("GATHER",)),
    _Wrong("a position is negative", _constant(1, -1, 0), ("GATHER",)),
    _Wrong("the positions are real numbers", _input(1, dtype="f32"), ("GATHER",)),
    _Wrong("more batch dimensions than the positions have", _options(batch_dims=2), ("GATHER",)),
    _Wrong("an order of two axes for three", _constant(1, 1, 0), ("TRANSPOSE",)),
    _Wrong("the order names axis 3 of three", _constant(1, 3, 0, 1), ("TRANSPOSE",)),
    _Wrong("the order is real", _input(1, dtype="f32"), ("TRANSPOSE",)),
    _Wrong("the slice begins behind the end", _constant(1, 5, 0), ("SLICE",)),
    _Wrong("the slice begins below 0", _constant(1, -1, 0), ("SLICE",)),
    _Wrong("the slice ends behind the end", _constant(2, 4, 3), ("SLICE",)),
    _Wrong("the slice has size -2", _constant(2, -2, 3), ("SLICE",)),
    _Wrong("begins for one axis of two", _constant(1, 1), ("SLICE",)),
    _Wrong("the axis, 3, is beyond the rank", _constant(1, 3), ("MEAN", "SUM")),
    _Wrong("the axis, -4, is beyond the rank", _constant(1, -4), ("MEAN", "SUM")),
    _Wrong("the axes are real numbers", _input(1, dtype="f32"), ("MEAN", "SUM")),
    _Wrong("the axis, 2, is beyond the rank", _input(1, data=np.array(2, np.int32)), ("ARG_MAX",)),
    _Wrong("the axis, -3, is beyond the rank", _input(1, data=np.array(-3, np.int32)), ("ARG_MAX",)),
    _Wrong("the axis is real", _input(1, dtype="f32"), ("ARG_MAX",)),
    _Wrong("the output type is a real number", lambda p: p.option(out_type="FLOAT32").output(dtype="f32"), ("SHAPE",)),
    _Wrong("the output type is an 8-bit integer", lambda p: p.option(out_type="INT8").output(dtype="s8"), ("SHAPE",)),
    _Wrong("the input has rank 0", _input(0, shape=()), ("SOFTMAX", "LOG_SOFTMAX")),
)


def rejects(operator: str, types: str) -> Iterator[Draft]:
    """Models of `operator` that a device must refuse."""
    if types != "s8" or operator not in SPECIFICATION:
        return
    for wrong in WRONG:
        if operator in wrong.refused:
            yield _draft(operator, wrong, advisory=False)
        elif operator in wrong.forbidden:
            yield _draft(operator, wrong, advisory=True)


def _draft(operator: str, wrong: _Wrong, advisory: bool) -> Draft:
    who = "specification" if advisory else "LiteRT refuses"
    parts = wrong.change(small_model(operator))
    content = one_operator(operator, parts.inputs, parts.outputs, parts.options, parts.version)
    return Draft("rejects", content, _feeds(parts), wrong.reason, f"{who}: {wrong.reason}", advisory=advisory)


def _feeds(parts: Parts) -> dict[str, np.ndarray]:
    found = {}
    for position, given in enumerate(parts.inputs):
        if given is not None and given.data is None:
            kind = data_type(given.dtype)
            small = kind.name in ("s8", "u8", "s16")
            zeros = np.zeros(given.shape, kind.numpy)
            found[given.name or f"input{position}"] = distinct(given.dtype, given.shape) if small else zeros
    return found

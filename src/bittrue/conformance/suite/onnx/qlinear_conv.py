"""QLinearConv and convolutions between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ....graph import data_type
from ..draft import Draft, generator
from ..onnx_layers import (
    AIMED,
    IMAGES,
    TYPES,
    Layer,
    aimed,
    image,
    long_sums,
    output_shape,
    saturating_pairs,
    usual,
    wide_products,
)
from ..onnx_model import OnnxModel, declared

OPERATORS = {"QLinearConv": ("s8", "u8", "u8u8"), "QDQ Conv": ("s8", "u8", "u8u8")}

_USUAL: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((1, 8, 8, 8), (12, 8, 3, 3), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ((1, 16, 6, 6), (16, 1, 3, 3), {"kernel_shape": [3, 3], "group": 16, "strides": [2, 2]}),
    ((1, 32, 5, 5), (16, 32, 1, 1), {"kernel_shape": [1, 1]}),
    ((2, 3, 9, 9), (8, 3, 5, 5), {"kernel_shape": [5, 5], "strides": [2, 2], "pads": [2, 2, 2, 2]}),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Chosen accumulators in convolutions of 1x1, then geometry, then sums that 16 bits do not hold."""
    for layer in _layers(operator, types):
        yield draft(operator, layer)
    yield from _rejects(operator, types)


def _layers(operator: str, types: str) -> Iterator[Layer]:
    for number, wanted in enumerate(AIMED):
        layer = aimed(types, wanted, generator(operator, types, "aimed", number), True)
        terms, channels = layer.x.shape[1], wanted.channels
        yield replace(
            layer,
            x=np.ascontiguousarray(layer.x.T).reshape(1, terms, *wanted.image),
            w=layer.w.reshape(channels, terms, 1, 1),
            attributes={"kernel_shape": [1, 1]},
        )
    for number, geometry in enumerate(IMAGES):
        random = generator(operator, types, "picture", number)
        yield image(types, geometry, random, biased=number % 3 != 2, per_channel=number % 2 == 0)
    pairs = generator(operator, types, "pairs")
    yield saturating_pairs(types, (1, 12, 3, 4), (5, 12, 2, 2), pairs, {"kernel_shape": [2, 2]})
    yield _one_pair(operator, types)
    long = long_sums(types, generator(operator, types, "long sums"), True)
    for layer in (long, wide_products(types, generator(operator, types, "wide products"))):
        x, w = np.ascontiguousarray(layer.x.T), layer.w
        attributes = {"kernel_shape": [1, 1]}
        yield replace(layer, x=x.reshape(1, -1, 2, 2), w=w[..., None, None], attributes=attributes)
    for number, (x_shape, w_shape, attributes) in enumerate(_USUAL):
        random = generator(operator, types, "usual", number)
        yield usual(types, x_shape, w_shape, random, attributes=attributes)


def _one_pair(operator: str, types: str) -> Layer:
    """The largest products of all, made small again by the bias: one unit too little is seen."""
    x_kind, w_kind = (data_type(name) for name in TYPES[types])
    zw = 0 if w_kind.minimum else 128
    x = np.full((1, 4, 3, 5), x_kind.minimum if x_kind.minimum else x_kind.maximum)
    # Weights of -128 in pairs, beside each other and apart; the bias takes their products off, all but a quantized
    # value.
    w = np.full((6, 4, 1, 1), zw)
    for channel, places in enumerate(((0, 1), (2, 3), (0, 2), (1, 3), (0, 1, 2, 3), (0, 3))):
        w[channel, list(places)] = -128 + zw
    quantized = int(x[0, 0, 0, 0])
    bias = -(w.reshape(6, 4) - zw).sum(axis=1) * quantized + np.arange(-3, 3) * 9
    return Layer(
        "saturation",
        "pairs of the largest products, small sums (numerics onnxruntime-avx2 saturates u8 by s8)",
        *TYPES[types],
        x.astype(x_kind.numpy),
        w.astype(w_kind.numpy),
        bias.astype(np.int32),
        0.5,
        0,
        np.array([0.5], np.float32),
        np.array([zw], w_kind.numpy),
        0.25,
        0 if x_kind.minimum else 128,
        {"kernel_shape": [1, 1]},
    )


def draft(operator: str, layer: Layer) -> Draft:
    """The case that a layer makes."""
    shape = output_shape(layer.x.shape, layer.w.shape, layer.attributes)
    return Draft(layer.aim, content(operator, layer, shape), {"x": layer.x}, layer.note, seeks=layer.seeks)


def content(operator: str, layer: Layer, shape: tuple[int, ...]) -> bytes:
    """The model."""
    model = OnnxModel()
    x = model.input("x", layer.x_type, layer.x.shape)
    # One parameter for all channels is a scalar, as the operators want it.
    w_scale, w_zero_point = (p.reshape(()) if p.size == 1 else p for p in (layer.w_scale, layer.w_zero_point))
    x_scale = model.constant(np.float32(layer.x_scale), name="x_scale")
    x_point = model.constant(layer.x_zero_point, layer.x_type, "x_zero_point")
    w = model.constant(layer.w, name="w")
    w_scale_name = model.constant(w_scale, name="w_scale")
    w_point = model.constant(w_zero_point, layer.w_type, "w_zero_point")
    y_scale = model.constant(np.float32(layer.y_scale), name="y_scale")
    y_point = model.constant(layer.y_zero_point, layer.x_type, "y_zero_point")
    bias = [] if layer.bias is None else [model.constant(layer.bias, name="bias")]
    if operator == "QLinearConv":
        operands = [x, x_scale, x_point, w, w_scale_name, w_point, y_scale, y_point, *bias]
        model.node("QLinearConv", operands, ["y"], layer.attributes)
        return model.output("y", layer.x_type, shape).write()
    real_x = model.node("DequantizeLinear", [x, x_scale, x_point])
    axis = {"axis": 0} if w_scale.ndim else {}
    real_w = model.node("DequantizeLinear", [w, w_scale_name, w_point], attributes=axis)
    real = [real_x, real_w]
    if bias:
        b_scale = np.float32(layer.x_scale) * w_scale
        real.append(
            model.node("DequantizeLinear", [*bias, model.constant(b_scale, name="bias_scale")], attributes=axis)
        )
    model.node("QuantizeLinear", [model.node("Conv", real, attributes=layer.attributes), y_scale, y_point], ["y"])
    return model.output("y", layer.x_type, shape).write()


def _rejects(operator: str, types: str) -> Iterator[Draft]:
    """Channels, groups and parameters that do not fit together."""
    random = generator(operator, types, "rejects")
    good = usual(types, (1, 4, 5, 5), (6, 4, 3, 3), random, attributes={"kernel_shape": [3, 3]})
    bad = (
        ("filters of 3 channels for images of 4", replace(good, w=good.w[:, :3])),
        ("6 filters in 4 groups", replace(good, w=good.w[:, :1], attributes={**good.attributes, "group": 4})),
        ("kernel_shape is 2x2, filters are 3x3", replace(good, attributes={"kernel_shape": [2, 2]})),
    )
    for why, layer in bad:
        content_ = content(operator, layer, (1, 6, 3, 3))
        yield Draft("rejects", content_, {"x": layer.x}, why, why)
    other = "s8" if good.x_type == "u8" else "u8"
    why = f"the result is declared {other}, its zero point is {good.x_type}"
    yield Draft("rejects", declared(content(operator, good, (1, 6, 3, 3)), other), {"x": good.x}, why, why)

"""Matrix products on quantized values: QLinearMatMul, QGemm, and MatMul and Gemm between DequantizeLinear and
QuantizeLinear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ....graph import data_type
from ..draft import Draft, between, generator
from ..onnx_layers import (
    AIMED,
    TYPES,
    Layer,
    aimed,
    long_sums,
    point,
    saturating_pairs,
    usual,
    weight_point,
    wide_products,
)
from ..onnx_model import MICROSOFT, OnnxModel, declared

OPERATORS = dict.fromkeys(("QLinearMatMul", "QGemm", "QDQ MatMul", "QDQ Gemm"), ("s8", "u8", "u8u8"))

_BIASED = ("QGemm", "QDQ Gemm")
# Activations and weights of products whose sums are random: vectors, odd ends, batches, long sums.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    ((1, 33), (33, 17), "one row, 33 terms"),
    ((7, 5), (5, 3), "7 rows, 5 terms, 3 columns"),
    ((5, 64), (64, 16), "whole vectors"),
    ((3, 259), (259, 5), "259 terms"),
    ((2, 2049), (2049, 4), "2049 terms"),
    ((1, 1), (1, 1), "one product"),
)
_BATCHES: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    ((3, 4, 6), (6, 5), "a batch of 3"),
    ((2, 3, 7), (2, 7, 4), "two products with weights of their own"),
    ((2, 1, 3, 9), (5, 9, 2), "batches that broadcast"),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Chosen accumulators, then shapes, then sums that 16 bits do not hold, then usual layers."""
    biased = operator in _BIASED
    for number, wanted in enumerate(AIMED):
        layer = aimed(types, wanted, generator(operator, types, "aimed", number), biased)
        yield draft(operator, layer, number)
    shapes = _SHAPES if biased else (*_SHAPES, *_BATCHES)
    for number, (x, w, note) in enumerate(shapes):
        random = generator(operator, types, "shapes", number)
        yield draft(operator, _random_sums(operator, types, x, w, note, random), number)
    pairs = saturating_pairs(types, (6, 50), (9, 50), generator(operator, types, "pairs"))
    yield draft(operator, pairs, 0)
    yield draft(operator, _one_pair(types), 0)
    for back in (True,) if biased else (True, False):
        yield draft(operator, long_sums(types, generator(operator, types, "long sums", int(back)), back), 0)
    yield draft(operator, wide_products(types, generator(operator, types, "wide products")), 0)
    for number, (rows, terms, columns) in enumerate(((8, 48, 16), (4, 200, 10), (16, 24, 33), (1, 512, 32))):
        random = generator(operator, types, "usual", number)
        layer = usual(types, (rows, terms), (columns, terms), random, biased)
        yield draft(operator, layer, number)
    yield from _rejects(operator, types)


def _random_sums(
    operator: str, types: str, x: tuple[int, ...], w: tuple[int, ...], note: str, random: np.random.Generator
) -> Layer:
    x_kind, w_kind = (data_type(name) for name in TYPES[types])
    zx, zw = point(TYPES[types][0], between(random, 0.2, 0.8)), weight_point(TYPES[types][1])
    terms = w[-2]
    exponent = math.frexp(100 / (2.0 * math.sqrt(terms) * 74))[1] - 1 - int(terms < 9)
    single = len(w) > 2
    w_scale = np.ldexp(4.0, random.integers(exponent, exponent + 2, 1 if single else w[-1]))
    values = random.integers(-3, 4, w) + zw
    return Layer(
        "shapes",
        note,
        *TYPES[types],
        random.integers(x_kind.minimum, x_kind.maximum, x, endpoint=True).astype(x_kind.numpy),
        np.swapaxes(values, -1, -2).astype(w_kind.numpy),
        random.integers(-200, 200, w[-1]).astype(np.int32) if operator in _BIASED and terms != 5 else None,
        2.0**-5,
        zx,
        w_scale.astype(np.float32),
        np.full(w_scale.shape, zw, w_kind.numpy),
        2.0**-3,
        point(TYPES[types][0], between(random, 0.3, 0.7)),
    )


def _one_pair(types: str) -> Layer:
    """The largest products of all, made small again by others: one unit too little is seen."""
    x_kind, w_kind = (data_type(name) for name in TYPES[types])
    zw = 0 if w_kind.minimum else 128
    end = x_kind.minimum if x_kind.minimum else x_kind.maximum
    w = np.zeros((3, 8), np.int64)
    w[0, :6] = -128, -128, 127, 127, 1, 1
    w[1, 1:8] = 127, 127, 127, -128, -128, -128, 2
    w[2, :8] = 127, 1, 127, 1, -128, 0, -128, 0
    x = np.full((4, 8), end)
    x[1, 4:] -= np.sign(end) * 7
    return Layer(
        "saturation",
        "pairs of the largest products, small sums (numerics onnxruntime-avx2 saturates u8 by s8)",
        *TYPES[types],
        x.astype(x_kind.numpy),
        (w + zw).astype(w_kind.numpy),
        None,
        0.5,
        0,
        np.array([0.5], np.float32),
        np.array([zw], w_kind.numpy),
        0.25 if x_kind.minimum else 8.0,
        0 if x_kind.minimum else 128,
    )


def draft(operator: str, layer: Layer, number: int) -> Draft:
    """The case that a layer makes; Gemm's weights lie transposed in every other one."""
    w = np.swapaxes(layer.w, -1, -2)
    shape = (*np.broadcast_shapes(layer.x.shape[:-2], w.shape[:-2]), layer.x.shape[-2], w.shape[-1])
    transposed = operator in _BIASED and number % 2 == 1
    content = _content(operator, layer, layer.w if transposed else w, shape, transposed)
    return Draft(layer.aim, content, {"x": layer.x}, layer.note, seeks=layer.seeks)


def _content(operator: str, layer: Layer, w: np.ndarray, shape: tuple[int, ...], transposed: bool) -> bytes:
    model = OnnxModel()
    x = model.input("x", layer.x_type, layer.x.shape)
    w_scale, w_point = (p.reshape(()) if p.size == 1 else p for p in (layer.w_scale, layer.w_zero_point))
    x_pair = [
        model.constant(np.float32(layer.x_scale), name="x_scale"),
        model.constant(layer.x_zero_point, layer.x_type, "x_zero_point"),
    ]
    w_name = model.constant(w, name="w")
    w_pair = [model.constant(w_scale, name="w_scale"), model.constant(w_point, layer.w_type, "w_zero_point")]
    y_pair = [
        model.constant(np.float32(layer.y_scale), name="y_scale"),
        model.constant(layer.y_zero_point, layer.x_type, "y_zero_point"),
    ]
    bias = "" if layer.bias is None else model.constant(layer.bias, name="bias")
    turned: dict[str, Any] = {"transB": 1} if transposed else {}
    if operator == "QLinearMatMul":
        model.node(operator, [x, *x_pair, w_name, *w_pair, *y_pair], ["y"])
    elif operator == "QGemm":
        model.node(operator, [x, *x_pair, w_name, *w_pair, bias, *y_pair], ["y"], turned, MICROSOFT)
    else:
        axis = {"axis": w.ndim - 1 - int(transposed)} if w_scale.ndim else {}
        real = [
            model.node("DequantizeLinear", [x, *x_pair]),
            model.node("DequantizeLinear", [w_name, *w_pair], attributes=axis),
        ]
        if bias:
            b_scale = model.constant(np.float32(layer.x_scale) * w_scale, name="bias_scale")
            real.append(model.node("DequantizeLinear", [bias, b_scale], attributes={"axis": 0} if w_scale.ndim else {}))
        product = model.node(operator.removeprefix("QDQ "), real, attributes=turned)
        model.node("QuantizeLinear", [product, *y_pair], ["y"])
    return model.output("y", layer.x_type, shape).write()


def _rejects(operator: str, types: str) -> Iterator[Draft]:
    """Dimensions of sums that differ; results of another type than the zero point has."""
    random = generator(operator, types, "rejects")
    good = usual(types, (3, 8), (4, 8), random, operator in _BIASED)
    short = replace(good, w=good.w[:, :7])
    why = "8 terms of activations, 7 of weights"
    yield replace(draft(operator, short, 0), aim="rejects", note=why, rejects=why, seeks={})
    other = {"s8": "u8", "u8": "s8"}[good.x_type]
    content = _content(operator, good, good.w.T, (3, 4), False)
    why = f"the result is declared {other}, its zero point is {good.x_type}"
    yield Draft("rejects", declared(content, other), {"x": good.x}, why, why)

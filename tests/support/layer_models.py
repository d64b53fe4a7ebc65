"""Small models of accumulating layers, one per family and geometry that explanations know."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from . import onnx_models
from .build import T, single
from .strategies import seeded

Made = tuple[bytes, str]


def _conv(kind: str, numerics: str, depthwise: bool = False, groups: int = 1, padding: int = 0) -> Made:
    weight_type = "u8" if kind == "u8" else "s8"
    filters = 12
    shape = (1, 3, 3, filters) if depthwise else (filters, 3, 3, 6 // groups)
    per_axis = kind != "u8"
    scale = [0.01 * (1 + c % 5) for c in range(filters)] if per_axis else 0.01
    w = T(weight_type, shape, scale, 0 if per_axis else 99, 3 if depthwise else 0, seeded(weight_type, shape, 3))
    bias = np.random.default_rng(4).integers(-3000, 3000, filters)
    b = T("s64" if kind == "s16" else "s32", (filters,), 0.0001, 0, 0, bias)
    x = T(kind, (1, 7, 8, 6), 0.1, 0 if kind == "s16" else 3)
    options = {"padding": padding, "strideH": 2, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 2}
    if depthwise:
        options["depthMultiplier"] = 2
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    version = 5 if kind == "s16" else 3
    y = T(kind, (), 0.9, 0 if kind == "s16" else -5 if kind == "s8" else 120)
    return single(name, (table, {**options, "fusedActivationFunction": 1}), [x, w, b], [y], version=version), numerics


def _fully_connected(kind: str, numerics: str) -> Made:
    weight_type = "u8" if kind == "u8" else "s8"
    w = T(weight_type, (5, 24), 0.01, 7 if kind == "u8" else 0, 0, seeded(weight_type, (5, 24), 3))
    b = T("s32", (5,), 0.001, 0, 0, np.arange(-200, 300, 100))
    x, y = T(kind, (2, 3, 8), 0.1, 3), T(kind, (), 0.7, 9)
    return single("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [x, w, b], [y], version=4), numerics


def _transpose_conv(numerics: str) -> Made:
    weights = seeded("s8", (9, 3, 4, 5), 3)
    shape = T("s32", (4,), data=np.array([1, 8, 10, 9]))
    x, b = T("s8", (1, 4, 5, 5), 0.1, 3), T("s32", (9,), 0.001, 0, 0, np.arange(9) * 50)
    options = {"padding": 0, "strideH": 2, "strideW": 2}
    inputs = [shape, T("s8", weights.shape, 0.01, 0, 0, weights), x, b]
    return single(
        "TRANSPOSE_CONV", ("TransposeConvOptions", options), inputs, [T("s8", (), 0.3, 2)], version=4
    ), numerics


def _batch_matmul(numerics: str, adj_x: bool, adj_y: bool) -> Made:
    x = T("s8", (2, 3, 6, 4) if adj_x else (2, 3, 4, 6), 0.1, 3)
    y = T("s8", (3, 5, 6) if adj_y else (3, 6, 5), 0.02, -4)
    options = {"adjX": adj_x, "adjY": adj_y}
    return single("BATCH_MATMUL", ("BatchMatMulOptions", options), [x, y], [T("s8", (), 0.2, 2)], version=2), numerics


def _qlinear_conv(axes: int, groups: int, numerics: str = "onnxruntime", wide: bool = False) -> Made:
    rng = np.random.default_rng(axes)
    filters, depth = 4, 6 // groups
    low, high = (-128, 128) if wide else (-40, 40)
    operands = {
        "x": rng.integers(0, 256, (1, 6, *(5, 7, 6)[:axes])).astype(np.uint8),
        "x_scale": np.float32(0.1),
        "x_zero_point": np.uint8(100),
        "w": rng.integers(low, high, (filters, depth, *(3, 2, 3)[:axes])).astype(np.int8),
        "w_scale": np.float32([0.01, 0.02, 0.03, 0.04]),
        "w_zero_point": np.zeros(4, np.int8),
        "y_scale": np.float32(0.7),
        "y_zero_point": np.uint8(90),
        "bias": rng.integers(-500, 500, filters).astype(np.int32),
    }
    attributes = {"group": groups, "pads": [1] * (2 * axes), "strides": [2] * axes}
    content, _ = onnx_models.single(
        "QLinearConv", operands, [TensorProto.UINT8], attributes, constants=set(operands) - {"x"}
    )
    return content, numerics


def _conv_integer(late: bool = False) -> Made:
    rng = np.random.default_rng(7)
    operands = {
        "x": rng.integers(0, 256, (2, 4, 5, 6)).astype(np.uint8),
        "w": rng.integers(0, 256, (3, 4, 2, 3)).astype(np.uint8),
        "x_zero_point": np.uint8(7),
        "w_zero_point": np.uint8(130),
    }
    constants = {"w"} if late else {"w", "x_zero_point", "w_zero_point"}
    content, _ = onnx_models.single("ConvInteger", operands, [TensorProto.INT32], {}, constants=constants)
    return content, "onnxruntime"


def _matmul(integer: bool, numerics: str = "onnxruntime") -> Made:
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 256, (2, 4, 6)).astype(np.uint8), rng.integers(-128, 128, (6, 5)).astype(np.int8)
    if integer:
        operands = {"a": a, "b": b, "az": np.uint8(9), "bz": np.int8([1, 2, 3, 4, 5])}
        content, _ = onnx_models.single("MatMulInteger", operands, [TensorProto.INT32], constants={"b", "az", "bz"})
        return content, numerics
    operands = {
        "a": a,
        "as": np.float32(0.1),
        "az": np.uint8(9),
        "b": b,
        "bs": np.float32([0.01, 0.02, 0.03, 0.04, 0.05]),
        "bz": np.zeros(5, np.int8),
        "ys": np.float32(0.4),
        "yz": np.uint8(3),
    }
    content, _ = onnx_models.single("QLinearMatMul", operands, [TensorProto.UINT8], constants=set(operands) - {"a"})
    return content, numerics


def _qgemm(real: bool) -> Made:
    rng = np.random.default_rng(9)
    operands = {
        "a": rng.integers(0, 256, (6, 4)).astype(np.uint8),
        "as": np.float32(0.1),
        "az": np.uint8(9),
        "b": rng.integers(-128, 128, (5, 6)).astype(np.int8),
        "bs": np.float32(0.02),
        "bz": np.int8(1),
        "c": rng.integers(-900, 900, (5,)).astype(np.int32),
    }
    if not real:
        operands |= {"ys": np.float32(0.4), "yz": np.uint8(3)}
    content, _ = onnx_models.single(
        "QGemm",
        operands,
        [TensorProto.FLOAT if real else TensorProto.UINT8],
        {"transA": 1, "transB": 1},
        domain=onnx_models.MICROSOFT,
        constants=set(operands) - {"a"},
    )
    return content, "onnxruntime"


def _matmul_to_real() -> Made:
    rng = np.random.default_rng(10)
    operands = {
        "a": rng.integers(0, 256, (2, 4, 6)).astype(np.uint8),
        "b": rng.integers(-128, 128, (6, 5)).astype(np.int8),
        "as": np.float32(0.1),
        "bs": np.float32([0.01, 0.02, 0.03, 0.04, 0.05]),
        "az": np.uint8(9),
        "bz": np.int8([1, 2, 3, 4, 5]),
        "c": rng.standard_normal(5).astype(np.float32),
    }
    content, _ = onnx_models.single(
        "MatMulIntegerToFloat",
        operands,
        [TensorProto.FLOAT],
        domain=onnx_models.MICROSOFT,
        constants=set(operands) - {"a"},
    )
    return content, "onnxruntime"


LAYERS: dict[str, Callable[[], Made]] = {
    "conv2d s8": lambda: _conv("s8", "litert"),
    "conv2d s8, groups": lambda: _conv("s8", "litert", groups=2),
    "conv2d s8, one rounding": lambda: _conv("s8", "xnnpack", padding=1),
    "conv2d s8, ties up": lambda: _conv("s8", "litert-optimized"),
    "conv2d u8": lambda: _conv("u8", "litert"),
    "conv2d s16": lambda: _conv("s16", "litert"),
    "depthwise s8": lambda: _conv("s8", "litert", depthwise=True),
    "depthwise s8, lanes": lambda: _conv("s8", "litert-optimized", depthwise=True),
    "depthwise u8": lambda: _conv("u8", "litert-optimized", depthwise=True),
    "fully_connected s8": lambda: _fully_connected("s8", "litert"),
    "fully_connected u8": lambda: _fully_connected("u8", "xnnpack"),
    "fully_connected s8, 1.2": lambda: _fully_connected("s8", "litert@1.2"),
    "transpose_conv": lambda: _transpose_conv("litert"),
    "transpose_conv, lanes": lambda: _transpose_conv("litert-optimized"),
    "batch_matmul": lambda: _batch_matmul("litert", False, False),
    "batch_matmul, both turned": lambda: _batch_matmul("litert", True, True),
    "qlinear_conv 1-D": lambda: _qlinear_conv(1, 2),
    "qlinear_conv 2-D": lambda: _qlinear_conv(2, 1),
    "qlinear_conv 3-D": lambda: _qlinear_conv(3, 1),
    "qlinear_conv of the specification": lambda: _qlinear_conv(2, 2, "onnx"),
    "qlinear_conv, pairs of 16 bits": lambda: _qlinear_conv(2, 1, "onnxruntime-avx2", wide=True),
    "conv_integer": _conv_integer,
    "conv_integer, zero points computed": lambda: _conv_integer(late=True),
    "matmul_integer": lambda: _matmul(True),
    "qlinear_matmul": lambda: _matmul(False),
    "qlinear_matmul of the specification": lambda: _matmul(False, "onnx"),
    "qgemm": lambda: _qgemm(False),
    "qgemm, real": lambda: _qgemm(True),
    "matmul_integer_to_float, real": _matmul_to_real,
}

"""Small models of operators that explanations know beside layers: what to build, and under which numerics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from . import onnx_models
from .build import T, single

Made = tuple[bytes, str]


def _two(operator: str, numerics: str, kind: str = "s8", second: Sequence[int] = (1, 4, 5, 17), **more: Any) -> Made:
    table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}.get(operator)
    zero = 0 if kind == "s16" else 3
    a, b = T(kind, (1, 4, 5, 17), 0.021, zero), T(kind, second, 0.013, -zero if kind == "s8" else zero)
    y = T(more.get("output", kind), (), more.get("scale", 0.03), zero)
    return single(operator, (table, {}) if table else None, [a, b], [y], version=more.get("version", 2)), numerics


def _one(
    operator: str,
    numerics: str,
    x: T,
    y: T,
    options: tuple[str, dict[str, Any]] | None = None,
    more: Sequence[T] = (),
    version: int = 2,
) -> Made:
    return single(operator, options, [x, *more], [y], version=version), numerics


def _s8(*shape: int, scale: float = 0.05, zero_point: int = 5) -> T:
    return T("s8", shape, scale, zero_point)


def _axes(*values: int) -> T:
    return T("s32", (len(values),), data=np.array(values))


def _pool(operator: str, numerics: str) -> Made:
    options = {"padding": 0, "strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 3}
    return _one(operator, numerics, _s8(1, 7, 8, 5), _s8(), ("Pool2DOptions", options))


def _concatenation(numerics: str) -> Made:
    parts = [_s8(2, 3, n) for n in (2, 4, 1)]
    return single("CONCATENATION", ("ConcatenationOptions", {"axis": 2}), parts, [_s8()], version=2), numerics


def _resize(operator: str, numerics: str, half: bool) -> Made:
    table = "ResizeBilinearOptions" if "BILINEAR" in operator else "ResizeNearestNeighborOptions"
    options = (table, {"alignCorners": False, "halfPixelCenters": half})
    return _one(operator, numerics, _s8(1, 5, 6, 3), _s8(), options, [_axes(9, 11)], 3)


def _onnx(
    operator: str,
    numerics: str,
    kind: int,
    operands: dict[str, np.ndarray],
    constants: set[str],
    domain: str = "",
    **attributes: Any,
) -> Made:
    content, _ = onnx_models.single(operator, operands, [kind], attributes, constants=constants, domain=domain)
    return content, numerics


def _quantize_linear(numerics: str, per_axis: bool) -> Made:
    scale = np.float32([0.1, 0.2, 0.3]) if per_axis else np.float32(0.1)
    zero = np.uint8([3, 0, 255]) if per_axis else np.uint8(7)
    operands = {"x": np.zeros((2, 3, 4), np.float32), "s": scale, "z": zero}
    return _onnx("QuantizeLinear", numerics, TensorProto.UINT8, operands, {"s", "z"}, axis=1)


def _dequantize_linear(numerics: str) -> Made:
    operands = {"x": np.zeros((2, 3, 4), np.int8), "s": np.float32([0.1, 0.2, 0.3]), "z": np.int8([3, 0, -128])}
    return _onnx("DequantizeLinear", numerics, TensorProto.FLOAT, operands, {"s", "z"}, axis=1)


def _qlinear(operator: str, numerics: str = "onnxruntime") -> Made:
    operands = {
        **dict(zip(("a", "as", "az"), (np.zeros((2, 4, 5), np.uint8), np.float32(0.1), np.uint8(9)), strict=True)),
        **dict(zip(("b", "bs", "bz"), (np.zeros((4, 1), np.uint8), np.float32(0.07), np.uint8(100)), strict=True)),
        **dict(zip(("ys", "yz"), (np.float32(0.12), np.uint8(30)), strict=True)),
    }
    constants = set(operands) - {"a", "b"}
    return _onnx(operator, numerics, TensorProto.UINT8, operands, constants, domain=onnx_models.MICROSOFT)


def _qlinear_average_pool() -> Made:
    operands = {
        "x": np.zeros((1, 3, 6, 6), np.uint8),
        **dict(
            zip(("xs", "xz", "ys", "yz"), (np.float32(0.1), np.uint8(9), np.float32(0.09), np.uint8(3)), strict=True)
        ),
    }
    constants = set(operands) - {"x"}
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    return _onnx(
        "QLinearAveragePool",
        "onnxruntime",
        TensorProto.UINT8,
        operands,
        constants,
        domain=onnx_models.MICROSOFT,
        **attributes,
    )


_REAL = ("f32", (2, 3, 5))

NARRATED: dict[str, Callable[[], Made]] = {
    **{
        f"{operator} {numerics}": (lambda o=operator, n=numerics: _two(o, n))  # type: ignore[misc]
        for operator in ("ADD", "SUB", "MUL")
        for numerics in ("litert", "litert-optimized", "xnnpack", "single-rounding")
    },
    "ADD u8": lambda: _two("ADD", "litert-optimized", "u8"),
    "ADD s16": lambda: _two("ADD", "litert", "s16"),
    "ADD by channel": lambda: _two("ADD", "litert-optimized", second=(17,)),
    "SQUARED_DIFFERENCE": lambda: _two("SQUARED_DIFFERENCE", "litert", scale=0.9),
    "MAXIMUM": lambda: _two("MAXIMUM", "litert", second=(5, 1)),
    "LESS": lambda: (single("LESS", None, [_s8(2, 7), _s8(2, 7, scale=0.04)], [T("bool", ())], version=2), "litert"),
    "QUANTIZE of integers": lambda: _one("QUANTIZE", "litert", _s8(2, 9), T("s8", (), 0.07, -9)),
    "QUANTIZE of integers, optimized": lambda: _one("QUANTIZE", "litert-optimized", _s8(2, 19), T("u8", (), 0.07, 9)),
    "QUANTIZE of reals": lambda: _one("QUANTIZE", "litert", T(*_REAL), T("s8", (), 0.02, 3), version=1),
    "QUANTIZE of reals, optimized": lambda: _one(
        "QUANTIZE", "litert-optimized", T(*_REAL), T("s8", (), 0.02, 3), version=1
    ),
    "QUANTIZE of reals, delegate": lambda: _one("QUANTIZE", "xnnpack", T(*_REAL), T("s8", (), 0.02, 3), version=1),
    "DEQUANTIZE": lambda: _one("DEQUANTIZE", "litert", _s8(3, 7), T("f32", ())),
    "DEQUANTIZE, optimized": lambda: _one("DEQUANTIZE", "litert-optimized", _s8(3, 7), T("f32", ())),
    "RELU6": lambda: _one("RELU6", "litert", _s8(3, 7), _s8(scale=0.03)),
    "LEAKY_RELU": lambda: _one(
        "LEAKY_RELU", "litert", _s8(3, 7), _s8(scale=0.03), ("LeakyReluOptions", {"alpha": 0.3})
    ),
    "AVERAGE_POOL_2D": lambda: _pool("AVERAGE_POOL_2D", "litert"),
    "MAX_POOL_2D": lambda: _pool("MAX_POOL_2D", "litert"),
    "MEAN of long rows": lambda: _one(
        "MEAN", "xnnpack-avx2", _s8(2, 9000), _s8(scale=0.05), ("ReducerOptions", {}), [_axes(1)]
    ),
    **{
        f"MEAN {numerics}": (
            lambda n=numerics: _one(  # type: ignore[misc]
                "MEAN", n, _s8(2, 4, 5, 9), _s8(scale=0.03), ("ReducerOptions", {"keepDims": True}), [_axes(1, 2)]
            )
        )
        for numerics in ("litert", "litert-optimized", "xnnpack")
    },
    "LOGISTIC": lambda: _one("LOGISTIC", "litert", _s8(3, 7), T("s8", (), 1 / 256, -128)),
    "TANH": lambda: _one("TANH", "xnnpack", _s8(3, 7), T("s8", (), 1 / 128, 0)),
    "SOFTMAX": lambda: _one(
        "SOFTMAX", "litert", _s8(3, 7), T("s8", (), 1 / 256, -128), ("SoftmaxOptions", {"beta": 1.0})
    ),
    "RESIZE_BILINEAR": lambda: _resize("RESIZE_BILINEAR", "litert", True),
    "RESIZE_BILINEAR, delegate": lambda: _resize("RESIZE_BILINEAR", "xnnpack", False),
    "RESIZE_NEAREST_NEIGHBOR": lambda: _resize("RESIZE_NEAREST_NEIGHBOR", "litert", False),
    "CONCATENATION": lambda: _concatenation("litert"),
    "PAD": lambda: _one("PAD", "litert", _s8(3, 4), _s8(), None, [T("s32", (2, 2), data=np.array([[1, 2], [0, 3]]))]),
    "TRANSPOSE": lambda: _one("TRANSPOSE", "litert", _s8(3, 4, 5), _s8(), None, [_axes(2, 0, 1)]),
    "RESHAPE": lambda: _one("RESHAPE", "litert", _s8(3, 4, 5), _s8(), None, [_axes(15, 4)], 1),
    "ARG_MAX": lambda: _one(
        "ARG_MAX", "litert", _s8(3, 4, 5), T("s32", ()), ("ArgMaxOptions", {"outputType": 2}), [_axes(1)]
    ),
    "QuantizeLinear": lambda: _quantize_linear("onnxruntime", False),
    "QuantizeLinear per axis": lambda: _quantize_linear("onnx", True),
    "DequantizeLinear": lambda: _dequantize_linear("onnxruntime"),
    "QLinearAdd": lambda: _qlinear("QLinearAdd"),
    "QLinearMul": lambda: _qlinear("QLinearMul"),
    "QLinearAveragePool": _qlinear_average_pool,
}

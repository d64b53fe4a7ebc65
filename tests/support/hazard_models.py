"""Models with hazards (rules BT6xx), and models beside them without."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from .build import T, chain, single
from .onnx_models import KIND, build
from .onnx_models import single as onnx_single

F32, U8, S8, S32 = np.float32, np.uint8, np.int8, np.int32
S32_MAX = 2**31 - 1


def fully_connected(
    weights: Any,
    bias: Any,
    *,
    scales: tuple[float, float, float] = (0.5, 0.25, 4.0),
    zeros: tuple[int, int] = (3, -7),
    activation: int = 0,
    weight_scale: Any = None,
) -> bytes:
    w = np.asarray(weights, np.int8)
    b = np.asarray(bias, np.int32)
    weight_scale = scales[1] if weight_scale is None else weight_scale
    return single(
        "FULLY_CONNECTED",
        ("FullyConnectedOptions", {"fusedActivationFunction": activation}),
        [
            T("s8", (1, w.shape[1]), scales[0], zeros[0]),
            T("s8", w.shape, weight_scale, data=w),
            T("s32", b.shape, np.multiply(weight_scale, scales[0]), data=b),
        ],
        [T("s8", (1, w.shape[0]), scales[2], zeros[1])],
        version=4,
    )


def convolution(weights: Any, bias: Any, output_scale: float, zero_point: int = -7) -> bytes:
    """A 1x1 convolution [1, 1, 1, K] -> [1, 1, 1, O] with input scale 0.5, zero point 3, and weight scale 0.25."""
    w, b = np.asarray(weights, np.int8), np.asarray(bias, np.int32)
    return single(
        "CONV_2D",
        ("Conv2DOptions", {"padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}),
        [
            T("s8", (1, 1, 1, w.shape[1]), 0.5, 3),
            T("s8", (w.shape[0], 1, 1, w.shape[1]), 0.25, data=w),
            T("s32", b.shape, 0.125, data=b),
        ],
        [T("s8", (1, 1, 1, w.shape[0]), output_scale, zero_point)],
        version=3,
    )


def island(quantize: bool, constant: bool = False) -> bytes:
    start = T("s8", (4,), 0.1, 0, data=np.zeros(4) if constant else None)
    real, result = T("f32", (4,)), T("f32", (4,))
    nodes: list[tuple] = [("DEQUANTIZE", None, [start], [real])]
    nodes.append(("ADD", ("AddOptions", {}), [real, T("f32", (4,)) if constant else real], [result]))
    if quantize:
        nodes.append(("QUANTIZE", None, [result], [T("s8", (4,), 0.2, 0)]))
    return chain(nodes)


def transposed(bias: int) -> bytes:
    """A transposed convolution of one pixel, whose accumulators have bounds but no witness."""
    inputs = [
        T("s32", (4,), data=np.array([1, 1, 1, 1])),
        T("s8", (1, 1, 1, 1), 0.25, data=np.array([[[[5]]]])),
        T("s8", (1, 1, 1, 1), 0.5, 3),
        T("s32", (1,), 0.125, data=np.array([bias])),
    ]
    options = ("TransposeConvOptions", {"padding": 1, "strideH": 1, "strideW": 1})
    return single("TRANSPOSE_CONV", options, inputs, [T("s8", (1, 1, 1, 1), 4.0)], version=3)


def requantized(scale: float, zero_point: int = 0) -> bytes:
    return single("QUANTIZE", None, [T("s8", (256,), 0.1, 0)], [T("s8", (256,), scale, zero_point)])


def reshaped(scale: float) -> bytes:
    options = ("ReshapeOptions", {"newShape": np.array([2], np.int32)})
    return single("RESHAPE", options, [T("s8", (1, 2), scale)], [T("s8", (2,), scale)])


def quantized(scale: float) -> bytes:
    inputs: dict[str, Any] = {"x": np.ones((2, 3), F32), "scale": F32(scale), "zero": U8(3)}
    return onnx_single("QuantizeLinear", inputs, [KIND[np.dtype(U8)]], constants=("scale", "zero"))[0]


def products(weights: Any) -> bytes:
    """MatMulInteger of u8 values [1, K] and constants."""
    b = np.asarray(weights)
    inputs: dict[str, Any] = {"a": np.full((1, b.shape[0]), 255, U8), "b": b}
    return onnx_single("MatMulInteger", inputs, [KIND[np.dtype(S32)]], constants=("b",))[0]


def between_pairs(op_type: str) -> bytes:
    """DequantizeLinear, an operator of one operand, QuantizeLinear with the same parameters."""
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node(op_type, ["x"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    inputs = {"q": np.zeros((1, 2, 3, 3), U8)}
    return build(nodes, inputs, {"y": KIND[np.dtype(U8)]}, {"s": F32(0.1), "z": U8(3)})[0]


_ROW, _LONG = [[127, 1], [-64, 3]], np.full((1, 1100), 127)
_WIDE = {"zeros": (-128, 0), "scales": (0.5, 0.25, 1e5)}
FIXTURES: dict[str, tuple[list[Any], list[Any]]] = {
    "BT601": (
        [fully_connected([[5]], [S32_MAX - 619]), fully_connected([[5]], [-S32_MAX]), transposed(S32_MAX)],
        [fully_connected([[5]], [S32_MAX - 620]), transposed(S32_MAX - 5 * 131)],
    ),
    "BT602": ([fully_connected(_LONG, [0], **_WIDE)], [fully_connected(_LONG[:, :500], [0], **_WIDE)]),  # type: ignore[arg-type]
    "BT603": ([products(S8([[65, 1], [64, 1]]))], [products(S8([[64, 1], [64, 1]])), products(U8([[165], [164]]))]),
    "BT604": ([convolution(np.full((1, 30), 127), [0], 2e-5)], [convolution(np.full((1, 30), 127), [0], 2e-3)]),
    "BT605": (
        [convolution([[1, 2]], [0], 0.125), convolution([[1, 2]], [0], 1e9)],
        [convolution([[1, 2]], [0], 0.126), convolution([[0, 0]], [0], 1e9)],
    ),
    "BT606": (
        [reshaped(1e-30), reshaped(1e-40), reshaped(1e30), quantized(0.0), quantized(float("nan"))],
        [reshaped(0.007), quantized(0.02), fully_connected([[0, 0], [1, 2]], [0, 0], weight_scale=[1e-30, 0.1])],
    ),
    "BT607": ([fully_connected([[0, 0], [127, 1]], [3, 3])], [fully_connected(_ROW, [3, 3])]),
    "BT608": ([fully_connected([[1]], [S32_MAX])], [fully_connected([[1]], [S32_MAX - 1])]),
    "BT609": ([island(True), island(False)], [island(False, constant=True), fully_connected([[1]], [0])]),
    "BT610": ([requantized(0.25), requantized(0.1, 100)], [requantized(0.12)]),
    "BT611": (
        [fully_connected([[127, 1], [-31, 3]], [0, 0], weight_scale=[0.1, 0.2])],
        [fully_connected([[127, 1], [-32, 3]], [0, 0], weight_scale=[0.1, 0.2]), fully_connected(_ROW, [0, 0])],
    ),
    "BT612": (
        [fully_connected([[127, 1]], [0], zeros=(3, 127), activation=1)],
        [fully_connected([[127, 1]], [0], zeros=(3, 126), activation=1)],
    ),
    "BT613": ([between_pairs("Tanh")], [between_pairs("Sigmoid")]),
}

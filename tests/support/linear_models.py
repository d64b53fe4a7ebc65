"""ONNX models that trip the rules BT4xx, and models beside them that do not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from .onnx_models import KIND, build, single

F32, U8, S8, S32 = np.float32, np.uint8, np.int8, np.int32
DATA = np.ones((2, 4), F32)
KIND_U8 = KIND[np.dtype(U8)]


NONE = U8(0)


def quantize(scale: Any, zero_point: Any = NONE, opset: int = 21, data: np.ndarray = DATA, **attributes: Any) -> bytes:
    inputs = {
        "x": data,
        "scale": np.asarray(scale, F32),
        "zero": None if zero_point is None else np.asarray(zero_point),
    }
    constants = ["scale"] + ["zero"] * (zero_point is not None)
    kind = KIND_U8 if zero_point is None else helper.np_dtype_to_tensor_dtype(np.asarray(zero_point).dtype)
    return single("QuantizeLinear", inputs, [kind], attributes, opset=opset, constants=constants)[0]


def dequantize(scale: Any, zero_point: Any, quantized: np.ndarray, **attributes: Any) -> bytes:
    inputs = {"x": quantized, "scale": np.asarray(scale, F32), "zero": np.asarray(zero_point)}
    return single("DequantizeLinear", inputs, [TensorProto.FLOAT], attributes, constants=("scale", "zero"))[0]


def per_axis(count: int, **attributes: Any) -> bytes:
    return quantize(np.full(count, 0.1), np.zeros(count, U8), **attributes)


def blocked(shape: tuple[int, ...], block: int, axis: int = 1) -> bytes:
    return quantize(np.full(shape, 0.1), np.zeros(shape, U8), block_size=block, axis=axis)


def pair(scale: float, zero_point: int = 3) -> bytes:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s2", "z2"], ["y"]),
    ]
    constants = {"s": F32(0.1), "z": U8(3), "s2": F32(scale), "z2": U8(zero_point)}
    return build(nodes, {"x": np.arange(4, dtype=F32)}, {"y": TensorProto.FLOAT}, constants)[0]


def moved(op_type: str, scale: float, **attributes: Any) -> bytes:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node(op_type, ["xf"], ["yf"], **attributes),
        helper.make_node("QuantizeLinear", ["yf", "s2", "z"], ["y"]),
    ]
    constants = {"s": F32(0.1), "s2": F32(scale), "z": U8(3)}
    return build(nodes, {"x": np.zeros((1, 3, 2, 2), U8)}, {"y": KIND_U8}, constants)[0]


def layer(
    op_type: str,
    axis: int = 0,
    scales: Any = (0.01, 0.05, 0.2),
    *,
    bias: Any = None,
    shape: tuple[int, int] = (3, 3),
    trans_b: bool = False,
) -> bytes:
    """DequantizeLinear of u8 input and s8 weights, the layer, QuantizeLinear; `bias`: factors of its right scales."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, shape).astype(S8)
    ws = np.asarray(scales, F32)
    constants: dict[str, Any] = {"xs": F32(0.1), "xz": U8(3), "ws": ws, "wz": np.zeros(ws.shape, S8)}
    constants |= {"w": weights[..., None, None] if op_type == "Conv" else weights, "ys": F32(2), "yz": U8(100)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axis),
    ]
    names = ["xf", "wf"]
    if bias is not None:
        constants |= {"b": np.array([1000, -2000, 3000], S32), "bs": F32(0.1) * ws * F32(bias)}
        constants["bz"] = np.zeros(ws.shape, S32)
        nodes.append(helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], axis=0))
        names.append("bf")
    attributes = {"transB": 1} if trans_b else {}
    nodes.append(helper.make_node(op_type, names, ["yf"], **attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]))
    depth = shape[1] if op_type == "Conv" or trans_b else shape[0]
    x = rng.integers(0, 256, (1, depth, 2, 2) if op_type == "Conv" else (2, depth)).astype(U8)
    return build(nodes, {"x": x}, {"y": KIND_U8}, constants)[0]


def qlinear_conv(**changed: Any) -> bytes:
    inputs: dict[str, Any] = {"x": np.zeros((1, 3, 2, 2), U8), "xs": F32(0.1), "xz": U8(3)}
    inputs |= {"w": np.ones((2, 3, 1, 1), S8), "ws": np.full(2, 0.1, F32), "wz": np.zeros(2, S8)}
    inputs |= {"ys": F32(2), "yz": U8(3), "b": np.array([1, 2], S32), **changed}
    return single("QLinearConv", inputs, [KIND_U8], constants=list(inputs)[1:])[0]


def qlinear_matmul(**changed: Any) -> bytes:
    inputs: dict[str, Any] = {"a": np.zeros((2, 3), U8), "as": F32(0.1), "az": U8(3), "b": np.ones((3, 4), S8)}
    inputs |= {"bs": F32(0.1), "bz": S8(0), "ys": F32(2), "yz": U8(3), **changed}
    return single("QLinearMatMul", inputs, [KIND_U8], constants=list(inputs)[1:])[0]


def full(count: int, zero_point: type = S8, names: str = "ws wz") -> dict[str, Any]:
    scale, point = names.split()
    return {scale: np.full(count, 0.1, F32), point: np.zeros(count, zero_point)}


def float8(value: float) -> np.ndarray:
    return np.asarray(value, ml_dtypes.float8_e4m3fn)


CODES = np.zeros((2, 4), S32)
FIXTURES: dict[str, tuple[list[Any], list[Any]]] = {
    "BT401": (
        [per_axis(3), per_axis(2), quantize(np.full((2, 2), 0.1), np.zeros((2, 2), U8)), quantize([[0.1]], U8([[0]]))],
        [per_axis(4), per_axis(2, axis=0), quantize(0.1), quantize([0.1], U8([0])), blocked((2, 2), 2)],
    ),
    "BT402": (
        [quantize(np.full(4, 0.1), U8(0)), quantize(0.1, np.zeros(4, U8))],
        [per_axis(4), quantize([0.1], U8(0)), quantize(np.full(4, 0.1), None)],
    ),
    "BT403": (
        [
            per_axis(4, axis=2),
            per_axis(4, axis=-3),
            quantize(0.1, axis=7),
            quantize(np.full(4, 0.1), np.zeros(4, U8), data=DATA[0]),
        ],
        [per_axis(4, axis=-1), quantize(0.1, data=DATA[0]), per_axis(2, axis=-2)],
    ),
    "BT404": (
        [
            blocked((2, 2), 4),
            blocked((2, 2), 1),
            blocked((2, 2), -1),
            quantize(0.1, block_size=2),
            per_axis(4, block_size=2),
        ],
        [blocked((2, 2), 2), blocked((2, 2), 3), blocked((2, 4), 1), blocked((1, 4), 2, axis=0), quantize(0.1)],
    ),
    "BT405": ([per_axis(4, opset=10)], [per_axis(4, opset=13), quantize(0.1, opset=10)]),
    "BT406": (
        [dequantize(0.1, S32(5), CODES), quantize(0.1, float8(1)), dequantize([0.1] * 4, S32([0, 0, 7, 0]), CODES)],
        [dequantize(0.1, S32(0), CODES), quantize(0.1, float8(0)), quantize(0.1, U8(5))],
    ),
    "BT407": (
        [quantize(0.1, saturate=0), quantize(0.1, opset=23, precision=TensorProto.FLOAT16)],
        [quantize(0.1, float8(0), saturate=0), quantize(0.1, opset=23, precision=TensorProto.FLOAT), quantize(0.1)],
    ),
    "BT408": ([pair(0.2), pair(0.1, 4)], [pair(0.1)]),
    "BT409": (
        [
            layer("Conv", bias=1.05),
            layer("Conv", bias=1.005),
            layer("Gemm", bias=3.0, trans_b=True),
            layer("Gemm", bias=1.001, trans_b=True),
        ],
        [layer("Conv", bias=1.0), layer("Gemm", bias=1.0, trans_b=True), layer("Conv")],
    ),
    "BT410": (
        [moved("Transpose", 0.2, perm=[0, 2, 3, 1]), moved("MaxPool", 0.2, kernel_shape=[2, 2])],
        [moved("Transpose", 0.1, perm=[0, 2, 3, 1]), moved("Sigmoid", 0.2)],
    ),
    "BT411": (
        [
            qlinear_conv(**full(3)),
            qlinear_conv(xs=np.full(3, 0.1, F32)),
            qlinear_conv(ys=np.full(2, 0.1, F32)),
            qlinear_conv(b=np.zeros(3, S32)),
            qlinear_matmul(**full(3, names="bs bz")),
            qlinear_matmul(**full(2, U8, "as az")),
            qlinear_matmul(**full(2, U8, "ys yz")),
        ],
        [
            qlinear_conv(),
            qlinear_conv(ws=F32(0.1), wz=S8(0)),
            qlinear_matmul(),
            qlinear_matmul(**full(4, names="bs bz")),
        ],
    ),
    "BT412": (
        [
            layer("Conv", 1),
            layer("MatMul", 0),
            layer("Gemm", 1, trans_b=True),
            layer("Gemm", 0),
            layer("MatMul", 0, shape=(3, 5)),
        ],
        [
            layer("Conv", 0),
            layer("MatMul", 1),
            layer("MatMul", -1),
            layer("Gemm", 0, trans_b=True),
            layer("Gemm", 1),
            layer("Conv", 1, 0.1),
        ],
    ),
}

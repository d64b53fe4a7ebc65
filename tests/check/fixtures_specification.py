"""Models that trip the rules BT1, BT2 and BT3, and models that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

import bittrue
from support.build import G, T, chain, several, single

Fixture = Callable[[], bytes]

CONV = ("Conv2DOptions", {"strideW": 1, "strideH": 1})
DEPTHWISE = ("DepthwiseConv2DOptions", {"strideW": 1, "strideH": 1, "depthMultiplier": 1})
DENSE = ("FullyConnectedOptions", {})
POOL = ("Pool2DOptions", {"strideW": 1, "strideH": 1, "filterWidth": 1, "filterHeight": 1})
SOFTMAX = ("SoftmaxOptions", {"beta": 1.0})


def tensor(base: T, changes: dict[str, Any]) -> T:
    return T(**{**vars(base), **changes})


def conv(
    x: dict[str, Any] | None = None,
    w: dict[str, Any] | None = None,
    b: dict[str, Any] | None = None,
    y: dict[str, Any] | None = None,
    version: int = 3,
) -> bytes:
    """x [1,2,2,2] * w [3,1,1,2] + b [3] = y [1,2,2,3], with changes; without changes all is as it should be."""
    quantized = np.array([[1, -2], [127, 3], [-127, 4]]).reshape(3, 1, 1, 2)
    return single(
        "CONV_2D",
        CONV,
        [
            tensor(T("s8", [1, 2, 2, 2], 0.5, -3, name="x"), x or {}),
            tensor(T("s8", [3, 1, 1, 2], [0.25, 0.5, 0.125], data=quantized, name="w"), w or {}),
            tensor(T("s32", [3], [0.125, 0.25, 0.0625], data=np.array([100, -2, 3]), name="b"), b or {}),
        ],
        [tensor(T("s8", [1, 2, 2, 3], 1.0, 7, name="y"), y or {})],
        version=version,
    )


def conv_u8(**b: Any) -> bytes:
    quantized = np.arange(6).reshape(3, 1, 1, 2)
    return conv(
        {"dtype": "u8", "zero_point": 3},
        {"dtype": "u8", "scale": 0.25, "zero_point": 2, "data": quantized},
        {"scale": 0.125, **b},
        {"dtype": "u8"},
        version=1,
    )


def conv_s16(**changes: dict[str, Any]) -> bytes:
    return conv(
        {"dtype": "s16", "zero_point": 0, **changes.get("x", {})},
        changes.get("w"),
        {"dtype": "s64", **changes.get("b", {})},
        {"dtype": "s16", "zero_point": 0, **changes.get("y", {})},
        version=4,
    )


def depthwise(w: dict[str, Any] | None = None, b: dict[str, Any] | None = None) -> bytes:
    quantized = np.arange(8).reshape(1, 2, 2, 2)
    return single(
        "DEPTHWISE_CONV_2D",
        DEPTHWISE,
        [
            T("s8", [1, 2, 2, 2], 0.5, -3, name="x"),
            tensor(T("s8", [1, 2, 2, 2], [0.25, 0.5], axis=3, data=quantized, name="w"), w or {}),
            tensor(T("s32", [2], [0.125, 0.25], data=np.array([1, -2]), name="b"), b or {}),
        ],
        [T("s8", [1, 1, 1, 2], 1.0, 7, name="y")],
        version=3,
    )


def dense(w: dict[str, Any] | None = None, b: dict[str, Any] | None = None, x: dict[str, Any] | None = None) -> bytes:
    """x [1,2] times w [3,2] plus b [3], per-tensor."""
    quantized = np.array([[1, -2], [127, 3], [-127, 4]])
    return single(
        "FULLY_CONNECTED",
        DENSE,
        [
            tensor(T("s8", [1, 2], 0.5, -3, name="x"), x or {}),
            tensor(T("s8", [3, 2], 0.25, data=quantized, name="w"), w or {}),
            tensor(T("s32", [3], 0.125, data=np.array([100, -2, 3]), name="b"), b or {}),
        ],
        [T("s8", [1, 3], 1.0, 7, name="y")],
        version=4,
    )


def dense_per_axis() -> bytes:
    return dense({"scale": [0.25, 0.5, 0.125]}, {"scale": [0.125, 0.25, 0.0625]})


def binary(operator: str = "ADD", version: int = 2, *operands: T) -> bytes:
    a, b, y = operands or [T("s8", [2], 0.5, 1, name=name) for name in "aby"]
    options = {"ADD": ("AddOptions", {}), "MAXIMUM": ("MaximumMinimumOptions", {})}[operator]
    return single(operator, options, [a, b], [y], version=version)


def unary(operator: str, x: T, y: T, version: int = 2, options: Any = None) -> bytes:
    return single(operator, options, [x], [y], version=version)


def reshape(x: T, y: T) -> bytes:
    shape = T("s32", [1], data=np.array([4]))
    return single("RESHAPE", ("ReshapeOptions", {"newShape": [4]}), [x, shape], [y])


def concatenation(second: float, dtype: str = "s8") -> bytes:
    return single(
        "CONCATENATION",
        ("ConcatenationOptions", {"axis": 0}),
        [T(dtype, [1], 0.5, name="a"), T(dtype, [1], second, name="b")],
        [T(dtype, [2], 0.5, name="y")],
        version=2 if dtype == "s8" else 1,
    )


def onnx_model(quantized: bool) -> bytes:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.UINT8 if quantized else onnx.TensorProto.FLOAT, [2])
    scale = helper.make_tensor("s", onnx.TensorProto.FLOAT, [], [0.5])
    zero = helper.make_tensor("z", onnx.TensorProto.UINT8, [], [3])
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]) if quantized else None
    graph = helper.make_graph(
        [node or helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y], [scale, zero] if quantized else []
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def late_softmax() -> bytes:
    """int8 to int16: an extension of the runtime."""
    x = T("s8", [1, 4], 0.5, name="x")
    return single("SOFTMAX", SOFTMAX, [x], [T("s16", [1, 4], 1 / 32768, -32768, name="y")], version=2)


def leaky() -> bytes:
    options = ("LeakyReluOptions", {"alpha": 0.5})
    return unary("LEAKY_RELU", T("s8", [4], 0.5, name="x"), T("s8", [4], 0.5, name="y"), 2, options)


def dequantize() -> bytes:
    return unary("DEQUANTIZE", T("s8", [4], 0.5, name="x"), T("f32", [4], name="y"))


def custom() -> bytes:
    return single("CUSTOM:Secret", b"", [T("s8", [4], 0.5, name="x")], [T("s8", [4], 0.5, name="y")])


def svdf_of_int8() -> bytes:
    options = ("SVDFOptions", {"rank": 1, "fusedActivationFunction": 1})
    return single(
        "SVDF",
        options,
        [
            T("s8", [1, 2], 0.5, name="x"),
            T("s8", [3, 2], 0.5, data=np.ones((3, 2)), name="feature"),
            T("s8", [3, 4], 0.5, data=np.ones((3, 4)), name="time"),
            T("s32", [3], 0.25, data=np.ones(3), name="bias"),
            T("s8", [1, 12], 0.5, variable=True, name="state"),
        ],
        [T("s8", [1, 3], 0.5, name="y")],
        version=3,
    )


def hybrid() -> bytes:
    quantized = np.ones((3, 2))
    inputs = [T("f32", [1, 2], name="x"), T("s8", [3, 2], 0.25, data=quantized, name="w"), None]
    return single("FULLY_CONNECTED", DENSE, inputs, [T("f32", [1, 3], name="y")], version=3)


def float_add() -> bytes:
    return binary("ADD", 1, *[T("f32", [2], name=name) for name in "aby"])


def fixed(operator: str, dtype: str, scale: float, zero_point: int) -> bytes:
    x, y = T(dtype, [1, 4], 0.5, name="x"), T(dtype, [1, 4], scale, zero_point, name="y")
    options = {"SOFTMAX": SOFTMAX, "L2_NORMALIZATION": ("L2NormOptions", {})}.get(operator)
    return unary(operator, x, y, 2 if dtype == "s8" else 1, options)


def padded(value_scale: float) -> bytes:
    """PADV2 with a constant as its third operand."""
    paddings = T("s32", [1, 2], data=np.array([[1, 1]]))
    value = T("s8", [1], value_scale, data=np.array([5]), name="v")
    return single(
        "PADV2", ("PadV2Options", {}), [T("s8", [2], 0.5, name="x"), paddings, value], [T("s8", [4], 0.5, name="y")],
        version=2,
    )  # fmt: skip


def bare_add() -> bytes:
    return binary("ADD", 2, *[T("s8", [2], name=name) for name in "aby"])


def twice_named() -> bytes:
    return binary("ADD", 2, T("s8", [2], 0.5, name="a"), T("s8", [2], 0.5, name="a"), T("s8", [2], 0.5, name="y"))


def two_graphs() -> bytes:
    """A fault in a graph that is not the main one."""
    broken = reshape_nodes(T("s8", [2, 2], 0.5, name="x"), T("s8", [4], 0.25, name="y"))
    fine = reshape_nodes(T("s8", [2, 2], 0.5, name="x"), T("s8", [4], 0.5, name="y"))
    return several(G(fine, name="main"), G(broken, name="second"))


def reshape_nodes(x: T, y: T) -> list[tuple]:
    return [("RESHAPE", ("ReshapeOptions", {"newShape": [4]}), [x, T("s32", [1], data=np.array([4]))], [y])]


def two_layers() -> bytes:
    """Two reshapes of one fault each."""
    a, b, c = (T("s8", [4], scale, name=name) for name, scale in (("a", 0.5), ("b", 0.25), ("c", 0.125)))
    return chain([*reshape_nodes(a, b), *reshape_nodes(b, c)])


def too_large() -> bytes:
    shape = [1 << 16, 1 << 16]
    return binary("ADD", 2, T("s8", shape, 0.5), T("s8", [1], 0.5), T("s8", shape, 0.5))


def pool(y: float) -> bytes:
    x = T("s8", [1, 2, 2, 1], 0.5, name="x")
    return unary("AVERAGE_POOL_2D", x, T("s8", [1, 2, 2, 1], y, name="y"), 2, POOL)


def _fixed(operator: str, scale: float, zero_point: int) -> tuple[list[Fixture], list[Fixture]]:
    unsigned = (lambda: fixed(operator, "u8", scale, zero_point + 128),)
    return (
        [
            lambda: fixed(operator, "s8", scale * 2, zero_point),
            lambda: fixed(operator, "s8", float(np.nextafter(np.float32(scale), np.float32(1))), zero_point),
            lambda: fixed(operator, "s8", scale, zero_point - 1),
            lambda: fixed(operator, "u8", scale, zero_point),
        ],
        [lambda: fixed(operator, "s8", scale, zero_point), *unsigned],
    )


FIXTURES: dict[str, tuple[list[Fixture], list[Fixture]]] = {
    "BT101": ([twice_named], [conv]),
    "BT102": ([float_add, lambda: onnx_model(False)], [conv, hybrid, conv_u8, lambda: onnx_model(True)]),
    "BT103": ([conv_u8, conv_s16, hybrid], [conv, float_add, dense]),
    "BT104": ([leaky, custom], [conv, dequantize, float_add]),
    "BT105": ([lambda: binary(version=99)], [binary, lambda: onnx_model(True)]),
    "BT106": ([too_large], [conv, bittrue.demo_model, svdf_of_int8]),
    "BT201": (
        [late_softmax, lambda: conv(b={"dtype": "s64"}), lambda: conv(w={"dtype": "u8", "data": np.ones(6)})],
        [conv, conv_u8, conv_s16, hybrid, float_add, dequantize],
    ),
    "BT202": (
        [lambda: conv(b={"scale": None}), lambda: conv(w={"scale": None}), lambda: conv(y={"scale": None}), bare_add],
        [conv, lambda: reshape(T("s8", [4]), T("s8", [4])), float_add],
    ),
    "BT203": (
        [
            lambda: conv(x={"zero_point": 128}),
            lambda: conv(y={"zero_point": -129}),
            lambda: conv_s16(x={"zero_point": 1}),
            lambda: binary("ADD", 1, *[T("u8", [2], 0.5, -1, name=name) for name in "aby"]),
        ],
        [conv, conv_u8, conv_s16, late_softmax, lambda: conv(x={"zero_point": -128}, y={"zero_point": 127})],
    ),
    "BT204": (
        [
            lambda: conv(w={"data": np.array([0, 0, 0, -128, 0, 0])}),
            lambda: depthwise({"data": np.full(8, -128)}),
            lambda: dense({"data": np.array([0, 0, 0, 0, 0, -128])}),
            lambda: conv_s16(w={"data": np.full(6, -128)}),
        ],
        [conv, dense, depthwise, conv_u8, conv_s16],
    ),
    "BT205": (
        [lambda: conv(w={"zero_point": [0, 0, 1]}), lambda: dense({"zero_point": -1})],
        [conv, dense, conv_u8],
    ),
    "BT206": (
        [
            lambda: conv(x={"scale": [0.5, 0.25], "axis": 3}),
            lambda: binary("ADD", 2, T("s8", [2], [0.5, 0.25], data=np.ones(2)), *(T("s8", [2], 0.5) for _ in "by")),
        ],
        [conv, dense_per_axis, lambda: dequantize()],
    ),
    "BT207": (
        [
            lambda: conv(w={"shape": [3, 1, 1, 2], "scale": [0.25, 0.5], "axis": 3}),
            lambda: depthwise({"scale": [0.25, 0.5], "axis": 1}),
            lambda: dense({"scale": [0.25, 0.5], "axis": 1}),
        ],
        [conv, depthwise, dense, dense_per_axis, conv_u8],
    ),
    "BT208": (
        [lambda: conv(w={"scale": 0.25}, b={"scale": 0.125}), lambda: depthwise({"scale": 0.25}, {"scale": 0.125})],
        [conv, depthwise, dense, conv_u8],
    ),
    "BT209": ([dense, dense_per_axis], [conv, depthwise, hybrid]),
    "BT301": (
        [
            lambda: conv(b={"scale": [0.125, 0.25, 0.125]}),
            lambda: conv(b={"scale": [0.125, np.nextafter(np.float32(0.25), np.float32(1)), 0.0625]}),
            lambda: conv(b={"scale": 0.125}),
            lambda: dense(b={"scale": 0.0625}),
            lambda: depthwise(b={"scale": [0.25, 0.125]}),
            lambda: conv_u8(scale=0.25),
            lambda: conv_s16(b={"scale": [1.0, 1.0, 1.0]}),
        ],
        [conv, dense, dense_per_axis, depthwise, conv_u8, conv_s16],
    ),
    "BT302": (
        [lambda: conv(b={"zero_point": [0, 4, 0]}), lambda: dense(b={"zero_point": 1})],
        [conv, dense, dense_per_axis],
    ),
    "BT303": (
        [
            lambda: conv(b={"shape": [2], "scale": 0.125, "data": np.ones(2)}),
            lambda: dense(b={"shape": [1], "data": np.ones(1)}),
        ],
        [conv, dense, depthwise, hybrid],
    ),
    "BT304": ([lambda: conv(b={"axis": 3}), lambda: dense(b={"axis": 1})], [conv, dense, depthwise]),
    "BT305": (
        [
            lambda: reshape(T("s8", [4], 0.5), T("s8", [4], 0.25)),
            lambda: reshape(T("s8", [4], 0.5), T("s8", [4], 0.5, 1)),
            lambda: reshape(T("s8", [4], 0.5), T("s8", [4])),
            lambda: reshape(T("u8", [4], 0.5), T("u8", [4], 0.25)),
            lambda: concatenation(0.25),
            lambda: pool(0.25),
            lambda: padded(0.25),
            lambda: binary("MAXIMUM", 2, T("s8", [2], 0.5), T("s8", [2], 0.25), T("s8", [2], 0.5)),
            two_graphs,
        ],
        [
            lambda: reshape(T("s8", [4], 0.5, 3), T("s8", [4], 0.5, 3)),
            lambda: reshape(T("s8", [4]), T("s8", [4])),
            lambda: reshape(T("f32", [4]), T("f32", [4])),
            lambda: concatenation(0.5),
            lambda: concatenation(0.25, "u8"),
            lambda: pool(0.5),
            lambda: padded(0.5),
            lambda: binary("MAXIMUM", 2),
        ],
    ),
    "BT306": _fixed("SOFTMAX", 1 / 256, -128),
    "BT307": _fixed("LOGISTIC", 1 / 256, -128),
    "BT308": _fixed("TANH", 1 / 128, 0),
    "BT309": _fixed("L2_NORMALIZATION", 1 / 128, 0),
    "BT310": _fixed("LOG_SOFTMAX", 16 / 256, 127),
}

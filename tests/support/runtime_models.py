"""Models that trip the rules BT5xx, and models beside them that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from .build import T, chain, single
from .onnx_models import build
from .onnx_models import single as onnx_single


def binary(operator: str, table: str, *tensors: T, **options: Any) -> bytes:
    return single(operator, (table, options), list(tensors[:2]), list(tensors[2:]))


def add(scale: float, activation: int = 0) -> bytes:
    x = [T("s8", (2, 3), 1.0, 3), T("s8", (2, 3), 0.5, -1)]
    return binary("ADD", "AddOptions", *x, T("s8", (2, 3), scale, 0), fusedActivationFunction=activation)


def product(scale: float) -> bytes:
    """A product of two inputs whose scales together are `scale` times the output's."""
    x = [T("s8", (2, 3), scale, 3), T("s8", (2, 3), 1.0, -1)]
    return binary("MUL", "MulOptions", *x, T("s8", (2, 3), 1.0, 0))


def softmax(scale: float) -> bytes:
    options = ("SoftmaxOptions", {"beta": 1.0})
    return single("SOFTMAX", options, [T("s8", (1, 5), 0.1)], [T("s8", (1, 5), scale, -128)])


def svdf(state: str = "s16", activation: int = 0, zero_point: int = -128) -> bytes:
    units, rank, memory, depth = 2, 1, 3, 4
    weights_time = np.ones((units * rank, memory), np.int16 if state == "s16" else np.int8)
    inputs = [
        T("s8", (1, depth), 0.5, 1),
        T("s8", (units * rank, depth), 0.25, data=np.ones((units * rank, depth), np.int8)),
        T(state, weights_time.shape, 0.01, data=weights_time),
        T("s32", (units,), 0.001, data=np.zeros(units, np.int32)),
        T(state, (1, units * rank * memory), 0.1, variable=True),
    ]
    options = ("SVDFOptions", {"rank": rank, "fusedActivationFunction": activation})
    return single("SVDF", options, inputs, [T("s8", (1, units), 0.2, zero_point)], version=3)


def custom() -> bytes:
    return single("CUSTOM:Mine", b"", [T("s8", (2,), 0.1)], [T("s8", (2,), 0.1)])


def elu(dtype: str = "s8") -> bytes:
    scale = 0.1 if dtype == "s8" else None
    return single("ELU", None, [T(dtype, (4,), scale)], [T(dtype, (4,), scale)])


def tile(scale: float, zero_point: int = 3) -> bytes:
    multiples = T("s32", (1,), data=np.array([2]))
    return single("TILE", None, [T("s8", (3,), 0.5, 3), multiples], [T("s8", (6,), scale, zero_point)])


def split(scale: float) -> bytes:
    axis = T("s32", (), data=np.array(0))
    outputs = [T("s8", (2,), 0.5, 3), T("s8", (2,), scale, 3)]
    return single("SPLIT", ("SplitOptions", {"numSplits": 2}), [axis, T("s8", (4,), 0.5, 3)], outputs)


def select(scale: float) -> bytes:
    condition = T("bool", (3,))
    return single("SELECT_V2", None, [condition, T("s8", (3,), 0.5), T("s8", (3,), scale)], [T("s8", (3,), 0.5)])


def fully_connected() -> bytes:
    w = np.array([[1, -2], [3, 100]], np.int8)
    inputs = [
        T("s8", (1, 2), 0.5, 3),
        T("s8", w.shape, 0.25, data=w),
        T("s32", (2,), 0.125, data=np.zeros(2)),
    ]
    return single("FULLY_CONNECTED", ("FullyConnectedOptions", {}), inputs, [T("s8", (1, 2), 4.0)], version=4)


def total(dtype: str) -> bytes:
    zero = 0 if dtype == "s16" else 3
    axes = T("s32", (1,), data=np.array([1]))
    options = ("ReducerOptions", {"keepDims": True})
    return single("SUM", options, [T(dtype, (2, 3), 0.1, zero), axes], [T(dtype, (2, 1), 0.4, zero)])


def depthwise(multiplier: int) -> bytes:
    w = np.ones((1, 1, 1, 4), np.int8)
    inputs = [T("s8", (1, 2, 2, 2), 0.5), T("s8", w.shape, 0.25, data=w), T("s32", (4,), 0.125, data=np.zeros(4))]
    options = {"padding": 1, "strideH": 1, "strideW": 1, "depthMultiplier": multiplier}
    options |= {"dilationHFactor": 1, "dilationWFactor": 1}
    output = [T("s8", (1, 2, 2, 4), 1.0)]
    return single("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", options), inputs, output, version=3)


def unary(operator: str, scale: float, zero_point: int, target: T) -> bytes:
    return single(operator, None, [T("s8", (3,), scale, zero_point)], [target])


def less(dtype: str, scale: float) -> bytes:
    return single("LESS", None, [T(dtype, (3,), 0.5), T(dtype, (3,), scale)], [T("bool", (3,))])


def divide(dtype: str) -> bytes:
    scale = None if dtype == "f32" else 0.1
    tensors = [T(dtype, (3,), scale) for _ in range(3)]
    return single("DIV", ("DivOptions", {}), tensors[:2], tensors[2:])


def convolution(output_scale: float) -> bytes:
    w = np.ones((1, 1, 1, 2), np.int8)
    inputs = [T("s8", (1, 1, 1, 2), 0.5), T("s8", w.shape, 0.25, data=w), T("s32", (1,), 0.125, data=np.zeros(1))]
    options = {"padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    return single("CONV_2D", ("Conv2DOptions", options), inputs, [T("s8", (1, 1, 1, 1), output_scale)], version=3)


def sine() -> bytes:
    return single("RESHAPE", ("ReshapeOptions", {"newShape": np.array([2])}), [T("f32", (1, 2))], [T("f32", (2,))])


def refused_twice() -> bytes:
    """Two refused operators, the second behind the first."""
    x, inner = T("s8", (1, 5), 0.1), T("s8", (1, 5), 0.02, -128)
    options = ("SoftmaxOptions", {"beta": 1.0})
    return chain([("SOFTMAX", options, [x], [inner]), ("SOFTMAX", options, [inner], [T("s8", (1, 5), 0.3, -128)])])


def real_function(op_type: str) -> bytes:
    return onnx_single(op_type, {"x": np.ones(4, np.float32)}, [TensorProto.FLOAT])[0]


def hidden_scores(size_later: bool = False) -> bytes:
    """Softmax of scores that a mask hides, which the runtime may join to one operator; of a size that is an input or a
    constant.
    """
    nodes = [
        helper.make_node("Expand", ["x", "size"], ["whole"]),
        helper.make_node("Div", ["whole", "two"], ["half"]),
        helper.make_node("MatMul", ["half", "keys"], ["scores"]),
        helper.make_node("Where", ["mask", "least", "scores"], ["hidden"]),
        helper.make_node("Softmax", ["hidden"], ["y"]),
    ]
    x, size = {"x": np.float32([[3, -1, 3]])}, {"size": np.int64([1, 3])}
    constants = {"keys": np.eye(3, dtype=np.float32), "two": np.float32(2), "least": np.float32(-np.inf)}
    constants["mask"] = np.zeros((1, 3), bool)
    constants |= {} if size_later else size
    return build(nodes, x | (size if size_later else {}), {"y": 1}, constants, opset=11)[0]


FIXTURES: dict[str, tuple[list[Any], list[Any]]] = {
    "BT501": ([add(1e-7), softmax(0.01), refused_twice()], [add(0.5), softmax(1 / 256)]),
    "BT502": ([svdf("s8"), elu()], [svdf()]),
    "BT503": ([custom(), single("SIN", None, [T("s8", (2,), 0.1)], [T("s8", (2,), 0.1)])], [add(0.5), svdf("s8")]),
    "BT504": (
        [tile(0.25), tile(0.5, 4), split(0.25), select(0.25)],
        [tile(0.5), split(0.5), select(0.5)],
    ),
    "BT505": ([convolution(4.0), fully_connected()], [tile(0.5), sine()]),
    "BT506": ([split(0.25), convolution(0.125 / 256)], [split(0.5), fully_connected(), convolution(0.125 / 255)]),
    "BT507": ([hidden_scores()], [real_function("Sin"), real_function("Sqrt")]),
    "BT508": ([total("s8"), total("s16")], [total("u8")]),
    "BT509": ([add(0.5, 4), svdf(activation=1, zero_point=-127)], [add(0.5, 3), svdf(activation=1)]),
    "BT510": ([depthwise(1), depthwise(0)], [depthwise(2)]),
    "BT511": (
        [
            unary("CAST", 0.5, 0, T("f32", (3,))),
            unary("NEG", 0.5, 1, T("s8", (3,), 0.5, 1)),
            unary("NEG", 0.5, 0, T("s8", (3,), 0.25, 0)),
            less("s16", 0.25),
        ],
        [
            unary("CAST", 1.0, 0, T("f32", (3,))),
            unary("NEG", 0.5, 0, T("s8", (3,), 0.5, 0)),
            less("s16", 0.5),
            less("s8", 0.25),
        ],
    ),
    "BT512": ([divide("s8"), divide("s16")], [divide("f32")]),
    "BT513": ([product(2.0**40), product(2.0**102)], [product(2.0**10)]),
}

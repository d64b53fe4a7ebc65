"""Cases of one operator for tests of vector formats, made without the suite's generators."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bittrue.conformance.suite import SuiteCase
from bittrue.conformance.suite.tflite import Operand, one_operator


def _case(identity: str, content: bytes, inputs: dict[str, np.ndarray], **more: str) -> SuiteCase:
    operator, types, aim, _ = identity.split("/")
    return SuiteCase(identity, "litert", operator, types, aim.replace("-", " "), "tflite", content, inputs, **more)


def quantized(seed: int, shape: tuple[int, ...], dtype: type = np.int8) -> np.ndarray:
    """Any quantized values of the type."""
    ends = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(ends.min, ends.max, shape, endpoint=True).astype(dtype)


# Half of these scales makes sums of weights 1 lie on ties.
CONV_SCALES = np.float32([0.5, 0.25, 0.013])


def convolution(number: int = 0, note: str = "any") -> SuiteCase:
    """s8, weights per channel, bias, RELU-free: [1, 3, 4, 2] by [3, 2, 2, 2] to [1, 2, 3, 3]."""
    weights = np.random.default_rng(7).integers(-3, 4, (3, 2, 2, 2)).astype(np.int8)
    bias = np.int32([3, -7, 1000])
    operands = [
        Operand("s8", (1, 3, 4, 2), 0.5, 3),
        Operand("s8", weights.shape, CONV_SCALES, 0, 0, weights, "weights"),
        Operand("s32", (3,), CONV_SCALES / 2, 0, 0, bias, "bias"),
    ]
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    content = one_operator("CONV_2D", operands, [Operand("s8", (1, 2, 3, 3), 1.0, -4)], options)
    return _case(f"CONV_2D/s8/ties/{number:03d}", content, {"input0": quantized(number, (1, 3, 4, 2))}, note=note)


def rejected() -> SuiteCase:
    """A bias with one element too many."""
    case = convolution()
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    operands = [
        Operand("s8", (1, 3, 4, 2), 0.5, 3),
        Operand("s8", (3, 2, 2, 2), CONV_SCALES, 0, 0, np.ones((3, 2, 2, 2), np.int8), "weights"),
        Operand("s32", (4,), 0.1, 0, 0, np.zeros(4, np.int32), "bias"),
    ]
    content = one_operator("CONV_2D", operands, [Operand("s8", (1, 2, 3, 3), 1.0, -4)], options)
    return _case("CONV_2D/s8/rejects/000", content, dict(case.inputs), rejects="the bias has one element too many")


def forbidden() -> SuiteCase:
    """A zero point outside of the type, which the specification forbids and the runtime does not look at."""
    content = one_operator(
        "RESHAPE",
        [Operand("s8", (2, 3), 0.5, 128), Operand("s32", (1,), data=np.int32([6]), name="shape")],
        [Operand("s8", (6,), 0.5, 128)],
        {"new_shape": [6]},
    )
    return _case("RESHAPE/s8/rejects/000", content, {"input0": quantized(4, (2, 3))}, rejects="a zero point of 128")


def addition() -> SuiteCase:
    """s16 and two inputs."""
    operands = [Operand("s16", (2, 5), 0.001), Operand("s16", (2, 5), 0.002)]
    content = one_operator("ADD", operands, [Operand("s16", (2, 5), 0.003)], {"pot_scale_int16": False})
    fed = {"input0": quantized(1, (2, 5), np.int16), "input1": quantized(2, (2, 5), np.int16)}
    return _case("ADD/s16/random/000", content, fed)


def splitting() -> SuiteCase:
    """u8, a constant in front of the input, two outputs."""
    axis = Operand("s32", (1,), data=np.int32([1]), name="axis")
    outputs = [Operand("u8", (2, 3), 0.25, 9, name=f"part{i}") for i in range(2)]
    content = one_operator("SPLIT", [axis, Operand("u8", (2, 6), 0.25, 9)], outputs, {"num_splits": 2})
    return _case(
        "SPLIT/u8/shapes/000", content, {"input1": quantized(3, (2, 6), np.uint8)}, note="a comment */ ends ??/ here"
    )


def conversion() -> SuiteCase:
    """Real numbers, some of them none, to s8."""
    content = one_operator("QUANTIZE", [Operand("f32", (1, 7))], [Operand("s8", (1, 7), 0.5, -1)], {})
    fed = np.float32([[0.25, -0.25, 1e-40, -0.0, 63.9, -1e30, 3.3]])
    return _case("QUANTIZE/f32-s8/near-ties/000", content, {"input0": fed})


def cases() -> list[SuiteCase]:
    """All of them, those of one operator together."""
    return [convolution(0), convolution(1), rejected(), addition(), splitting(), conversion(), forbidden()]


def onnx_case(rejects: str = "") -> SuiteCase:
    """QLinearConv with one output; with `rejects`, weights of too few channels."""
    weights = quantized(5, (2, 1 if rejects else 2, 1, 1))
    constants = {
        "x_scale": np.float32(0.5),
        "x_zero_point": np.uint8(7),
        "w": weights,
        "w_scale": np.float32([0.02, 0.03]),
        "w_zero_point": np.int8([0, 0]),
        "y_scale": np.float32(1.5),
        "y_zero_point": np.uint8(100),
    }
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"])
    value = helper.make_tensor_value_info("x", TensorProto.UINT8, (1, 2, 3, 3))
    result = helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 2, 3, 3))
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "one", [value], [result], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    aim = "rejects" if rejects else "random"
    return SuiteCase(
        f"QLinearConv/u8/{aim}/000",
        "onnx",
        "QLinearConv",
        "u8",
        aim,
        "onnx",
        model.SerializeToString(deterministic=True),
        {"x": quantized(6, (1, 2, 3, 3), np.uint8)},
        rejects=rejects,
    )

"""One layer of the faulty device in the forms that ONNX files have."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .faulty_device import Layer


def first(x: np.ndarray) -> np.ndarray:
    """Images with their channels first; matrices as they are."""
    return x if x.ndim == 2 else np.ascontiguousarray(np.moveaxis(x, -1, 1))


def _weights(layer: Layer) -> np.ndarray:
    if layer.kind == "dense":
        return layer.weights
    return np.ascontiguousarray(layer.weights.transpose((3, 0, 1, 2) if layer.kind == "depthwise" else (0, 3, 1, 2)))


def _attributes(layer: Layer) -> dict[str, object]:
    if layer.kind == "dense":
        return {"transB": 1}
    top, bottom, left, right = layer.pads
    groups = layer.weights.shape[-1] if layer.kind == "depthwise" else 1
    return {
        "strides": layer.stride,
        "dilations": layer.dilation,
        "pads": (top, left, bottom, right),
        "group": groups,
        "kernel_shape": layer.weights.shape[1:3],
    }


def _model(nodes: list, constants: dict[str, np.ndarray], source: tuple[int, ...], result: tuple[int, ...]) -> bytes:
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.INT8, source)],
        [helper.make_tensor_value_info("y", TensorProto.INT8, result)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def _constants(layer: Layer) -> dict[str, np.ndarray]:
    return {
        "x_scale": np.float32(layer.in_scale),
        "x_zero": np.int8(layer.in_zero),
        "w": _weights(layer),
        "w_scale": np.asarray(layer.weight_scales, np.float32),
        "w_zero": np.zeros(len(layer.weight_scales), np.int8),
        "y_scale": np.float32(layer.out_scale),
        "y_zero": np.int8(layer.out_zero),
        "b": layer.bias.astype(np.int32),
    }


def _result(layer: Layer, source: tuple[int, ...]) -> tuple[int, ...]:
    outs = layer.bias.size
    return (source[0], outs) if layer.kind == "dense" else (source[0], outs, *layer.out_size)


def qoperator(layer: Layer, source: tuple[int, ...]) -> bytes:
    """QLinearConv or QGemm; `source` is the shape with the channels last."""
    names = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero"]
    if layer.kind == "dense":
        node = helper.make_node("QGemm", [*names, "b", "y_scale", "y_zero"], ["y"], domain="com.microsoft", transB=1)
    else:
        node = helper.make_node("QLinearConv", [*names, "y_scale", "y_zero", "b"], ["y"], **_attributes(layer))
    shape = first(np.empty(source)).shape
    return _model([node], _constants(layer), shape, _result(layer, source))


def qdq(layer: Layer, source: tuple[int, ...]) -> bytes:
    """DequantizeLinear, Conv or Gemm on real numbers, QuantizeLinear."""
    constants = _constants(layer)
    constants["b_scale"] = np.float32(layer.in_scale) * constants["w_scale"]
    constants["b_zero"] = np.zeros(len(layer.weight_scales), np.int32)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "x_scale", "x_zero"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["wr"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "b_scale", "b_zero"], ["br"], axis=0),
        helper.make_node("Gemm" if layer.kind == "dense" else "Conv", ["xr", "wr", "br"], ["yr"], **_attributes(layer)),
    ]
    last = "yr"
    if layer.activation == "relu":
        nodes.append(helper.make_node("Relu", ["yr"], ["yc"]))
        last = "yc"
    nodes.append(helper.make_node("QuantizeLinear", [last, "y_scale", "y_zero"], ["y"]))
    shape = first(np.empty(source)).shape
    return _model(nodes, constants, shape, _result(layer, source))

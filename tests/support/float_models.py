"""Small float models with ONNX's usual layers, and their quantized forms by onnxruntime.quantization."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32


@dataclass
class Layers:
    """A float model that grows layer by layer, with random weights."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}_{self.count}"

    def constant(self, array: Any) -> str:
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op_type: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        out = out or self.name(op_type.lower())
        self.nodes.append(helper.make_node(op_type, inputs, [out], self.name(op_type), **attributes))
        return out

    def weights(self, *shape: int) -> str:
        spread = np.sqrt(2 / np.prod(shape[1:]))
        return self.constant((self.rng.standard_normal(shape) * spread).astype(F32))

    def vector(self, size: int, low: float = -0.2, high: float = 0.2) -> str:
        return self.constant(self.rng.uniform(low, high, size).astype(F32))

    def conv(
        self,
        x: str,
        channels: int,
        filters: int,
        taps: int,
        *,
        stride: int = 1,
        groups: int = 1,
        norm: bool = False,
        act: str = "",
    ) -> str:
        pads = [(taps - 1) // 2] * 4
        weights = self.weights(filters, channels // groups, taps, taps)
        x = self.add("Conv", x, weights, self.vector(filters), strides=[stride] * 2, pads=pads, group=groups)
        if norm:
            scale, variance = self.vector(filters, 0.5, 1.5), self.vector(filters, 0.5, 1.5)
            x = self.add("BatchNormalization", x, scale, self.vector(filters), self.vector(filters), variance)
        if act == "Clip":
            return self.add("Clip", x, self.constant(F32(0)), self.constant(F32(6)))
        return self.add(act, x) if act else x

    def dense(self, x: str, depth: int, columns: int, out: str = "") -> str:
        product = self.add("MatMul", x, self.weights(depth, columns))
        return self.add("Add", product, self.vector(columns), out=out)

    def model(self, shape: tuple[int, ...], result: tuple[int, ...]) -> onnx.ModelProto:
        """The model from "x" to "y"."""
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", result))]
        graph = helper.make_graph(self.nodes, "graph", infos[:1], infos[1:], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def branches(rng: np.random.Generator) -> onnx.ModelProto:
    """Convolutions, pools, a residual sum, three activations that are joined, and a classifier."""
    m, c = Layers(rng), 8
    x = m.conv("x", 3, c, 3, norm=True, act="Relu")
    a = m.conv(m.conv(x, c, c, 3, norm=True, act="Relu"), c, c, 3, groups=c, act="Clip")
    x = m.add("Relu", m.add("Add", x, m.conv(a, c, c, 1)))
    x = m.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    parts = [m.add("LeakyRelu", m.conv(x, c, c, 3), alpha=0.1), m.add("Sigmoid", m.conv(x, c, c, 1))]
    parts.append(m.add("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]))
    x = m.add("Concat", *parts, axis=1)
    x = m.add("Mul", x, m.conv(x, 3 * c, 3 * c, 1))
    half = m.constant(np.array([1, 1, 0.5, 0.5], F32))
    x = m.add("Resize", x, "", half, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = m.conv(x, 3 * c, 2 * c, 3, stride=2, act="Relu")
    x = m.add("Flatten", m.add("GlobalAveragePool", x))
    x = m.add("Gemm", x, m.weights(10, 2 * c), m.vector(10), transB=1)
    m.add("Softmax", x, out="y", axis=-1)
    return m.model((1, 3, 16, 16), (1, 10))


def inverted(rng: np.random.Generator) -> onnx.ModelProto:
    """Narrow blocks that widen, filter every channel and narrow again, with residual sums."""
    m, channels = Layers(rng), 8
    x = m.conv("x", 3, channels, 3, stride=2, norm=True, act="Clip")
    for filters, stride in ((8, 1), (12, 2), (12, 1)):
        wide = 4 * channels
        h = m.conv(x, channels, wide, 1, norm=True, act="Clip")
        h = m.conv(h, wide, wide, 3, stride=stride, groups=wide, norm=True, act="Clip")
        h = m.conv(h, wide, filters, 1, norm=True)
        x = m.add("Add", x, h) if stride == 1 and filters == channels else h
        channels = filters
    x = m.add("ReduceMean", m.conv(x, channels, 32, 1, norm=True, act="Clip"), axes=[2, 3], keepdims=0)
    m.add("Gemm", x, m.weights(32, 10), m.vector(10), out="y")
    return m.model((1, 3, 24, 24), (1, 10))


def dense(rng: np.random.Generator) -> onnx.ModelProto:
    """Dense layers."""
    m = Layers(rng)
    x = m.add("Relu", m.dense("x", 24, 40))
    x = m.add("Tanh", m.dense(x, 40, 16))
    m.add("MatMul", x, m.weights(16, 5), out="y")
    return m.model((4, 24), (4, 5))


def attention(rng: np.random.Generator) -> onnx.ModelProto:
    """A block of attention and dense layers."""
    m, steps, depth, heads = Layers(rng), 8, 16, 2

    def norm(x: str) -> str:
        return m.add("LayerNormalization", x, m.vector(depth, 0.5, 1.5), m.vector(depth), axis=-1)

    h, parts = norm("x"), []
    for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        split = m.add("Reshape", m.dense(h, depth, depth), m.constant(np.array([0, steps, heads, depth // heads])))
        parts.append(m.add("Transpose", split, perm=order))
    scores = m.add("Div", m.add("MatMul", parts[0], parts[1]), m.constant(F32(np.sqrt(depth // heads))))
    mixed = m.add("MatMul", m.add("Softmax", scores, axis=-1), parts[2])
    mixed = m.add("Reshape", m.add("Transpose", mixed, perm=[0, 2, 1, 3]), m.constant(np.array([0, steps, depth])))
    x = m.add("Add", "x", m.dense(mixed, depth, depth))
    h = m.dense(norm(x), depth, 2 * depth)
    half = m.add("Add", m.add("Erf", m.add("Div", h, m.constant(F32(np.sqrt(2))))), m.constant(F32(1)))
    h = m.add("Mul", m.add("Mul", h, half), m.constant(F32(0.5)))
    x = m.add("ReduceMean", m.add("Add", x, m.dense(h, 2 * depth, depth)), axes=[1], keepdims=0)
    m.dense(x, depth, 5, out="y")
    return m.model((1, steps, depth), (1, 5))


MODELS: Mapping[str, Callable[[np.random.Generator], onnx.ModelProto]] = {
    "attention": attention,
    "branches": branches,
    "dense": dense,
    "inverted": inverted,
}


def forms() -> dict[str, dict[str, Any]]:
    """Ways to quantize: names to arguments of quantize_static, or with `dynamic` of quantize_dynamic."""
    from onnxruntime.quantization import QuantFormat, QuantType

    kinds = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8, "u16": QuantType.QUInt16, "s16": QuantType.QInt16}
    found: dict[str, dict[str, Any]] = {}
    for label, form in (("pairs", QuantFormat.QDQ), ("operators", QuantFormat.QOperator)):
        for types in ("u8s8", "u8u8", "s8s8"):
            for per_channel in (False, True):
                found[f"{label}_{types}{'_per_channel' if per_channel else ''}"] = {
                    "quant_format": form,
                    "activation_type": kinds[types[:2]],
                    "weight_type": kinds[types[2:]],
                    "per_channel": per_channel,
                }
    pairs = {"quant_format": QuantFormat.QDQ, "activation_type": kinds["u8"], "weight_type": kinds["s8"]}
    symmetric = {"ActivationSymmetric": True, "WeightSymmetric": True}
    return {
        **found,
        "pairs_reduced_range": {**pairs, "per_channel": True, "reduce_range": True},
        "pairs_u16": {**pairs, "activation_type": kinds["u16"]},
        "pairs_s16": {**pairs, "activation_type": kinds["s16"]},
        "pairs_real_bias": {**pairs, "extra_options": {"QuantizeBias": False}},
        "pairs_symmetric": {**pairs, "activation_type": kinds["s8"], "extra_options": symmetric},
        "pairs_of_their_own": {**pairs, "extra_options": {"DedicatedQDQPair": True, "AddQDQPairToWeight": True}},
        "dynamic_u8": {"dynamic": True, "weight_type": kinds["u8"]},
        "dynamic_s8": {"dynamic": True, "weight_type": kinds["s8"], "per_channel": True},
    }


class _Reader:
    def __init__(self, shape: tuple[int, ...], rng: np.random.Generator) -> None:
        self.left = iter([{"x": rng.standard_normal(shape).astype(F32)} for _ in range(3)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def quantize(model: onnx.ModelProto, arguments: Mapping[str, Any], folder: Path) -> bytes:
    """The model quantized by onnxruntime.quantization, calibrated with random inputs."""
    from onnxruntime.quantization import quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    logging.disable(logging.WARNING)
    plain, prepared, result = (folder / f"{name}.onnx" for name in ("plain", "prepared", "result"))
    onnx.save(model, plain)
    quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
    given = dict(arguments)
    if given.pop("dynamic", False):
        quantize_dynamic(prepared, result, **given)
    else:
        shape = tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim)
        quantize_static(prepared, result, _Reader(shape, np.random.default_rng(1)), **given)
    logging.disable(logging.NOTSET)
    return result.read_bytes()

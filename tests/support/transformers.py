"""Small transformer encoders as PyTorch exports them, with random weights, quantized by ONNX Runtime's own tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic


class _Maker:
    """Nodes and constants of a model that grows from its input."""

    def __init__(self, hidden: int, opset: int, bias_first: bool) -> None:
        self.hidden, self.opset, self.bias_first = hidden, opset, bias_first
        self.rng = np.random.default_rng(hidden)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}_output_0"], name=name, **attributes))
        return f"{name}_output_0"

    def random(self, name: str, *shape: int, around: float = 0.0, by: float = 0.1) -> str:
        return self.constant(name, (around + by * self.rng.standard_normal(shape)).astype(np.float32))

    def linear(self, x: str, rows: int, columns: int, name: str) -> str:
        weights = self.random(f"{name}.weight", rows, columns, by=rows**-0.5)
        product = self.node("MatMul", [x, weights], f"/{name}/MatMul")
        both = [self.random(f"{name}.bias", columns), product]
        return self.node("Add", both if self.bias_first else both[::-1], f"/{name}/bias")

    def normalized(self, x: str, name: str) -> str:
        scale, bias = self.random(f"{name}.weight", self.hidden, around=1), self.random(f"{name}.bias", self.hidden)
        if self.opset >= 17:
            return self.node("LayerNormalization", [x, scale, bias], f"/{name}/LayerNormalization", epsilon=1e-12)
        place = f"/{name}/"
        apart = self.node("Sub", [x, self.node("ReduceMean", [x], f"{place}ReduceMean", axes=[-1])], f"{place}Sub")
        square = self.node("Pow", [apart, self.constant(f"{name}.two", np.float32(2))], f"{place}Pow")
        spread = self.node("ReduceMean", [square], f"{place}ReduceMean_1", axes=[-1])
        spread = self.node("Add", [spread, self.constant(f"{name}.epsilon", np.float32(1e-12))], f"{place}Add")
        ratio = self.node("Div", [apart, self.node("Sqrt", [spread], f"{place}Sqrt")], f"{place}Div")
        return self.node("Add", [self.node("Mul", [ratio, scale], f"{place}Mul"), bias], f"{place}Add_1")

    def gelu(self, x: str, name: str) -> str:
        place = f"/{name}/"
        ratio = self.node("Div", [x, self.constant(f"{name}.root", np.float32(2**0.5))], f"{place}Div")
        error = self.node("Erf", [ratio], f"{place}Erf")
        error = self.node("Add", [error, self.constant(f"{name}.one", np.float32(1))], f"{place}Add")
        product = self.node("Mul", [x, error], f"{place}Mul")
        return self.node("Mul", [product, self.constant(f"{name}.half", np.float32(0.5))], f"{place}Mul_1")

    def attention(self, x: str, heads: int, rows: int, name: str) -> str:
        place, parts = f"/{name}/", {}
        for part in ("query", "key", "value"):
            y = self.linear(x, self.hidden, self.hidden, f"{name}.{part}")
            shape = self.constant(f"{name}.{part}.shape", np.array([1, rows, heads, self.hidden // heads]))
            y = self.node("Reshape", [y, shape], f"{place}{part}/Reshape")
            order = [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3]
            parts[part] = self.node("Transpose", [y], f"{place}{part}/Transpose", perm=order)
        scores = self.node("MatMul", [parts["query"], parts["key"]], f"{place}MatMul")
        root = self.constant(f"{name}.root", np.float32((self.hidden // heads) ** 0.5))
        scores = self.node("Softmax", [self.node("Div", [scores, root], f"{place}Div")], f"{place}Softmax", axis=-1)
        y = self.node("MatMul", [scores, parts["value"]], f"{place}MatMul_1")
        y = self.node("Transpose", [y], f"{place}Transpose_3", perm=[0, 2, 1, 3])
        shape = self.constant(f"{name}.shape", np.array([1, rows, self.hidden]))
        return self.linear(self.node("Reshape", [y, shape], f"{place}Reshape_3"), *(self.hidden,) * 2, f"{name}.output")


def encoder(
    path: Path, layers: int = 1, hidden: int = 16, rows: int = 8, *, opset: int = 17, bias_first: bool = False
) -> Path:
    """Writes a dynamically quantized encoder of the form of BERT to `path`; its input is `x`, [1, rows, hidden].

    Args:
        path: of the model; the one with real weights is written beside it.
        layers, hidden, rows: sizes; there are two heads.
        opset: from 17 on LayerNormalization is one node, before that nine.
        bias_first: whether sums of a product and its bias name the bias first.
    """
    maker, x = _Maker(hidden, opset, bias_first), "x"
    for number in range(layers):
        place = f"encoder.layer.{number}"
        y = maker.attention(x, 2, rows, f"{place}.attention")
        x = maker.normalized(maker.node("Add", [y, x], f"/{place}.attention/residual"), f"{place}.attention.LayerNorm")
        y = maker.linear(x, hidden, 2 * hidden, f"{place}.intermediate")
        y = maker.linear(maker.gelu(y, f"{place}.gelu"), 2 * hidden, hidden, f"{place}.output")
        x = maker.normalized(maker.node("Add", [y, x], f"/{place}.output/residual"), f"{place}.output.LayerNorm")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, rows, hidden]) for name in ("x", x)]
    graph = helper.make_graph(maker.nodes, "encoder", ports[:1], ports[1:], maker.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    real = path.with_suffix(".real.onnx")
    onnx.save(model, real)
    quantize_dynamic(real, path, weight_type=QuantType.QInt8)
    return path

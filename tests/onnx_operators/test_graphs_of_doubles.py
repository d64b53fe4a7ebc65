"""Small graphs of binary64 numbers, which the runtime joins as it joins those of binary32, against ONNX Runtime.

Stems: layer_normalization matmul softmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from support.onnx_models import build, check, natively, single

# Nodes as "operator inputs -> output attribute=[...]", with what is read: x, z [3, n], q, k, v [2, 5, n], constants.
_NORMALIZATION = (
    "ReduceMean {x} -> m axes=-1",
    "Sub {x} m -> c",
    "Pow c two -> p",
    "ReduceMean p -> variance axes=-1",
    "Add variance epsilon -> e",
    "Sqrt e -> r",
    "Div c r -> n",
    "Mul n scale -> t",
    "Add t bias -> y",
)
_MEAN_SQUARE = (
    "Pow {x} two -> p",
    "ReduceMean p -> variance axes=-1",
    "Add variance epsilon -> e",
    "Sqrt e -> r",
    "Div {x} r -> n",
    "Mul n scale -> y",
)
_SUM = "Add x z -> a"
_TURNED = "Transpose k -> kt perm=0,2,1"


def _of(nodes: tuple[str, ...], x: str) -> tuple[str, ...]:
    return tuple(node.format(x=x) for node in nodes)


GRAPHS: dict[str, tuple[str, ...]] = {
    "normalization": _of(_NORMALIZATION, "x"),
    "normalized sum": (_SUM, *_of(_NORMALIZATION, "a")),
    "root of mean square": _of(_MEAN_SQUARE, "x"),
    "root of mean square of a sum": (_SUM, *_of(_MEAN_SQUARE, "a")),
    "attention": (_TURNED, "MatMul q kt -> h", "Div h factor -> s", "Softmax s -> p axis=-1", "MatMul p v -> y"),
    "scaled before": (_TURNED, "Mul q factor -> s", "MatMul s kt -> y"),
    "scaled behind": ("MatMul x weights -> h", "Mul factor h -> s", "Softmax s -> y"),
    "transposed, by a vector": ("Transpose x -> xt", "MatMul xt vector -> y"),
    "transposed batch": ("Transpose q -> qt perm=1,0,2", "Transpose k -> kt perm=1,2,0", "MatMul qt kt -> y"),
    "layer": ("MatMul x weights -> h", "Add h bias -> s", "Sigmoid s -> g", "Mul s g -> y"),
}


def _node(text: str) -> NodeProto:
    (operator, *inputs), (output, *attributes) = (side.split() for side in text.split(" -> "))
    pairs: dict[str, Any] = {}
    for attribute in attributes:
        name, values = attribute.split("=")
        numbers = [int(value) for value in values.split(",")]
        pairs[name] = numbers[0] if name == "axis" else numbers
    return helper.make_node(operator, inputs, [output], **pairs)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("columns", [1, 8, 33])
def test_graphs(graph: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    nodes = [_node(text) for text in GRAPHS[graph]]
    read = {name for node in nodes for name in node.input}
    tensors = {
        **{name: rng.standard_normal((3, columns)) for name in "xz"},
        **{name: rng.standard_normal((2, 5, columns)) for name in "qkv"},
    }
    constants = {
        **{name: rng.standard_normal(columns) for name in ("scale", "bias")},
        "weights": rng.standard_normal((columns, columns)),
        "vector": rng.standard_normal(3),
        **{name: np.array(value) for name, value in (("two", 2.0), ("epsilon", 1e-5), ("factor", 2.8284271247461903))},
    }
    inputs, known = ({name: value for name, value in of.items() if name in read} for of in (tensors, constants))
    assert check(*build(nodes, inputs, {"y": TensorProto.DOUBLE}, known, opset=13)) == "equal"


@pytest.mark.parametrize("operator", "Add Sub Mul Div Relu Abs Neg Sign".split())
def test_elements_are_native(operator: str) -> None:
    """Of an operand per row, of one number, and of special ones; NaNs are the reference's."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((3, 700))
    x[0, :4] = 0, -0.0, np.inf, -np.inf
    odd = x.copy()
    odd[1, ::50] = np.nan
    for given in (x, odd):
        for z in (rng.standard_normal((3, 700)), rng.standard_normal((3, 1)), np.float64(2.5)):
            inputs = {"x": given, **({"z": z} if operator in ("Add", "Sub", "Mul", "Div") else {})}
            model = single(operator, inputs, [TensorProto.DOUBLE])
            assert check(*model) == "equal"
            natively(*model)

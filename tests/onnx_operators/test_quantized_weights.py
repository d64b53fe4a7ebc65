"""Products with dequantized weights alone: ONNX Runtime keeps the bytes of the same ones, in the same blocks."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.graph import Graph
from bittrue.numerics import find as find_numerics
from bittrue.plan.declared import Declared
from bittrue.rewrites.onnxruntime_optimizer.fuse_quantized import rewrite
from support.fused_models import optimised
from support.onnx_models import cases

_RANGES = {
    TensorProto.UINT4: (0, 16),
    TensorProto.INT4: (-8, 8),
    TensorProto.UINT8: (0, 256),
    TensorProto.INT8: (-128, 128),
}


def random_model(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """x times weights with a scale for all of them, per column or row, or per block; sometimes with a bias."""
    kind = int(rng.choice(list(_RANGES)))
    depth, columns = int(rng.choice([16, 33, 64, 72, 200])), int(rng.choice([1, 7, 8, 16]))
    turned = rng.random() < 0.1
    shape = (columns, depth) if turned else (depth, columns)
    low, high = _RANGES[kind]
    few: tuple[int, ...] = ()
    attributes: dict[str, int] = {}
    way = rng.random()
    if way > 0.3:
        axis = int(rng.random() < (0.15 if way > 0.5 else 0.9))
        attributes["axis"] = axis
        few = (shape[axis],)
        if way > 0.5:
            block = int(rng.choice([8, 16, 16, 24, 32, 32, 64, 128]))
            attributes["block_size"] = block
            few = tuple(-(-size // block) if place == axis else size for place, size in enumerate(shape))
    scales = ((rng.random(few) + 0.5) / 10).astype(np.float32)
    constants = [
        helper.make_tensor("w", kind, shape, rng.integers(low, high, shape).reshape(-1)),
        numpy_helper.from_array(np.asarray(scales), "s"),
    ]
    operands = ["w", "s"]
    if rng.random() < 0.7:
        constants.append(helper.make_tensor("z", kind, few, rng.integers(low, high, few).reshape(-1)))
        operands.append("z")
    rows = (int(rng.choice([1, 5])), depth)
    nodes = [helper.make_node("DequantizeLinear", operands, ["d"], **attributes)]
    biased = rng.random() < 0.5
    if biased:
        form = (columns,) if rng.random() < 0.8 else (1,)
        constants.append(numpy_helper.from_array(rng.standard_normal(form).astype(np.float32), "b"))
    if turned or rng.random() < 0.4:
        inputs = ["x", "d", "b"] if biased else ["x", "d"]
        factor = 2.0 if rng.random() < 0.1 else 1.0
        nodes.append(helper.make_node("Gemm", inputs, ["y"], transB=int(turned), alpha=factor))
    else:
        rows = (2, *rows) if rng.random() < 0.3 else rows
        nodes.append(helper.make_node("MatMul", ["x", "d"], ["p" if biased else "y"]))
        if biased:
            nodes.append(helper.make_node("Add", ["p", "b"], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, rows)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "graph", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model.SerializeToString(), rng.standard_normal(rows).astype(np.float32)


def _kept(graph: Graph) -> list[tuple[object, ...]]:
    """Bits, dimensions and block of every product whose weights are quantized values."""
    names = ("bits", "k", "n", "block_size")
    return [tuple(n.attributes[name] for name in names) for n in graph.nodes if n.source == "MatMulNBits"]


def test_kept(request: pytest.FixtureRequest) -> None:
    """The same products keep quantized values, in the same blocks."""
    seen = 0
    for rng in cases(request):
        content = random_model(rng)[0]
        graph = bittrue.load(content).graph
        ours = _kept(rewrite(graph, Declared(find_numerics("onnxruntime"), 1 << 28, graph))[0])
        assert ours == _kept(bittrue.load(optimised(content)).graph)
        seen += len(ours)
    assert seen > 15

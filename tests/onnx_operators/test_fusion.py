"""fuse_quantized gives the graph that ONNX Runtime makes, and every fused node its bytes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import bittrue
from bittrue.numerics import find as find_numerics
from bittrue.plan.planner import declared_shapes
from bittrue.rewrites.onnxruntime_optimizer.fuse_quantized import rewrite
from support.fused_models import Tally, all_values, compare_outputs, compare_steps, optimised, structure
from support.onnx_models import HERE, build, cases, check, needs_wide, run_runtime
from support.quantized_graphs import GraphMaker

_OPSETS = (13, 17, 21)


def random_model(rng: np.random.Generator, *, moved: bool = False) -> tuple[bytes, list[np.ndarray]]:
    opset, usual = _OPSETS[int(rng.integers(3))], float(rng.choice([0.95, 0.8, 0.6]))
    maker = GraphMaker(rng, opset=opset, usual=usual, moved=moved)
    while not maker.outputs:
        maker.grow(int(rng.integers(1, 6)))
    return maker.model()


def test_structure(request: pytest.FixtureRequest) -> None:
    for rng in cases(request):
        content, _ = random_model(rng)
        graph = bittrue.load(content).graph
        numerics = find_numerics("onnxruntime")
        ours = structure(rewrite(graph, declared_shapes(numerics, 1 << 28)(graph))[0])
        theirs = structure(bittrue.load(optimised(content)).graph)
        assert ours == theirs


@needs_wide
def test_bytes(request: pytest.FixtureRequest) -> None:
    """Fused nodes on the runtime's own values, and outputs that follow from exact nodes alone."""
    tally = Tally()
    for rng in cases(request):
        content, feeds = random_model(rng, moved=True)
        model = optimised(content, off=())
        names = [bittrue.load(content).graph.tensors[i].name for i in bittrue.load(content).graph.inputs]
        theirs = run_runtime(content, feeds)
        assert isinstance(theirs, dict)
        session = bittrue.load(content).prepare(HERE, executor="reference")
        compare_steps(session, {**all_values(model, feeds), **dict(zip(names, feeds, strict=True))}, tally)
        compare_outputs(session, feeds, theirs)
    assert tally.tensors > 100


def test_operators_without_effect_in_a_row() -> None:
    """Each of them has been replaced by the time that it is looked at."""
    x = np.float32([[1.5, -2.0]])
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Dropout", ["a"], ["b"]),
        helper.make_node("Identity", ["b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT})
    assert check(content, feeds) == "equal"
    assert [step.operator for step in bittrue.load(content).prepare().plan.steps] == ["relu"]

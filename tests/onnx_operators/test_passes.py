"""Graphs aimed at single passes of ONNX Runtime's optimiser: its bytes, all of its optimisers at work."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, cases, needs_wide, run_runtime
from support.pass_graphs import PASSES, PassGraph

# Few of each; --deep and --examples make more.
_USUAL = 12


@needs_wide
@pytest.mark.parametrize("aim", PASSES)
def test_bytes(request: pytest.FixtureRequest, aim: str) -> None:
    for rng in cases(request, usual=_USUAL):
        content, feeds = PASSES[aim](rng).model()
        theirs = run_runtime(content, feeds)
        if not isinstance(theirs, dict):
            continue
        model = bittrue.load(content)
        names = [model.graph.tensors[index].name for index in model.graph.inputs]
        shapes = {name: array.shape for name, array in zip(names, feeds, strict=True)}
        ours = model.prepare(HERE, shapes=shapes).run(*feeds)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))


@needs_wide
@pytest.mark.parametrize("tapped", [False, True])
def test_a_sum_that_is_a_result_holds_a_transposition(tapped: bool) -> None:
    """Where its image has another reader, what the transposition would be undone behind is not looked for beyond it."""
    rng = np.random.default_rng(4)
    g = PassGraph(rng, 13, 0)
    zero, scale, weight = g.constant(np.uint8(100)), g.constant(np.float32(0.03)), g.constant(np.float32(0.01))

    def pair(x: str) -> str:
        return g.node("DequantizeLinear", g.node("QuantizeLinear", x, scale, zero), scale, zero)

    def convolution(x: str) -> str:
        filters = g.constant(rng.integers(-127, 128, (8, 8, 1, 1)).astype(np.int8))
        return pair(g.node("Conv", x, g.node("DequantizeLinear", filters, weight, g.constant(np.int8(0)))))

    x = pair(g.node("Relu", convolution(pair(g.input(g.reals(1, 8, 12, 12))))))
    total = g.node("ReduceSum", x, g.indices(2, 3), keepdims=1)
    pair(g.node("Mul", x, convolution(pair(total))))
    content, feeds = g.model()
    if tapped:
        model = onnx.load_from_string(content)
        model.graph.output.append(helper.make_tensor_value_info(total, TensorProto.FLOAT, None))
        content = model.SerializeToString()
    ours = bittrue.load(content).prepare(HERE)
    (step,) = (step for step in ours.plan.steps if step.operator == "sum")
    # Turned back, the image's channels come last.
    assert (ours.plan.tensors[step.inputs[0]].shape[-1] == 8) == (not tapped)
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    found = ours.run(*feeds)
    for name, value in theirs.items():
        assert_same(name, found[name], np.asarray(value))


@pytest.mark.parametrize("form", ["none", "infinity", "triangle", "split"])
def test_attention_that_is_not_joined_says_so(form: str) -> None:
    """GPT-2's, DistilBERT's and MobileCLIP's forms, which the runtime may join."""
    g = PassGraph(np.random.default_rng(3), 13 if form == "split" else 12, 0)
    x, scale = g.input(g.reals(1, 4, 4)), g.constant(np.float32(2))
    scores = g.node("MatMul", g.node("Div", x, scale), x)
    if form == "infinity":
        hidden = g.node("Expand", g.node("Equal", g.vector(4), g.constant(np.float32(0))), g.indices(1, 4, 4))
        scores = g.node("Where", hidden, g.constant(np.float32(-np.inf)), scores)
    if form == "triangle":
        seen = g.node("Cast", g.input(np.tri(4, dtype=np.float32)), to=9)
        scores = g.node("Where", seen, g.node("Div", scores, scale), g.constant(np.float32(-10000)))
    if form == "split":
        turned = g.node("Transpose", g.node("Reshape", x, g.indices(1, 2, 8)), perm=[0, 2, 1])
        parts = g.node("Reshape", g.node("MatMul", turned, g.constant(g.reals(2, 6))), g.indices(1, 8, 3, 1, 2))
        g.several("Split", 3, parts, axis=2)
    g.node("Softmax", scores, axis=2)
    content, _ = g.model()
    assert bittrue.load(content).prepare(HERE).plan.inexact == (() if form == "none" else ("Softmax",))

"""The pass that looks functions of bytes up: random chains between pairs, with and without it and by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, cases, needs_measured, run_runtime
from support.pass_graphs import PassGraph

_USUAL = 25
_FUNCTIONS = (
    "Erf",
    "Sigmoid",
    "Tanh",
    "HardSwish",
    "HardSigmoid",
    "Relu",
    "Neg",
    "Softplus",
    "Exp",
    "Log",
    "Elu",
    "Abs",
)


def _pair(g: PassGraph, x: str, several: bool = False) -> str:
    """QuantizeLinear and DequantizeLinear, now and then by channel."""
    kind, channels = g.pick(np.uint8, np.uint8, np.int8), 8
    if several and g.chance(0.1):
        scale = g.constant(np.exp2(g.rng.uniform(-6, -4, channels)).astype(np.float32))
        point = g.constant(g.rng.integers(0, 100, channels).astype(kind))
    else:
        scale = g.constant(np.float32(np.exp2(g.rng.uniform(-7, -4))))
        point = g.constant(np.asarray(g.rng.integers(0, 120), kind))
    attributes = {"axis": 1} if several else {}
    quantized = g.node("QuantizeLinear", x, scale, point, **attributes)
    return g.node("DequantizeLinear", quantized, scale, point, **attributes)


def _chain(rng: np.random.Generator) -> PassGraph:
    """Functions of one tensor of bytes; products and sums of these, of it, of numbers, and of another tensor."""
    g = PassGraph(rng, 17, 0.05)
    rows = int(rng.choice([128, 128, 16, 130, 129]))
    made = [_pair(g, g.input(2 * g.reals(1, 8, rows, 2)), several=True)]
    other = _pair(g, g.input(g.reals(1, 8, rows, 2)))
    for _ in range(int(rng.integers(1, 6))):
        x = made[-1] if g.chance(0.8) else g.pick(*made)
        if g.chance(0.5):
            y = g.node(g.pick(*_FUNCTIONS), x)
        else:
            number = g.constant(np.float32(rng.uniform(0.2, 2)))
            y = g.node(g.pick("Mul", "Add", "Div"), x, number if g.chance(0.5) else other if g.chance(0.1) else made[0])
        made.append(_pair(g, y) if g.chance(0.6) else y)
    _pair(g, made[-1])
    return g


@needs_measured
def test_bytes(request: pytest.FixtureRequest) -> None:
    looked_up = 0
    for rng in cases(request, usual=_USUAL):
        content, feeds = _chain(rng).model()
        theirs = run_runtime(content, feeds)
        if not isinstance(theirs, dict):
            continue
        model = bittrue.load(content)
        session, plain = model.prepare(HERE), model.prepare(HERE, passes=[])
        expected = plain.run(*feeds)
        for name, value in session.run(*feeds).items():
            assert_same(name, value, expected[name])
            assert_same(name, value, np.asarray(theirs[name]))
        looked_up += any("functions of bytes" in line for line in session.plan.execution)
    assert looked_up > _USUAL // 4


@needs_measured
def test_numbers_in_place_of_others() -> None:
    """As scaled_dot_product_attention is exported: a number where the softmax gives NaN."""
    g = PassGraph(np.random.default_rng(3), 17, 0)
    parameters = g.constant(np.float32(1 / 255)), g.constant(np.int8(-128))
    softmax = g.node("Softmax", g.input(g.reals(1, 8, 16, 16)))
    x = g.node("DequantizeLinear", g.node("QuantizeLinear", softmax, *parameters), *parameters)
    chosen = g.node("Where", g.node("IsNaN", x), g.constant(np.float32([0])), x)
    g.node("DequantizeLinear", g.node("QuantizeLinear", chosen, *parameters), *parameters)
    content, feeds = g.model()
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    session = bittrue.load(content).prepare(HERE)
    assert any("looked up" in line for line in session.plan.execution)
    for name, value in theirs.items():
        assert_same(name, session.run(*feeds)[name], np.asarray(value))


def test_gates_of_a_convolution_are_its_table() -> None:
    """x times half of 1 + erf(x / sqrt 2), with pairs everywhere: one lookup, which the layer does."""
    g = PassGraph(np.random.default_rng(1), 17, 0)

    def pair(x: str, scale: float, point: int) -> str:
        parameters = g.constant(np.float32(scale)), g.constant(np.uint8(point))
        return g.node("DequantizeLinear", g.node("QuantizeLinear", x, *parameters), *parameters)

    filters = g.constant(g.rng.integers(-127, 128, (16, 8, 1, 1)).astype(np.int8))
    weights = g.node("DequantizeLinear", filters, g.constant(np.float32(0.01)), g.constant(np.int8(0)))
    x = pair(g.node("Conv", pair(g.input(g.reals(1, 8, 16, 16)), 0.02, 128), weights), 0.03, 100)
    inner = pair(g.node("Erf", g.node("Div", x, g.constant(np.float32(2**0.5)))), 0.008, 128)
    total = pair(g.node("Add", inner, pair(g.constant(np.float32(1)), 1 / 255, 0)), 0.008, 0)
    gated = pair(g.node("Mul", x, total), 0.03, 20)
    pair(g.node("Mul", gated, pair(g.constant(np.float32(0.5)), 1 / 510, 0)), 0.02, 10)
    content, feeds = g.model()
    session = bittrue.load(content).prepare("onnxruntime", executor="native")
    notes = session.plan.execution
    assert any("functions of bytes looked up: Mul" in line for line in notes)
    assert any("tables fused: Mul" in line for line in notes)
    (expected,) = bittrue.load(content).prepare("onnxruntime", executor="reference").run(*feeds).values()
    (value,) = session.run(*feeds).values()
    assert_same("gates", value, expected)

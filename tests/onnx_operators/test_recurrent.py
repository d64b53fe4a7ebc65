"""LSTM, GRU, RNN and DynamicQuantizeLSTM: random one-node models against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from support.onnx_models import MICROSOFT, cases, check, integers, scale, single, zero_point

FUNCTIONS = ("Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu")
FUNCTIONS += ("Softsign", "Softplus")


def reals(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-3, 2))).astype(np.float32)


def layer(
    rng: np.random.Generator, gates: int, functions: int, states: int
) -> tuple[tuple[int, ...], dict[str, Any], dict[str, np.ndarray | None]]:
    """Extents (steps, batch, inputs, directions, hidden), attributes, and operands but the weights."""
    steps, batch, inputs, hidden = (int(v) for v in rng.integers(1, 8, 4))
    if rng.random() < 0.04:
        inputs, hidden = (int(v) for v in rng.integers(1, 300, 2))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if rng.random() < 0.4:
        attributes["activations"] = [str(f) for f in rng.choice(FUNCTIONS, functions * count)]
        attributes["activation_alpha"] = [float(v) for v in rng.uniform(0.1, 1.5, functions * count)]
        attributes["activation_beta"] = [float(v) for v in rng.uniform(0.1, 1.5, functions * count)]
    if rng.random() < 0.2:
        attributes["clip"] = float(rng.uniform(0.1, 2))
    operands: dict[str, np.ndarray | None] = {
        "x": reals(rng, steps, batch, inputs),
        "w": None,
        "r": None,
        "b": reals(rng, count, 2 * gates * hidden) if rng.random() < 0.7 else None,
        "lengths": rng.integers(0 if rng.random() < 0.2 else 1, steps + 1, batch).astype(np.int32)
        if rng.random() < 0.4
        else None,
        "h": reals(rng, count, batch, hidden) if rng.random() < 0.5 else None,
    }
    return (steps, batch, inputs, count, hidden), attributes, operands


@pytest.mark.parametrize("part", range(2))
def test_lstm(request: pytest.FixtureRequest, part: int) -> None:
    outcomes = []
    for rng in cases(request, part, 2):
        (_, batch, inputs, count, hidden), attributes, operands = layer(rng, 4, 3, 2)
        operands["w"], operands["r"] = reals(rng, count, 4 * hidden, inputs), reals(rng, count, 4 * hidden, hidden)
        operands["c"] = reals(rng, count, batch, hidden) if rng.random() < 0.5 else None
        operands["p"] = reals(rng, count, 3 * hidden) if rng.random() < 0.3 else None
        if rng.random() < 0.2:
            attributes["input_forget"] = 1
        constants = ["w", "r"] if rng.random() < 0.7 else ["w"] if rng.random() < 0.5 else []
        content, feeds = single("LSTM", operands, [TensorProto.FLOAT] * 3, attributes, constants=constants)
        outcomes.append(check(content, feeds, may_refuse={"BT-SEQUENCE-LENGTH"}))
    assert outcomes.count("equal") > 0.8 * len(outcomes)


@pytest.mark.parametrize("part", range(2))
def test_dynamic_quantize_lstm(request: pytest.FixtureRequest, part: int) -> None:
    outcomes = []
    for rng in cases(request, part, 2):
        (_, batch, inputs, count, hidden), attributes, operands = layer(rng, 4, 3, 2)
        kind = (np.uint8, np.int8)[rng.integers(2)]
        operands["w"], operands["r"] = (integers(rng, (count, n, 4 * hidden), kind) for n in (inputs, hidden))
        operands["c"] = reals(rng, count, batch, hidden) if rng.random() < 0.5 else None
        operands["p"] = reals(rng, count, 3 * hidden) if rng.random() < 0.3 else None
        if rng.random() < 0.2:
            attributes["input_forget"] = 1
        for name in ("w", "r"):
            per_channel = rng.random() < 0.5
            shape = (count, 4 * hidden) if per_channel else (count,)
            operands[f"{name}_scale"] = scale(rng, shape) * np.float32(0.01)
            one = zero_point(rng, kind, (1,))
            if per_channel and kind == np.int8 and rng.random() < 0.9:
                one = np.zeros_like(one)
            operands[f"{name}_zero"] = np.ascontiguousarray(np.broadcast_to(one, shape))
            if not per_channel:
                operands[f"{name}_zero"] = zero_point(rng, kind, shape)
        constants = [n for n in operands if n[0] in "wr"] if rng.random() < 0.7 else ["w"] if rng.random() < 0.5 else []
        content, feeds = single(
            "DynamicQuantizeLSTM", operands, [TensorProto.FLOAT] * 3, attributes, domain=MICROSOFT, constants=constants
        )
        outcomes.append(check(content, feeds, may_refuse={"BT-SEQUENCE-LENGTH"}))
    assert outcomes.count("equal") > 0.8 * len(outcomes)


@pytest.mark.parametrize("part", range(2))
def test_gru(request: pytest.FixtureRequest, part: int) -> None:
    outcomes = []
    for rng in cases(request, part, 2):
        (_, _, inputs, count, hidden), attributes, operands = layer(rng, 3, 2, 1)
        operands["w"], operands["r"] = reals(rng, count, 3 * hidden, inputs), reals(rng, count, 3 * hidden, hidden)
        if rng.random() < 0.5:
            attributes["linear_before_reset"] = 1
        constants = ["w", "r"] if rng.random() < 0.7 else ["w"] if rng.random() < 0.5 else []
        content, feeds = single("GRU", operands, [TensorProto.FLOAT] * 2, attributes, constants=constants)
        outcomes.append(check(content, feeds, may_refuse={"BT-SEQUENCE-LENGTH"}))
    assert outcomes.count("equal") > 0.8 * len(outcomes)


def test_rnn(request: pytest.FixtureRequest) -> None:
    outcomes = []
    for rng in cases(request):
        (_, _, inputs, count, hidden), attributes, operands = layer(rng, 1, 1, 1)
        operands["w"], operands["r"] = reals(rng, count, hidden, inputs), reals(rng, count, hidden, hidden)
        constants = ["w", "r"] if rng.random() < 0.7 else ["w"] if rng.random() < 0.5 else []
        content, feeds = single("RNN", operands, [TensorProto.FLOAT] * 2, attributes, constants=constants)
        outcomes.append(check(content, feeds, may_refuse={"BT-SEQUENCE-LENGTH"}))
    assert outcomes.count("equal") > 0.8 * len(outcomes)

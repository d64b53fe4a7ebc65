"""lstm, gru and rnn with stacked weights: random one-node models against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import bittrue
from support.onnx_models import (
    HERE,
    MICROSOFT,
    Checks,
    build,
    check,
    integers,
    options,
    scale,
    single,
    value_info,
    zero_point,
)

FUNCTIONS = ("Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu")
FUNCTIONS += ("Softsign", "Softplus")
# Where the runtime leaves memory as it was.
_UNDEFINED = {"BT-SEQUENCE-LENGTH"}


def finite(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-3, 2))).astype(np.float32)


def reals(rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """Draws usual numbers; once in a while a tensor with NaN, or with infinities and huge ones. They do not meet, as
    infinities make another NaN, and which one the runtime keeps is a recorded limit.
    """
    odd = np.float32([np.nan, 1e-45] if rng.random() < 0.5 else [np.inf, -np.inf, 3e38, -3e38, 1e-45])

    def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
        x = finite(rng, *shape)
        return np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), x) if rng.random() < 0.02 else x

    return draw


def layer(
    rng: np.random.Generator, gates: int, functions: int, draw: Callable[..., np.ndarray]
) -> tuple[tuple[int, ...], dict[str, Any], dict[str, np.ndarray | None]]:
    """Dimensions (steps, batch, inputs, directions, hidden), attributes, and operands but the weights."""
    steps, batch, inputs, hidden = (int(v) for v in rng.integers(1, 8, 4))
    if rng.random() < 0.04:
        inputs, hidden = (int(v) for v in rng.integers(1, 300, 2))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if rng.random() < 0.4:
        attributes["activations"] = [str(f) for f in rng.choice(FUNCTIONS, functions * count)]
        for name in ("activation_alpha", "activation_beta"):
            # What a list lacks has defaults.
            given = functions * count if rng.random() < 0.7 else int(rng.integers(0, functions * count))
            if given:
                attributes[name] = [float(v) for v in rng.uniform(0.1, 1.5, given)]
    if rng.random() < 0.2:
        attributes["clip"] = float(rng.uniform(0.1, 2))
    operands: dict[str, np.ndarray | None] = {
        "x": draw(rng, steps, batch, inputs),
        "w": None,
        "r": None,
        "b": draw(rng, count, 2 * gates * hidden) if rng.random() < 0.7 else None,
        "lengths": rng.integers(0 if rng.random() < 0.2 else 1, steps + 1, batch).astype(np.int32)
        if rng.random() < 0.4
        else None,
        "h": draw(rng, count, batch, hidden) if rng.random() < 0.5 else None,
    }
    return (steps, batch, inputs, count, hidden), attributes, operands


def model(
    rng: np.random.Generator,
    op_type: str,
    operands: dict[str, np.ndarray | None],
    attributes: dict[str, Any],
    outputs: int,
    constants: list[str],
    domain: str = "",
) -> tuple[bytes, list[np.ndarray]]:
    """One model with some of the outputs, in one of the operator's versions."""
    if rng.random() < 0.3:
        constants = []
    elif rng.random() < 0.15:
        constants = constants[:1]
    names = [f"y{i}" if rng.random() < 0.75 else "" for i in range(outputs)]
    if not any(names):
        names[rng.integers(outputs)] = "y"
    given = {name: array for name, array in operands.items() if array is not None}
    order = [name if array is not None else "" for name, array in operands.items()]
    return build(
        [helper.make_node(op_type, order, names, "node", domain=domain, **attributes)],
        {name: array for name, array in given.items() if name not in constants},
        {name: TensorProto.FLOAT for name in names if name},
        {name: array for name, array in given.items() if name in constants},
        opset=int(rng.choice([11, 14, 21, 22])),
    )


def test_sequence_lstm(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        draw = reals(rng)
        (_, batch, inputs, count, hidden), attributes, operands = layer(rng, 4, 3, draw)
        operands["w"], operands["r"] = draw(rng, count, 4 * hidden, inputs), draw(rng, count, 4 * hidden, hidden)
        operands["c"] = draw(rng, count, batch, hidden) if rng.random() < 0.5 else None
        operands["p"] = draw(rng, count, 3 * hidden) if rng.random() < 0.3 else None
        if rng.random() < 0.2:
            attributes["input_forget"] = 1
        checks.add(*model(rng, "LSTM", operands, attributes, 3, ["w", "r"]), may_refuse=_UNDEFINED)
    assert checks.outcomes.count("equal") > 0.8 * len(checks.outcomes)


def test_dynamic_quantize_lstm(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        (_, batch, inputs, count, hidden), attributes, operands = layer(rng, 4, 3, finite)
        kind = (np.uint8, np.int8)[rng.integers(2)]
        operands["w"], operands["r"] = (integers(rng, (count, n, 4 * hidden), kind) for n in (inputs, hidden))
        operands["c"] = finite(rng, count, batch, hidden) if rng.random() < 0.5 else None
        operands["p"] = finite(rng, count, 3 * hidden) if rng.random() < 0.3 else None
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
        constants = [name for name in operands if name[0] in "wr"]
        checks.add(
            *model(rng, "DynamicQuantizeLSTM", operands, attributes, 3, constants, MICROSOFT),
            may_refuse=_UNDEFINED,
        )
    assert checks.outcomes.count("equal") > 0.8 * len(checks.outcomes)


@pytest.mark.parametrize("batch", [1, 3])
def test_dynamic_quantize_lstm_on_several_threads(batch: int) -> None:
    """The runtime's threads quantize parts of a batch alone, and the plan says so."""
    rng, kinds = np.random.default_rng(5), {"s": np.float32(0.01), "z": np.int8(0)}
    operands: dict[str, np.ndarray | None] = {"x": rng.standard_normal((4, batch, 20), np.float32)}
    operands |= {"w": integers(rng, (1, 20, 48), np.int8), "r": integers(rng, (1, 12, 48), np.int8)}
    operands |= dict.fromkeys("bnhcp")
    operands |= {f"{name}{kind}": np.full(1, value) for name in "wr" for kind, value in kinds.items()}
    constants = [name for name in operands if name[0] in "wr"]
    attributes = {"hidden_size": 12}
    content, feeds = model(rng, "DynamicQuantizeLSTM", operands, attributes, 3, constants, MICROSOFT)
    session = bittrue.load(content).prepare(HERE)
    assert any("several threads" in note for note in session.plan.notes) == (batch > 1)
    chosen = options()
    chosen.intra_op_num_threads = 2
    runtime = onnxruntime.InferenceSession(content, chosen, ["CPUExecutionProvider"])
    theirs = runtime.run(None, dict(zip([one.name for one in runtime.get_inputs()], feeds, strict=True)))
    ours = session.run(*feeds)
    same = [a.tobytes() == ours[p.name].tobytes() for a, p in zip(theirs, session.outputs, strict=True)]
    assert all(same) == (batch == 1)


def test_sequence_gru(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        draw = reals(rng)
        (_, _, inputs, count, hidden), attributes, operands = layer(rng, 3, 2, draw)
        operands["w"], operands["r"] = draw(rng, count, 3 * hidden, inputs), draw(rng, count, 3 * hidden, hidden)
        if rng.random() < 0.5:
            attributes["linear_before_reset"] = 1
        checks.add(*model(rng, "GRU", operands, attributes, 2, ["w", "r"]), may_refuse=_UNDEFINED)
    assert checks.outcomes.count("equal") > 0.8 * len(checks.outcomes)


def test_sequence_rnn(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        draw = reals(rng)
        (_, _, inputs, count, hidden), attributes, operands = layer(rng, 1, 1, draw)
        operands["w"], operands["r"] = draw(rng, count, hidden, inputs), draw(rng, count, hidden, hidden)
        checks.add(*model(rng, "RNN", operands, attributes, 2, ["w", "r"]), may_refuse=_UNDEFINED)
    assert checks.outcomes.count("equal") > 0.8 * len(checks.outcomes)


@pytest.mark.parametrize("lengths", [[2, 0, 3], [0, 0, 0]])
@pytest.mark.parametrize(
    ("direction", "results", "outcome"),
    [("forward", 1, "equal"), ("bidirectional", 1, "equal"), ("reverse", 2, "equal"), ("forward", 2, "refused")],
)
def test_rnn_of_sequences_without_steps(direction: str, results: int, outcome: str, lengths: list[int]) -> None:
    """The runtime copies last states of nothing from before its memory."""
    rng, count = np.random.default_rng(3), 2 if direction == "bidirectional" else 1
    shapes = {"x": (3, 3, 2), "w": (count, 4, 2), "r": (count, 4, 4), "b": (count, 8), "l": (), "h": (count, 3, 4)}
    operands: dict[str, Any] = {name: finite(rng, *shape) for name, shape in shapes.items()}
    operands["l"] = np.array(lengths, np.int32)
    attributes = {"hidden_size": 4, "direction": direction}
    content, feeds = single("RNN", operands, [TensorProto.FLOAT] * results, attributes)
    assert check(content, feeds, may_refuse=_UNDEFINED) == outcome


@pytest.mark.parametrize(("results", "outcome"), [(2, "equal"), (3, "refused")])
def test_lstm_of_no_steps(results: int, outcome: str) -> None:
    operands = {"x": np.zeros((0, 2, 3), np.float32), "w": np.ones((1, 16, 3), np.float32)}
    operands["r"] = np.ones((1, 16, 4), np.float32)
    content, feeds = single("LSTM", operands, [TensorProto.FLOAT] * results, {"hidden_size": 4})
    assert check(content, feeds, may_refuse=_UNDEFINED) == outcome


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000])
def test_scaled_tanh_keeps_the_sign_of_nan(bits: int) -> None:
    ones = np.ones((1, 1, 1), np.float32)
    operands = {"x": np.full((1, 1, 1), np.uint32(bits)).view(np.float32), "w": ones, "r": ones}
    attributes = {"hidden_size": 1, "activations": ["ScaledTanh"], "activation_alpha": [0.5], "activation_beta": [0.7]}
    assert check(*single("RNN", operands, [TensorProto.FLOAT], attributes, constants=["w", "r"])) == "equal"


@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_weights_that_the_runtime_takes_for_no_constants(
    request: pytest.FixtureRequest, operator: str, gates: int
) -> None:
    """Dequantized ones, and initializers that callers may replace, are not packed, each by itself."""
    checks = Checks(request, usual=7, only="equal")
    for rng in checks:
        steps, batch, size, hidden = (int(v) for v in rng.integers((1, 1, 1, 1), (4, 4, 150, 80)))
        shapes = {"w": (1, gates * hidden, size), "r": (1, gates * hidden, hidden)}
        constants: dict[str, np.ndarray] = {"s": np.float32(0.02), "z": np.int8(0)}
        nodes, listed = [], []
        for name, shape in shapes.items():
            kind = str(rng.choice(["stored", "dequantized", "listed"]))
            constants[name] = finite(rng, *shape)
            if kind == "dequantized":
                constants[f"{name}_q"] = integers(rng, shape, np.int8)
                nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [name]))
                del constants[name]
            elif kind == "listed":
                listed.append(name)
        nodes.append(helper.make_node(operator, ["x", "w", "r"], ["y"], hidden_size=hidden))
        content, feeds = build(nodes, {"x": finite(rng, steps, batch, size)}, {"y": TensorProto.FLOAT}, constants)
        model = onnx.load_from_string(content)
        model.graph.input.extend(value_info(name, constants[name]) for name in listed)
        checks.add(model.SerializeToString(), feeds)

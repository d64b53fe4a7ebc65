"""Images in blocks or in planes, as what computes them leaves them: global averages, and sums that threads cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper

import bittrue
from support.onnx_models import HERE, Checks, Refused, build, check, natively, options, run_runtime

_UNARY = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Abs", "Neg", "Identity", "Softsign")
_BINARY = ("Add", "Mul", "Sub", "Sum", "Concat")


def test_random_images(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=20)
    for rng in checks:
        channels = int(rng.choice([16, 32]))
        x = rng.normal(size=(1, channels, *(int(v) for v in rng.integers(2, 9, 2)))).astype(np.float32)
        # Convolutions with a unit matrix are exact in any order.
        constants = {"unit": np.eye(channels, dtype=np.float32)[:, :, None, None]}
        nodes: list[NodeProto] = []
        made = {"x": channels}
        for step in range(int(rng.integers(4))):
            names = sorted(made)
            a, b = str(rng.choice(names)), str(rng.choice(names))
            kind = int(rng.integers(4))
            target, size = f"t{step}", made[a]
            if kind == 0 and made[a] == channels:
                nodes.append(helper.make_node("Conv", [a, "unit"], [target]))
            elif kind == 1:
                operator = str(rng.choice(["MaxPool", "AveragePool"]))
                nodes.append(helper.make_node(operator, [a], [target], kernel_shape=[1, 1]))
            elif kind == 2 and made[a] == made[b]:
                operator = str(rng.choice(_BINARY))
                size = made[a] + made[b] if operator == "Concat" else made[a]
                nodes.append(helper.make_node(operator, [a, b], [target], **({"axis": 1} if size > made[a] else {})))
            else:
                nodes.append(helper.make_node(str(rng.choice(_UNARY)), [a], [target]))
            made[target] = size
        nodes.append(helper.make_node("GlobalAveragePool", [list(made)[-1]], ["y"]))
        used = any(node.op_type == "Conv" for node in nodes)
        content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants if used else {})
        checks.add(content, feeds)


@pytest.mark.parametrize("total", ["Add", "Sum"])
def test_a_sum_that_begins_a_convolution_is_in_blocks(total: str) -> None:
    x = np.random.default_rng(1).normal(size=(1, 16, 7, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "unit"], ["a"]),
        helper.make_node("Conv", ["a", "unit"], ["b"]),
        helper.make_node(total, ["b", "a"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ]
    unit = np.eye(16, dtype=np.float32)[:, :, None, None]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"unit": unit})
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("channels", [3, 16])
def test_averages_of_negative_zeros_are_positive(channels: int) -> None:
    x = np.full((1, channels, 14, 14), -0.0, np.float32)
    for operator, attributes in (
        ("GlobalAveragePool", {}),
        ("AveragePool", {"kernel_shape": [3, 3]}),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ):
        node = helper.make_node(operator, ["x"], ["y"], **attributes)
        content, feeds = build([node], {"x": x}, {"y": TensorProto.FLOAT})
        assert check(content, feeds) == "equal"


@pytest.mark.parametrize("pool", ["GlobalMaxPool", "GlobalAveragePool", "MaxPool"])
def test_normalizations_behind_pools_of_given_images(pool: str) -> None:
    """Such images are put into blocks, where a normalization is a convolution."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 32, 5, 5)).astype(np.float32)
    constants = {name: rng.uniform(0.5, 2, 32).astype(np.float32) for name in ("scale", "bias", "mean", "variance")}
    nodes = [
        helper.make_node(pool, ["x"], ["pooled"], **({"kernel_shape": [2, 2]} if pool == "MaxPool" else {})),
        helper.make_node("BatchNormalization", ["pooled", *constants], ["y"]),
    ]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    assert check(content, feeds) == "equal"


def test_windows_of_many_channels(request: pytest.FixtureRequest) -> None:
    """Depthwise convolutions and pools, sixteen channels side by side and fewer of them at the end."""
    checks = Checks(request, usual=30, only="equal")
    for rng in checks:
        channels, taps = int(rng.integers(8, 40)), rng.integers(1, 6, 2)
        operator = str(rng.choice(["Conv", "MaxPool", "AveragePool"]))
        attributes = {
            "kernel_shape": [int(t) for t in taps],
            "strides": [int(s) for s in rng.integers(1, 4, 2)],
            "pads": [int(p) for p in rng.integers(0, [*taps, *taps])],
            "dilations": [int(d) for d in rng.integers(1, 3, 2)] if rng.random() < 0.4 else [1, 1],
        }
        reach = (taps - 1) * attributes["dilations"] + 1
        x = rng.normal(size=(int(rng.integers(1, 3)), channels, *(reach + rng.integers(0, 12, 2)))).astype(np.float32)
        x[rng.random(x.shape) < 0.1] = rng.choice(np.float32([0, -0.0, 3e38, np.nan, np.inf, -np.inf]))
        constants: dict[str, np.ndarray] = {}
        if operator == "Conv":
            attributes["group"] = channels
            constants = {"w": rng.normal(size=(channels, 1, *taps)), "b": rng.normal(size=channels)}
            constants = {name: value.astype(np.float32) for name, value in constants.items()}
        elif operator == "AveragePool":
            attributes["count_include_pad"] = int(rng.integers(2))
        nodes = [helper.make_node(operator, ["x", *constants], ["y"], **attributes)]
        if rng.random() < 0.4:
            nodes[0].output[0] = "a"
            nodes.append(helper.make_node("Relu", ["a"], ["y"]))
        checks.add(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants))


def _odd_maxima(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """Largest elements where NaN, infinities and zeros of both signs meet, in all ways of looking for them."""
    axes, sizes = int(rng.choice([1, 2, 2, 3])), [int(n) for n in rng.integers(1, 8, 3)]
    shape = (int(rng.integers(1, 3)), int(rng.choice([1, 3, 16, 32])), *sizes[:axes])
    x = rng.choice(np.array([0.0, -0.0, -1, np.nan, -np.inf, 1, -2])[: int(rng.integers(2, 8))], shape)
    x = x.astype(rng.choice(["f4", "f4", "f4", "f2", "f8"]))
    kind, opset = helper.np_dtype_to_tensor_dtype(x.dtype), int(rng.choice([8, 11, 12, 18, 22]))
    if rng.random() < 0.2 and x.dtype != np.float64:
        return build([helper.make_node("GlobalMaxPool", ["x"], ["y"])], {"x": x}, {"y": kind}, opset=opset)
    taps = [int(rng.integers(1, n + 1)) for n in shape[2:]] if rng.random() < 0.8 else list(shape[2:])
    attributes: dict[str, Any] = {"kernel_shape": taps}
    if rng.random() < 0.6:
        attributes["strides"] = [int(n) for n in rng.integers(1, 4, axes)]
    if rng.random() < 0.5:
        attributes["pads"] = [int(rng.integers(0, n)) for n in (*taps, *taps)]
    if rng.random() < 0.2:
        attributes["storage_order"] = 1
    if rng.random() < 0.2 and opset >= 10 and all(2 * n - 1 <= size for n, size in zip(taps, shape[2:], strict=True)):
        attributes["dilations"] = [2] * axes
    results = {"y": kind, **({"at": TensorProto.INT64} if rng.random() < 0.2 else {})}
    return build([helper.make_node("MaxPool", ["x"], list(results), **attributes)], {"x": x}, results, opset=opset)


def test_largest_of_odd_numbers(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=60, only="equal")
    for rng in checks:
        checks.add(*_odd_maxima(rng))


@pytest.mark.parametrize("free", [1, 2])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"])
def test_channels_whose_number_is_free_are_in_no_blocks(operator: str, free: int) -> None:
    rng = np.random.default_rng(free)
    x = rng.choice(np.float32([0, -0.0, -1]), (1, 16, 9, 11))
    if "Average" in operator:
        x = rng.standard_normal(x.shape).astype(np.float32)
    window = {} if "Global" in operator else {"kernel_shape": [3, 3], "pads": [1] * 4}
    content, feeds = build([helper.make_node(operator, ["x"], ["y"], **window)], {"x": x}, {"y": TensorProto.FLOAT})
    model = onnx.load_from_string(content)
    model.graph.input[0].type.tensor_type.shape.dim[free].dim_param = "free"
    expected = run_runtime(model.SerializeToString(), feeds)
    assert not isinstance(expected, Refused)
    for executor in ("reference", "native"):
        found = bittrue.load(model.SerializeToString()).prepare(HERE, executor=executor).run(*feeds)
        assert found["y"].tobytes() == expected["y"].tobytes(), executor


@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool"])
@pytest.mark.parametrize("size", [7, 40])
def test_windows_of_many_channels_run_natively(operator: str, size: int) -> None:
    """Images in one piece and in several."""
    rng = np.random.default_rng(size)
    x = rng.normal(size=(1, 21, size, size)).astype(np.float32)
    constants = {"w": rng.normal(size=(21, 1, 5, 5)).astype(np.float32)} if operator == "Conv" else {}
    attributes = {"kernel_shape": [5, 5], "pads": [2] * 4, **({"group": 21} if constants else {})}
    node = helper.make_node(operator, ["x", *constants], ["y"], **attributes)
    model = build([node], {"x": x}, {"y": TensorProto.FLOAT}, constants)
    assert check(*model) == "equal"
    natively(*model)


@pytest.mark.parametrize(
    ("channels", "taps", "length", "note"),
    [(80, 3, 100, True), (256, 1, 100, True), (64, 3, 64, False), (40, 3, 100, False), (128, 1, 100, False)],
)
def test_sums_that_depend_on_threads(channels: int, taps: int, length: int, note: bool) -> None:
    """What the plan does not name has the same bits in a session of several threads."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((32, channels, taps), np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[taps // 2] * 2)]
    x = rng.standard_normal((1, channels, length), np.float32)
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"w": weights})
    session = bittrue.load(content).prepare(HERE)
    assert any("several threads" in one for one in session.plan.notes) == note
    chosen = options()
    chosen.intra_op_num_threads = 2
    theirs = onnxruntime.InferenceSession(content, chosen, ["CPUExecutionProvider"]).run(None, {"x": x})[0]
    assert (theirs.tobytes() == session.run(*feeds)["y"].tobytes()) is not note


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "note"),
    [
        (16, 130, 96, True),
        (2, 300, 128, True),
        (16, 300, 40, True),
        (16, 600, 24, True),
        (16, 128, 96, False),
        (40, 300, 40, False),
        (1, 300, 128, False),
        (16, 250, 40, False),
        (16, 600, 16, False),
    ],
)
def test_products_that_depend_on_threads(
    operator: str, constant: bool, rows: int, depth: int, columns: int, note: bool
) -> None:
    """Those by constants never do."""
    rng = np.random.default_rng(1)
    values = {"x": rng.standard_normal((rows, depth), np.float32)}
    weights = {"w": rng.standard_normal((depth, columns), np.float32)}
    nodes = [helper.make_node(operator, ["x", "w"], ["y"])]
    given, constants = (values, weights) if constant else (values | weights, {})
    content, feeds = build(nodes, given, {"y": TensorProto.FLOAT}, constants)
    session = bittrue.load(content).prepare(HERE)
    note &= not constant
    assert any("several threads" in one for one in session.plan.notes) == note
    ours, found = session.run(*feeds)["y"].tobytes(), set()
    for threads in (2, 3, 4):
        chosen = options()
        chosen.intra_op_num_threads = threads
        runtime = onnxruntime.InferenceSession(content, chosen, ["CPUExecutionProvider"])
        found.add(runtime.run(None, dict(given))[0].tobytes())
    assert (found == {ours}) is not note

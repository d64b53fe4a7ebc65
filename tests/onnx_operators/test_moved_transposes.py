"""move_transposes gives ONNX Runtime's bytes where transpositions stand before sums and resampling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, MICROSOFT, build, cases, integers, run_runtime

_FIRST, _LAST = [0, 3, 1, 2], [0, 2, 3, 1]
_SUMS = ("ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd")


# Other readers of a transposed tensor. Behind the last ones the runtime writes no transposition.
_LETS_PASS = ("Relu", "Shape", "Gather", "Softmax", "ReduceMax")
_HOLDS = ("MatMul", "CumSum", "Expand", "Size", "")


def _check(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    constants: dict[str, Any],
    outputs: dict[str, int],
    opset: int = 17,
    cubic: bool = False,
) -> bytes:
    """Equal bytes, but that the runtime may have no kernel: cubic resampling of 8-bit values needs channels last."""
    content, feeds = build(nodes, inputs, outputs, constants, opset=opset)
    theirs = run_runtime(content, feeds)
    if cubic and not isinstance(theirs, dict):
        return content
    assert isinstance(theirs, dict), theirs
    session = bittrue.load(content).prepare(HERE, executor="reference")
    ours = session.run(*feeds)
    for name in outputs:
        assert_same(name, ours[name], np.asarray(theirs[name]))
    return content


def test_sums(request: pytest.FixtureRequest) -> None:
    """Any order and axes; what else reads the transposed tensor decides."""
    for rng in cases(request):
        rank, opset = int(rng.integers(2, 5)), int(rng.choice([13, 17, 18, 21]))
        x = np.abs(rng.standard_normal(tuple(rng.integers(1, 9, rank)))).astype(np.float32)
        axes = [int(axis) for axis in rng.permutation(rank)[: int(rng.integers(0, rank + 1))]]
        axes = [axis - rank if rng.random() < 0.3 else axis for axis in axes]
        order = [int(axis) for axis in rng.permutation(rank)]
        keep = int(rng.integers(2))
        reader = str(rng.choice([*_LETS_PASS, *_HOLDS])) if rng.random() < 0.4 else None
        nodes, constants, outputs = _sum_of_transposed(str(rng.choice(_SUMS)), order, axes, keep, reader, opset)
        factor = "t" if keep and rng.random() < 0.5 else "s"
        nodes.append(helper.make_node("Mul", [factor, "s"], ["y"]))
        _check(nodes, {"x": x}, constants | {"w": np.ones((x.shape[order[-1]], 1), np.float32)}, outputs, opset)


def _sum_of_transposed(
    op_type: str, order: list[int], axes: list[int], keep: int, reader: str | None, opset: int
) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray], dict[str, int]]:
    """A sum `s` of the transposed tensor `t`, and what else reads `t`: nothing, an operator, or ("") the caller."""
    constants, nodes = {}, [helper.make_node("Transpose", ["x"], ["t"], perm=order)]
    if opset < 18 or not axes:
        nodes.append(helper.make_node(op_type, ["t"], ["s"], keepdims=keep, **({"axes": axes} if axes else {})))
    else:
        constants["axes"] = np.array(axes)
        nodes.append(helper.make_node(op_type, ["t", "axes"], ["s"], keepdims=keep))
    outputs = {"y": TensorProto.FLOAT}
    if reader is not None:
        outputs["z" if reader else "t"] = TensorProto.INT64 if reader in ("Shape", "Size") else TensorProto.FLOAT
    if reader:
        operands = {"MatMul": ["w"], "CumSum": ["zero"], "Gather": ["zero"], "Expand": ["one"]}.get(reader, [])
        constants |= {name: np.array(value) for name, value in (("zero", 0), ("one", [1])) if name in operands}
        nodes.append(helper.make_node(reader, ["t", *operands], ["z"]))
    return nodes, constants, outputs


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[1], []])
@pytest.mark.parametrize("reader", [None, *_LETS_PASS, *_HOLDS])
def test_where_sums_move(reader: str | None, axes: list[int], keep: int, tmp_path: Path) -> None:
    """As the runtime's own optimised graph shows."""
    nodes, constants, outputs = _sum_of_transposed("ReduceProd", [2, 0, 1], axes, keep, reader, 17)
    nodes.append(helper.make_node("Relu", ["s"], ["y"]))
    x = np.random.default_rng(3).random((3, 4, 5)).astype(np.float32)
    content = _check(nodes, {"x": x}, constants | {"w": np.ones((4, 1), np.float32)}, outputs)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    optimised = onnx.load(tmp_path / "optimised.onnx").graph
    (theirs,) = (node for node in optimised.node if node.op_type == "ReduceProd")
    plan = bittrue.load(content).prepare(HERE).plan
    (ours,) = (step for step in plan.steps if step.operator == "reduce_prod")
    assert (plan.tensors[ours.inputs[0]].name == "x") == (theirs.input[0] == "x") == (reader not in _HOLDS)


class _Quantized:
    """A random chain of operators on values [1, C, H, W] that ends with a linear resampling, or goes on behind it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.dtype = np.dtype(rng.choice([np.uint8, np.int8]))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {"scale": np.float32(0.1), "zero": np.array(100, self.dtype)}
        self.constants |= {"large": np.float32(2), "factors": np.array([1, 1, 2.3, 1.7], np.float32)}
        self.count = 0
        height, width = (int(e) for e in rng.integers(3, 7, 2))
        self.channels = int(rng.choice([1, 3, 4]))
        shape: tuple[int, ...] = (1, self.channels, height, width)
        self.first = "x"
        if rng.random() < 0.5:
            shape = (1, height, width, self.channels)
            self.first = self.node("Transpose", "x", perm=_FIRST)
        self.inputs = {"x": integers(rng, shape, self.dtype)}

    def node(self, op_type: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(op_type, inputs, [f"t{self.count}"], domain=domain, **attributes))
        return f"t{self.count}"

    def convolution(self, x: str) -> str:
        name = f"w{self.count}"
        self.constants[name] = integers(self.rng, (self.channels, self.channels, 1, 1), self.dtype)
        return self.node("QLinearConv", x, "scale", "zero", name, "scale", "zero", "large", "zero")

    def add(self, x: str) -> str:
        kind = self.rng.choice(
            ["conv", "conv", "pool", "leaky", "sigmoid", "clip", "sum", "concat", "nearest", "linear"]
        )
        if kind == "conv":
            return self.convolution(x)
        if kind == "pool":
            return self.node("MaxPool", x, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
        if kind in ("leaky", "sigmoid"):
            op_type = "QLinearLeakyRelu" if kind == "leaky" else "QLinearSigmoid"
            return self.node(op_type, x, "scale", "zero", "scale", "zero", domain=MICROSOFT)
        if kind == "clip":
            return self.node("Clip", x, "zero")
        if kind == "sum":
            other = self.convolution(x) if self.rng.random() < 0.5 else x
            places = [x, "scale", "zero", other, "scale", "zero", "large", "zero"]
            return self.node("QLinearAdd", *places, domain=MICROSOFT)
        if kind == "concat":
            self.channels *= 2
            return self.node("Concat", x, x, axis=1)
        return self.node("Resize", x, "", "factors", mode=str(kind))

    def grow(self) -> None:
        x = self.first
        for _ in range(int(self.rng.integers(0, 4))):
            x = self.add(x)
        x = self.node("Resize", x, "", "factors", mode=str(self.rng.choice(["linear", "cubic"])))
        if self.rng.random() < 0.3:
            x = self.convolution(x)
        if self.rng.random() < 0.4:
            x = self.node("Transpose", x, perm=_LAST)
        self.nodes[-1].output[0] = "y"


def test_codes(request: pytest.FixtureRequest) -> None:
    """Linear and cubic resampling of quantized values whose channels come to lie last in the runtime, and of others."""
    for rng in cases(request):
        maker = _Quantized(rng)
        maker.grow()
        kind = TensorProto.UINT8 if maker.dtype == np.uint8 else TensorProto.INT8
        cubic = b"cubic" in [a.s for node in maker.nodes for a in node.attribute]
        _check(maker.nodes, maker.inputs, maker.constants, {"y": kind}, cubic=cubic)


@pytest.mark.parametrize("turns", [("a", "b"), ("b", "a"), ("b", "b"), ("a", "b", "a")])
@pytest.mark.parametrize("ends", [False, True])
def test_pairs_before_transpositions_that_are_joined(turns: tuple[str, ...], ends: bool) -> None:
    """A pair that is repeated between two transpositions becomes one with the pair before the first one.

    With `ends`, a transposition stands behind the last pair, too.
    """
    orders = {"a": _LAST, "b": [0, 2, 1, 3]}
    nodes, constants = [], {}
    for name, scale, point in (("first", 0.03, 7), ("second", 0.01, 100)):
        constants |= {f"{name} scale": np.float32(scale), f"{name} point": np.uint8(point)}
    tensor = "x"
    for number, part in enumerate(("first", *turns, "second", *turns[:ends])):
        result = f"t{number}"
        if part in orders:
            nodes.append(helper.make_node("Transpose", [tensor], [result], perm=orders[part]))
        else:
            pair = [f"{part} scale", f"{part} point"]
            nodes.append(helper.make_node("QuantizeLinear", [tensor, *pair], [f"codes{number}"]))
            nodes.append(helper.make_node("DequantizeLinear", [f"codes{number}", *pair], [result]))
        tensor = result
    x = np.random.default_rng(len(turns)).standard_normal((2, 3, 4, 5)).astype(np.float32)
    _check(nodes, {"x": x}, constants, {tensor: TensorProto.FLOAT})


@pytest.mark.parametrize("idle", [False, True])
def test_two_pairs_beside_an_equal_one(idle: bool) -> None:
    """Two pairs become one before equal nodes do: the first one has one reader until then."""
    pairs = {"first": ("s", "z"), "same": ("s", "z"), "second": ("t", "z")}
    nodes = []
    for name, pair in pairs.items():
        source = "x" if name != "second" else "idle" if idle else "first"
        nodes.append(helper.make_node("QuantizeLinear", [source, *pair], [f"{name} codes"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name} codes", *pair], [name]))
    if idle:
        nodes.insert(4, helper.make_node("Mul", ["first", "one"], ["idle"]))
    nodes.append(helper.make_node("Tanh", ["second"], ["y"]))
    nodes.append(helper.make_node("Sub", ["same", "x"], ["apart"]))
    constants = {"s": np.float32(0.03), "t": np.float32(0.05), "z": np.uint8(120), "one": np.float32(1)}
    x = 2 * np.random.default_rng(4).standard_normal((1, 3, 4, 5)).astype(np.float32)
    _check(nodes, {"x": x}, constants, {"y": TensorProto.FLOAT, "apart": TensorProto.FLOAT})


def test_a_sum_over_an_axis_of_five_beside_a_quantized_convolution() -> None:
    """The transposition that the runtime moves has four axes before the tensor gets a fifth one: a plan says so."""
    pair = {"scale": np.float32(0.03), "point": np.uint8(0)}
    constants = {**pair, "codes": np.arange(-32, 32, dtype=np.int8).reshape(8, 8, 1, 1), "step": np.float32(0.01)}
    constants |= {"zero": np.int8(0), "last": np.int64([4]), "image": np.int64([0, 2, 3]), "channels": np.int64([1])}
    turned = [0, 1, 3, 2, 4]
    nodes = [
        helper.make_node("ReduceMax", ["x", "image"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", *pair], ["k"]),
        helper.make_node("DequantizeLinear", ["k", *pair], ["d"]),
        helper.make_node("DequantizeLinear", ["codes", "step", "zero"], ["w"]),
        helper.make_node("Conv", ["d", "w"], ["c"], kernel_shape=[1, 1]),
        helper.make_node("QuantizeLinear", ["c", *pair], ["q"]),
        helper.make_node("DequantizeLinear", ["q", *pair], ["r"]),
        helper.make_node("Neg", ["r"], ["z"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("Unsqueeze", ["t", "last"], ["u"]),
        helper.make_node("Softmax", ["u"], ["p"], axis=0),
        helper.make_node("Transpose", ["p"], ["p turned"], perm=turned),
        helper.make_node("Transpose", ["p turned"], ["p again"], perm=turned),
        helper.make_node("ReduceMean", ["p again", "channels"], ["y"]),
    ]
    x = np.random.default_rng(5).standard_normal((1, 8, 2, 3)).astype(np.float32)
    content = _check(nodes, {"x": x}, constants, {"y": TensorProto.FLOAT, "z": TensorProto.FLOAT}, opset=18)
    assert any("not right behind its image" in note for note in bittrue.load(content).prepare(HERE).plan.notes)

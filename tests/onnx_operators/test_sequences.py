"""Sequences of tensors, whose elements follow from the file, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bittrue
from support.onnx_models import Checks, build, check
from support.onnx_operands import bits, kind, one_type

S64 = TensorProto.INT64


class Drawn:
    """Nodes on tensors and sequences by name."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.dtype = one_type(rng, "f4 f8 f2 i8 i4 u1 b")
        self.rank = int(rng.integers(1, 4))
        self.sizes = [int(v) for v in rng.integers(1, 5, self.rank)]
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs = {f"x{i}": self.values() for i in range(int(rng.integers(1, 4)))}
        self.tensors, self.count = list(self.inputs), 0

    def values(self) -> np.ndarray:
        x = bits(self.rng, self.sizes, self.dtype)
        # The runtime widens binary16 numbers, which quiets NaNs.
        return np.nan_to_num(x, nan=1) if self.dtype == np.float16 else x

    def node(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(op_type, inputs, [f"t{self.count}"], **attributes))
        return f"t{self.count}"

    def constant(self, value: Any) -> str:
        self.count += 1
        self.constants[f"c{self.count}"] = np.array(value, self.rng.choice([np.int32, np.int64]))
        return f"c{self.count}"

    def sequence(self) -> tuple[str, int]:
        """A new one of tensors of one shape, and how many elements it has."""
        rng, axis = self.rng, int(self.rng.integers(-self.rank, self.rank))
        x, size, way = str(rng.choice(self.tensors)), self.sizes[axis], int(rng.integers(5))
        if way == 0:
            chosen = [str(v) for v in rng.choice(self.tensors, int(rng.integers(1, 5)))]
            return self.node("SequenceConstruct", chosen), len(chosen)
        if way == 1:
            empty = {} if self.dtype == np.float32 else {"dtype": kind(self.dtype)}
            return self.node("SequenceEmpty", [], **empty), 0
        if way == 2:
            return self.node("SplitToSequence", [x], axis=axis, keepdims=int(rng.integers(2))), size
        if way == 3:
            part = int(rng.integers(1, size + 2))
            return self.node("SplitToSequence", [x, self.constant(part)], axis=axis), -(-size // part)
        first = int(rng.integers(0, size + 1))
        return self.node("SplitToSequence", [x, self.constant([first, size - first])], axis=axis, keepdims=0), 2

    def change(self, sequence: str, count: int) -> tuple[str, int]:
        rng = self.rng
        place = [self.constant(int(rng.integers(-count, count + 1)))] if count and rng.random() < 0.6 else []
        way = rng.integers(4)
        if way == 0:
            return self.node("Identity", [sequence]), count
        if way == 1 and count:
            return self.node("SequenceErase", [sequence, *place]), count - 1
        return self.node("SequenceInsert", [sequence, str(rng.choice(self.tensors)), *place]), count + 1

    def result(self, sequence: str, count: int) -> tuple[str, int]:
        rng, way = self.rng, self.rng.integers(4)
        if way == 0:
            return self.node("SequenceLength", [sequence]), S64
        if way == 1:
            place = self.constant(int(rng.integers(-count, max(count, 1))))
            return self.node("SequenceAt", [sequence, place]), kind(self.dtype)
        return self.node(
            "ConcatFromSequence", [sequence], axis=int(rng.integers(-1, self.rank)), new_axis=int(rng.integers(2))
        ), kind(self.dtype)


def draw(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    drawn = Drawn(rng)
    outputs = {}
    for _ in range(int(rng.integers(1, 3))):
        sequence, count = drawn.sequence()
        for _ in range(int(rng.integers(0, 4))):
            sequence, count = drawn.change(sequence, count)
        name, dtype = drawn.result(sequence, count)
        outputs[name] = dtype
    return build(drawn.nodes, drawn.inputs, outputs, drawn.constants, opset=int(rng.choice([11, 14, 18, 24])))


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        # Of tensors without elements, the runtime joins what does not fit.
        checks.add(*draw(rng), may_refuse=["BT-CONCATENATION"])
    assert checks.outcomes.count("equal") > len(checks.outcomes) / 3


def test_sizes_that_the_file_leaves_to_inference() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0]),
        helper.make_node("SplitToSequence", ["y"], ["s"], axis=0, keepdims=0),
        helper.make_node("SequenceAt", ["s", "last"], ["z"]),
    ]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = {"z": TensorProto.FLOAT, "y": TensorProto.FLOAT}
    assert check(*build(nodes, {"x": x}, results, {"last": np.array(-1)})) == "equal"


@pytest.mark.parametrize("reader", ["SequenceAt", "Identity", "Loop"])
def test_what_only_running_tells(reader: str) -> None:
    """Positions that are computed, results that are sequences, and sequences in graphs that nodes call."""
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"])]
    if reader == "Loop":
        info = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", S64), ("c", TensorProto.BOOL))]
        inner = [helper.make_node("SequenceAt", ["s", "i"], ["e"]), helper.make_node("Identity", ["c"], ["d"])]
        outer = [helper.make_tensor_value_info(name, t, None) for name, t in (("d", TensorProto.BOOL), ("e", 1))]
        nodes.append(helper.make_node("Loop", ["n", ""], ["z"], body=helper.make_graph(inner, "body", info, outer)))
    else:
        nodes.append(helper.make_node(reader, ["s", "n"][: 2 if reader == "SequenceAt" else 1], ["z"]))
    content, feeds = build(nodes, {"x": np.ones(3, np.float32), "n": np.array(1)}, {"z": TensorProto.FLOAT})
    if reader == "Identity":
        model = onnx.load_from_string(content)
        model.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("z", TensorProto.FLOAT, None))
        content = model.SerializeToString()
    assert check(content, feeds, may_refuse=["BT-ONNX-SEQUENCE"]) == "refused"


_X = np.arange(4, dtype=np.float32).reshape(2, 2)
_KIND = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 2])


@pytest.mark.parametrize("opset", [15, 18])
@pytest.mark.parametrize(("inputs", "name"), [(["x"], "o"), ([], "o"), (["x"], "x"), ([], "")])
@pytest.mark.parametrize("asked", ["OptionalHasElement", "OptionalGetElement"])
def test_optional_values(inputs: list[str], name: str, asked: str, opset: int) -> None:
    """A value that is there, one that is not, a tensor in its place, and nothing."""
    made = [helper.make_node("Optional", inputs, [name], type=_KIND)] if name == "o" else []
    asking = helper.make_node(asked, [name] if name else [], ["y"])
    truth = asked == "OptionalHasElement"
    model = build(
        [*made, asking, helper.make_node("Relu", ["x"], ["z"])],
        {"x": _X},
        {"y": TensorProto.BOOL if truth else TensorProto.FLOAT, "z": TensorProto.FLOAT},
        opset=opset,
    )
    works = inputs and (name == "o" or opset == 18)
    assert check(*model) == ("equal" if works or (truth and (name == "o" or opset == 18)) else "refused")


def test_an_optional_result_is_refused() -> None:
    graph = helper.make_graph(
        [helper.make_node("Optional", ["x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_value_info("y", helper.make_optional_type_proto(_KIND))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(bittrue.UnsupportedError, match="optional"):
        bittrue.load(model.SerializeToString())


def _grown(rounds: int, told: bool, row: bool = False) -> tuple[bytes, list[np.ndarray]]:
    """What PyTorch's exporter makes of tensor_split, with a tensor carried beside.

    Args:
        rounds: of the loop.
        told: a constant says them.
        row: the body declares the number of a round as a row of one, and its condition as a constant of its own.
    """
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["places", "i"], ["first"]),
            helper.make_node("Add", ["i", "one"], ["next"]),
            helper.make_node("Gather", ["places", "next"], ["last"]),
            helper.make_node("Slice", ["y", "first", "last", "one_of"], ["part"]),
            helper.make_node("SequenceInsert", ["s", "part"], ["more"]),
            helper.make_node("Mul", ["part", "part"], ["square"]),
            helper.make_node("SequenceInsert", ["more", "square"], ["most"]),
            helper.make_node("Add", ["sum", "square"], ["total"]),
            helper.make_node("Identity", ["own" if row else "true"], ["goes_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", S64, [1] if row else []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("most", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("total", TensorProto.FLOAT, None),
        ],
        [onnx.numpy_helper.from_array(np.array(True), "own")],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("Loop", ["rounds", "true", "none", "zero"], ["grown", "z"], body=body),
        helper.make_node("SequenceInsert", ["grown", "y"], ["all"]),
        helper.make_node("ConcatFromSequence", ["all"], ["joined"], axis=1),
        helper.make_node("MatMul", ["joined", "v"], ["result"]),
    ]
    rng = np.random.default_rng(rounds)
    constants = {
        "w": rng.standard_normal((6, 8)).astype(np.float32),
        "v": rng.standard_normal((8 + 4 * rounds, 5)).astype(np.float32),
        "places": np.arange(0, 10, 2).reshape((5,) if row else (5, 1)),
        "one": np.array(1),
        "one_of": np.array([1]),
        "true": np.array(True),
        "zero": np.float32(0),
    }
    inputs = {"x": rng.standard_normal((3, 6)).astype(np.float32)}
    (constants if told else inputs)["rounds"] = np.array(rounds)
    return build(nodes, inputs, {"result": TensorProto.FLOAT, "z": TensorProto.FLOAT}, constants)


@pytest.mark.parametrize(("rounds", "row"), [(0, False), (1, False), (4, False), (3, True)])
def test_sequences_that_loops_of_constant_rounds_make(rounds: int, row: bool) -> None:
    assert check(*_grown(rounds, True, row)) == "equal"


def test_sequences_of_loops_whose_rounds_only_running_tells() -> None:
    assert check(*_grown(2, False), may_refuse=["BT-ONNX-SEQUENCE"]) == "refused"

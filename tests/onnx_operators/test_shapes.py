"""Shape computations: they cost no step where shapes are known, and make later stages where values decide them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bittrue
from support.onnx_models import Checks, build, check

S64, S32 = TensorProto.INT64, TensorProto.INT32
node = helper.make_node


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def steps(content: bytes) -> list[str]:
    """Operators of the plan's steps."""
    return [step.operator for step in bittrue.load(content).prepare("onnxruntime", executor="reference").plan.steps]


def flattening() -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """x.view(x.size(0), -1) as exporters write it."""
    return [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"], axis=0),
        node("Unsqueeze", ["batch", "axes"], ["first"]),
        node("Concat", ["first", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ], {"zero": np.array(0, np.int64), "axes": integers(0), "rest": integers(-1)}


def doubling() -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Tiled to twice the last dimension, by way of slices and arithmetic, then a ramp of that many numbers."""
    return [
        node("Shape", ["x"], ["shape"], start=-1),
        node("Mul", ["shape", "two"], ["wide"]),
        node("Squeeze", ["wide"], ["length"]),
        node("Range", ["zero", "length", "one"], ["ramp"]),
        node("Shape", ["x"], ["all"]),
        node("Slice", ["all", "begin", "end"], ["ahead"]),
        node("Concat", ["ahead", "wide"], ["target"], axis=0),
        node("Concat", ["x", "x"], ["xx"], axis=-1),
        node("Reshape", ["xx", "target"], ["z"]),
        node("Cast", ["ramp"], ["narrow"], to=S32),
        node("Add", ["z", "narrow"], ["y"]),
    ], {
        "two": integers(2),
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "begin": integers(0),
        "end": integers(-1),
    }


def masking() -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """A causal mask by ConstantOfShape, Trilu and Where, expanded to the input."""
    return [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "last"], ["length"]),
        node("Concat", ["length", "length"], ["square"], axis=0),
        node("ConstantOfShape", ["square"], ["ones"], value=helper.make_tensor("v", S64, [1], [1])),
        node("Trilu", ["ones"], ["triangle"], upper=0),
        node("Equal", ["triangle", "none"], ["hidden"]),
        node("Expand", ["low", "square"], ["filled"]),
        node("Unsqueeze", ["x", "axes"], ["row"]),
        node("Where", ["hidden", "filled", "row"], ["y"]),
    ], {"last": integers(-1), "none": integers(0), "low": np.array([-99], np.int32), "axes": integers(-2)}


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        (flattening(), {"reshape"}),
        (doubling(), {"concatenation", "reshape", "add"}),
        (masking(), {"expand_dims", "select"}),
    ],
    ids=["flattening", "doubling", "masking"],
)
def test_known_shapes_leave_no_steps(
    parts: tuple[Sequence[onnx.NodeProto], dict[str, np.ndarray]], left: set[str]
) -> None:
    nodes, constants = parts
    for shape in ((1, 2, 3), (2, 3, 4), (3, 1, 5)):
        x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        content, feeds = build(nodes, {"x": x}, {"y": S32}, constants)
        assert check(content, feeds) == "equal"
        assert set(steps(content)) == left


def test_values_that_decide_shapes(request: pytest.FixtureRequest) -> None:
    """Positions of non-zero elements, how many there are, and what they pick: three stages."""
    nodes = [
        node("Greater", ["x", "limit"], ["large"]),
        node("NonZero", ["large"], ["places"]),
        node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        node("GatherND", ["x", "rows"], ["picked"]),
        node("Shape", ["rows"], ["shape"]),
        node("Slice", ["shape", "first", "second"], ["count"]),
        node("ConstantOfShape", ["count"], ["ones"], value=helper.make_tensor("v", S32, [1], [7])),
        node("Add", ["picked", "ones"], ["sum"]),
        node("TopK", ["sum", "count"], ["y", "order"]),
    ]
    constants = {"limit": np.array(2, np.int32), "first": integers(0), "second": integers(1)}
    checks = Checks(request, usual=15, only="equal")
    for rng in checks:
        x = rng.integers(-5, 6, (int(rng.integers(1, 4)), int(rng.integers(1, 5)))).astype(np.int32)
        content, feeds = build(nodes, {"x": x}, {"y": S32, "order": S64}, constants)
        checks.add(content, feeds)


def test_one_session_for_several_values() -> None:
    """A new value of an operand that decides shapes makes a new plan of what follows it."""
    nodes = [node("Reshape", ["x", "target"], ["r"]), node("Slice", ["r", "from", "to"], ["y"])]
    x = np.arange(12, dtype=np.int32)
    values = {"target": integers(3, 4), "from": integers(0), "to": integers(1)}
    content, _ = build(nodes, {"x": x, **values}, {"y": S32})
    session = bittrue.load(content).prepare("onnxruntime", executor="reference")
    for first, last in ((0, 1), (1, 3), (-1, 9), (2, 2)):
        found = session.run(x, integers(3, 4), integers(first), integers(last))["y"]
        assert found.tolist() == x.reshape(3, 4)[first:last].tolist()

"""Factors behind products of matrices become part of them, as ONNX Runtime has it: equal bytes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, Checks, build, run_runtime


def test_random_factors(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=15)
    for rng in checks:
        m, k, n = (int(v) for v in rng.integers(2, 40, 3))
        if rng.random() < 0.2:
            k = int(rng.integers(100, 600))
        if rng.random() < 0.2:
            m, n = (1, n) if rng.random() < 0.5 else (m, 1)
        batch = (int(rng.integers(1, 4)),) if rng.random() < 0.5 else ()
        given = {"a": rng.normal(size=(*batch, m, k)).astype(np.float32)}
        constants = {"s": np.float32(rng.normal()).reshape((1,) if rng.random() < 0.5 else ())}
        right = rng.normal(size=(*batch, k, n)).astype(np.float32)
        (constants if rng.random() < 0.3 else given)["b"] = right
        nodes = [helper.make_node("MatMul", ["a", "b"], ["p"])]
        kind = int(rng.integers(4))
        operands = ["s", "p"] if kind == 0 else ["p", "s"]
        nodes.append(helper.make_node("Div" if kind == 1 else "Mul", operands, ["y" if kind < 3 else "q"]))
        if kind == 3:
            nodes.append(helper.make_node("Div", ["q", "s"], ["y"]))
        content, feeds = build(nodes, given, {"y": TensorProto.FLOAT}, constants)
        checks.add(content, feeds)


def test_factors_behind_sizes_that_a_file_keeps() -> None:
    """A Reshape to a size that was free for the exporter: how many axes its result has is known all the same."""
    rng = np.random.default_rng(6)
    constants = {
        "rows": np.array([3, -1, 8]),
        "parts": np.array([-1, 4, 3, 8]),
        "s": np.array([0.59], np.float32),
    }
    nodes = [
        helper.make_node("Reshape", ["a", "rows"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["t", "parts"], ["p"]),
        helper.make_node("Transpose", ["p"], ["k"], perm=[0, 1, 3, 2]),
        helper.make_node("Mul", ["k", "s"], ["m"]),
        helper.make_node("Mul", ["q", "s"], ["n"]),
        helper.make_node("MatMul", ["n", "m"], ["y"]),
    ]
    given = {"a": rng.normal(size=(3, 2, 32)).astype(np.float32), "q": rng.normal(size=(2, 4, 9, 8)).astype(np.float32)}
    content, feeds = build(nodes, given, {"y": TensorProto.FLOAT}, constants)
    model = onnx.load_from_string(content)
    for value, names in zip(model.graph.input, (("points", "batch"), ("batch",)), strict=True):
        for place, name in zip(value.type.tensor_type.shape.dim, names, strict=False):
            place.dim_param = name
    content = model.SerializeToString()
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    session = bittrue.load(content).prepare(HERE, shapes={name: value.shape for name, value in given.items()})
    assert_same("y", session.run(*feeds)["y"], theirs["y"])


def test_factors_where_the_number_of_axes_is_open(request: pytest.FixtureRequest) -> None:
    """A Reshape to computed sizes: in older operator sets the runtime then knows no axes, and leaves factors alone."""
    checks = Checks(request, usual=30, only="equal")
    for rng in checks:
        constants = {
            "s": np.full((1,) * int(rng.integers(0, 3)), 0.3, np.float32),
            "rest": np.array([5, 5]),
            "keeps": np.array([0, 5, -1]),
            "zero": np.array([0]),
        }
        nodes, last = [helper.make_node("Reshape", ["x", "sizes"], ["r"])], "r"
        if rng.random() < 0.5:
            # As Paddle's exporter asks for a size: of a tensor whose axes are open, too.
            nodes += [
                helper.make_node("Shape", ["r"], ["shape"]),
                helper.make_node("Slice", ["shape", "zero", "one"], ["count"]),
                helper.make_node("Concat", ["count", "rest"], ["target"], axis=0),
                helper.make_node("Reshape", ["r", "target"], ["again"]),
            ]
            constants["one"], last = np.array([1]), "again"
        elif rng.random() < 0.3:
            nodes.append(helper.make_node("Reshape", ["r", "keeps"], ["again"]))
            last = "again"
        operands, kind = [last, last], str(rng.choice(["Mul", "Div"]))
        scaled = int(rng.integers(0, 3))
        if rng.random() < 0.5:
            nodes.append(helper.make_node("Transpose", [last], ["turned"], perm=[0, 2, 1]))
            operands[1] = "turned"
        if scaled < 2:
            nodes.append(helper.make_node(kind, [operands[scaled], "s"], ["scaled"]))
            operands[scaled] = "scaled"
        nodes.append(helper.make_node("MatMul", operands, ["p"]))
        nodes.append(
            helper.make_node(kind, ["p", "s"], ["q"]) if scaled == 2 else helper.make_node("Relu", ["p"], ["q"])
        )
        nodes.append(helper.make_node("Neg", ["q"], ["y"]))
        given = {"x": rng.normal(size=(3, 25)).astype(np.float32), "sizes": np.array([3, 5, 5])}
        used = {name for node in nodes for name in node.input}
        kept = {name: value for name, value in constants.items() if name in used}
        opset = int(rng.choice([13, 14, 18]))
        content, feeds = build(nodes, given, {"y": TensorProto.FLOAT}, kept, opset=opset)
        checks.add(content, feeds)

"""branch and loop (If and Loop): called graphs that use values from outside, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from support.onnx_models import Checks, build, check

S32, I64, BOOL, F32 = TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, int]],
    initializers: Mapping[str, np.ndarray] | None = None,
) -> onnx.GraphProto:
    return helper.make_graph(
        nodes,
        "called",
        [helper.make_tensor_value_info(name, kind, () if kind in (I64, BOOL) else None) for name, kind in inputs],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
        [numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()],
    )


def branches(rng: np.random.Generator) -> tuple[onnx.GraphProto, onnx.GraphProto]:
    """Both use x; one also a constant of its own, or a value computed outside."""
    weight = rng.integers(-9, 9, 3).astype(np.int32)
    other = "h" if rng.random() < 0.5 else "x"
    then = graph([helper.make_node("Add", ["x", "w"], ["t"])], [], [("t", S32)], {"w": weight})
    if rng.random() < 0.3:
        inner = graph([helper.make_node("Neg", [other], ["i"])], [], [("i", S32)])
        same = graph([helper.make_node("Identity", [other], ["j"])], [], [("j", S32)])
        nested = helper.make_node("If", ["c"], ["e"], then_branch=inner, else_branch=same)
        return then, graph([nested], [], [("e", S32)])
    return then, graph([helper.make_node("Sub", [other, "x"], ["e"])], [], [("e", S32)])


@pytest.mark.parametrize("constant", [False, True])
def test_if(request: pytest.FixtureRequest, constant: bool) -> None:
    checks = Checks(request, usual=20, only="equal")
    for rng in checks:
        then, other = branches(rng)
        condition = np.array(rng.random() < 0.5)
        x = rng.integers(-9, 9, (int(rng.integers(1, 4)), 3)).astype(np.int32)
        nodes = [
            helper.make_node("Mul", ["x", "x"], ["h"]),
            helper.make_node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other),
            helper.make_node("Add", ["y", "h"], ["z"]),
        ]
        inputs = {"x": x} if constant else {"x": x, "c": condition}
        content, feeds = build(nodes, inputs, {"z": S32}, {"c": condition} if constant else {})
        checks.add(content, feeds)


def test_only_the_branch_that_is_called_needs_to_fit() -> None:
    """As PyTorch writes `squeeze`: the condition follows from shapes (which the runtime must not know beforehand)."""
    one = np.array(1, np.int64)
    squeezed = graph([helper.make_node("Squeeze", ["x", "axes"], ["s"])], [], [("s", S32)])
    kept = graph([helper.make_node("Identity", ["x"], ["k"])], [], [("k", S32)])
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["size"]),
        helper.make_node("Equal", ["size", "one"], ["single"]),
        helper.make_node("If", ["single"], ["y"], then_branch=squeezed, else_branch=kept),
    ]
    constants = {"one": one, "axes": np.array([1], np.int64)}
    for shape in ((2, 1, 3), (2, 4, 3)):
        x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        content, feeds = build(nodes, {"x": x}, {"y": S32}, constants)
        expected = x[:, 0] if shape[1] == 1 else x
        assert check(content, feeds, expected=lambda expected=expected: {"y": expected}) == "equal"


def test_sizes_of_values_from_outside(request: pytest.FixtureRequest) -> None:
    """A branch asks how many dimensions a value from outside has, or how large they are, as PyTorch's cells do."""
    checks = Checks(request, usual=12, only="equal")
    for rng in checks:
        rank = int(rng.integers(1, 4))
        x = rng.integers(-9, 9, tuple(rng.integers(1, 4, rank))).astype(np.int32)
        name = str(rng.choice(["x", "h"]))
        more = graph([helper.make_node("Unsqueeze", [name, "zero"], ["m"])], [], [("m", S32)])
        same = graph([helper.make_node("Identity", [name], ["s"])], [], [("s", S32)])
        by_rank = [
            helper.make_node("Shape", [name], ["sizes"]),
            helper.make_node("Size", ["sizes"], ["rank"]),
            helper.make_node("Equal", ["rank", "two"], ["flat"]),
            helper.make_node("If", ["flat"], ["t"], then_branch=more, else_branch=same),
        ]
        by_size = [
            helper.make_node("Shape", [name], ["sizes"]),
            helper.make_node("Gather", ["sizes", "zero"], ["first"]),
            helper.make_node("Concat", ["first", "three"], ["target"], axis=0),
            helper.make_node("Expand", ["column", "target"], ["t"]),
        ]
        column = {"column": np.array([[2]], np.int32), "three": np.array([3])}
        then = graph(by_rank, [], [("t", S32)]) if rng.random() < 0.5 else graph(by_size, [], [("t", S32)], column)
        nodes = [
            helper.make_node("Mul", ["x", "x"], ["h"]),
            helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=graph(by_rank, [], [("t", S32)])),
            helper.make_node("Identity", ["h"], ["z"]),
        ]
        constants = {"zero": np.array([0]), "two": np.array(2)}
        content, feeds = build(nodes, {"x": x, "c": np.array(rng.random() < 0.5)}, {"y": S32, "z": S32}, constants)
        checks.add(content, feeds)


def test_a_branch_that_does_not_fit_is_an_error_when_it_is_called() -> None:
    """As files for two kinds of inputs have them, here rows of 2 and of 3: an input says which; the other half of the
    graph does not fit.
    """
    halves = [
        graph([helper.make_node("MatMul", ["x", name], [f"{name}y"])], [], [(f"{name}y", F32)])
        for name in ("two", "three")
    ]
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=halves[0], else_branch=halves[1]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    rng = np.random.default_rng(0)
    constants = {name: rng.standard_normal((size, 4)).astype(np.float32) for name, size in (("two", 2), ("three", 3))}
    model = onnx.load_from_string(
        build(nodes, {"x": np.zeros((1, 1), np.float32), "c": np.array(True)}, {"z": F32}, constants)[0]
    )
    for axis, size in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        size.dim_param = f"free {axis}"
    content = model.SerializeToString()
    for executor in ("native", "reference"):
        session = bittrue.load(content).prepare(executor=executor)
        assert session.plan.later is None
        for size in (2, 3, 5):
            x = rng.standard_normal((4, size)).astype(np.float32)
            for condition in (True, False):
                feeds = {"x": x, "c": np.array(condition)}
                if condition == (size == 2) and size < 5:
                    (expected,) = onnxruntime.InferenceSession(content).run(None, feeds)
                    assert session.run(feeds)["z"].tobytes() == expected.tobytes()
                    continue
                with pytest.raises(bittrue.BittrueError, match=r"called.*MatMul"):
                    session.run(feeds)


def test_branches_of_different_shapes() -> None:
    for condition in (True, False):
        then = graph([helper.make_node("Concat", ["x", "x"], ["t"], axis=0)], [], [("t", S32)])
        other = graph([helper.make_node("Identity", ["x"], ["e"])], [], [("e", S32)])
        nodes = [
            helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
            helper.make_node("Add", ["y", "y"], ["z"]),
        ]
        x = np.arange(6, dtype=np.int32).reshape(2, 3)
        content, feeds = build(nodes, {"x": x, "c": np.array(condition)}, {"z": S32})
        assert check(content, feeds) == "equal"


def body(rng: np.random.Generator, grows: bool) -> onnx.GraphProto:
    """a' = a + outside; b' = concat(b, a) or b * a; stops early when the sum is large; two slices."""
    nodes = [
        helper.make_node("Add", ["a", "outside"], ["a2"]),
        helper.make_node("Concat", ["b", "a"], ["b2"], axis=0)
        if grows
        else helper.make_node("Mul", ["b", "a"], ["b2"]),
        helper.make_node("Cast", ["round"], ["number32"], to=S32),
        helper.make_node("Add", ["a2", "number32"], ["slice"]),
        helper.make_node("Less", ["round", "last"], ["going"]),
        helper.make_node("Identity", ["round"], ["number"]),
    ]
    condition = "going" if rng.random() < 0.5 else "keep"
    return graph(
        nodes,
        [("round", I64), ("keep", BOOL), ("a", S32), ("b", S32)],
        [(condition, BOOL), ("a2", S32), ("b2", S32), ("slice", S32), ("number", I64)],
        {"last": np.array(int(rng.integers(0, 4)), np.int64)},
    )


def test_loop(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=20, only="equal")
    for rng in checks:
        rounds = np.array(int(rng.integers(0, 6)), np.int64)
        keep = np.array(rng.random() < 0.9)
        a, b, outside = (rng.integers(-3, 4, 2).astype(np.int32) for _ in range(3))
        loop = helper.make_node(
            "Loop", ["m", "k", "a", "b"], ["ya", "yb", "s", "n"], "loop", body=body(rng, bool(rng.random() < 0.4))
        )
        nodes = [loop, helper.make_node("Neg", ["s"], ["z"])]
        values = {"m": rounds, "k": keep, "a": a, "b": b, "outside": outside}
        fixed = [name for name in ("m", "k", "outside") if rng.random() < 0.5]
        content, feeds = build(
            nodes,
            {name: value for name, value in values.items() if name not in fixed},
            # Without a round, the runtime knows slices by what the file declares alone.
            {"ya": S32, "yb": S32, "n": I64, **({"z": S32} if rounds and keep else {})},
            {name: values[name] for name in fixed},
        )
        checks.add(content, feeds)


def test_loop_without_a_count_or_a_condition() -> None:
    inner = graph(
        [helper.make_node("Add", ["v", "v"], ["v2"]), helper.make_node("Less", ["v2", "limit"], ["again"])],
        [("i", I64), ("c", BOOL), ("v", S32)],
        [("again", BOOL), ("v2", S32)],
    )
    nodes = [helper.make_node("Loop", ["", "", "x"], ["y"], body=inner)]
    content, feeds = build(nodes, {"x": np.array(1, np.int32), "limit": np.array(100, np.int32)}, {"y": S32})
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("typed", [True, False])
def test_sequences_of_as_many_elements_as_running_tells(typed: bool) -> None:
    """As torch.export writes EmbeddingBag: rows go behind an empty sequence while a condition holds, and are joined."""
    body = graph(
        [
            helper.make_node("Gather", ["ends", "i"], ["end"]),
            helper.make_node("Add", ["i", "one"], ["after"]),
            helper.make_node("Unsqueeze", ["i", "nought"], ["from"]),
            helper.make_node("Unsqueeze", ["end", "nought"], ["to"]),
            helper.make_node("Slice", ["x", "from", "to"], ["rows"]),
            helper.make_node("ReduceSum", ["rows", "nought"], ["row"]),
            helper.make_node("SequenceInsert", ["s", "row"], ["longer"]),
            helper.make_node("Less", ["after", "count"], ["again"]),
        ],
        [("round", I64), ("going", BOOL), ("i", I64)],
        [("again", BOOL), ("after", I64)],
    )
    before = body.input.add(name="s").type.sequence_type.elem_type.tensor_type
    before.elem_type = F32
    body.output.add(name="longer")
    if not typed:
        for value in body.input[2:]:
            value.ClearField("type")
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "zero"], ["count"]),
        helper.make_node("Add", ["count", "one"], ["most"]),
        helper.make_node("Range", ["one", "most", "one"], ["ends"]),
        helper.make_node("SequenceEmpty", [], ["empty"]),
        helper.make_node("Less", ["zero", "count"], ["any"]),
        helper.make_node("Loop", ["", "any", "zero", "empty"], ["last", "parts"], body=body),
        helper.make_node("ConcatFromSequence", ["parts"], ["y"], axis=0),
    ]
    constants = {"zero": np.int64(0), "one": np.int64(1), "nought": np.int64([0])}
    model = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", F32, ["N", 3])],
        [helper.make_tensor_value_info("y", F32, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    content = helper.make_model(model, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session, theirs = bittrue.load(content).prepare(), onnxruntime.InferenceSession(content)
    for count in (1, 4, 2):
        x = np.random.default_rng(count).standard_normal((count, 3)).astype(np.float32)
        (expected,) = theirs.run(None, {"x": x})
        assert session.run(x)["y"].tobytes() == expected.tobytes()
        assert expected.shape == (count, 3)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        theirs.run(None, {"x": x[:0]})
    with pytest.raises(bittrue.BittrueError):
        session.run(x[:0])

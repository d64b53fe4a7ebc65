"""Nodes that do not stand behind those that they need: sorted as ONNX Runtime does, or refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

import bittrue
from bittrue.check.runner import check_model
from bittrue.importers import read_model
from support.differential import assert_same
from support.fused_models import optimised
from support.onnx_models import HERE, Refused, build, cases, check, needs_measured, run_runtime
from support.real_graphs import RealGraphMaker

X = np.float32([1, 2, 3])


def shuffled(content: bytes, rng: np.random.Generator) -> bytes:
    model = onnx.load_from_string(content)
    nodes = [model.graph.node[k] for k in rng.permutation(len(model.graph.node))]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def sums(rng: np.random.Generator) -> bytes:
    """Different sums of a few tensors; an identity that the runtime removes, so that it writes the nodes anew."""
    nodes, names, pairs = [helper.make_node("Identity", ["x"], ["same"])], ["x"], set[tuple[str, str]]()
    while len(nodes) < 9:
        pair = (str(rng.choice(names)), str(rng.choice(names)))
        if pair not in pairs:
            pairs.add(pair)
            names.append(f"t{len(nodes)}")
            nodes.append(helper.make_node("Sub", ["same" if name == "x" else name for name in pair], names[-1:]))
    read = {name for node in nodes for name in node.input}
    outputs = {name: TensorProto.FLOAT for name in names[1:] if name not in read}
    return shuffled(build(nodes, {"x": X}, outputs)[0], rng)


def test_the_order_is_the_runtimes(request: pytest.FixtureRequest) -> None:
    for rng in cases(request, usual=20):
        content = sums(rng)
        graph = read_model(content).graphs[0]
        ours = [graph.tensors[node.outputs[0]].name for node in graph.nodes if node.source != "Identity"]
        assert ours == [node.output[0] for node in onnx.load_from_string(optimised(content, "BASIC")).graph.node]


@needs_measured
def test_shuffled_graphs_have_the_runtimes_bytes(request: pytest.FixtureRequest) -> None:
    notes = 0
    for rng in cases(request, usual=15):
        maker = RealGraphMaker(rng, opset=17, usual=0.95)
        maker.grow(3)
        content, feeds = maker.model()
        content = shuffled(content, rng)
        theirs = run_runtime(content, feeds)
        if isinstance(theirs, Refused):
            continue
        session = bittrue.load(content).prepare(HERE)
        notes += "they are sorted" in " ".join(session.plan.notes)
        ours = session.run(*feeds)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))
    assert notes


@needs_measured
def test_equal_nodes_of_a_sorted_graph() -> None:
    """Which of two equal nodes stays follows the order of the file: the one that is no result, so a gate is joined."""
    nodes = [
        helper.make_node("Mul", ["t", "half"], ["p"]),
        helper.make_node("Mul", ["m", "sum"], ["y"]),
        helper.make_node("Add", ["e", "one"], ["sum"]),
        helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Div", ["t", "root"], ["d"]),
        helper.make_node("Mul", ["t", "half"], ["m"]),
        helper.make_node("Neg", ["x"], ["t"]),
    ]
    x = np.random.default_rng(1).standard_normal(300).astype(np.float32)
    constants = {"half": np.float32(0.5), "one": np.float32(1), "root": np.float32(2**0.5)}
    content, feeds = build(nodes, {"x": x}, dict.fromkeys("py", TensorProto.FLOAT), constants)
    assert check(content, feeds) == "equal"
    assert "gelu" in [step.operator for step in bittrue.load(content).prepare(HERE).plan.steps]


def _absolute(source: str, target: str) -> NodeProto:
    return helper.make_node("Abs", [source], [target])


def _conditional(*nodes: NodeProto) -> NodeProto:
    branch = helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [3])])
    return helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)


@pytest.mark.parametrize(
    ("nodes", "accepted"),
    [
        ([_absolute("a", "y"), _absolute("x", "a")], True),
        ([_conditional(_absolute("a", "z")), _absolute("x", "a")], True),
        ([_absolute("y", "y")], False),
        ([_absolute("a", "y"), _absolute("y", "a")], False),
        ([_conditional(_absolute("a", "z")), _absolute("y", "a")], False),
        # Of graphs that are called the runtime asks for order.
        ([_conditional(_absolute("b", "z"), _absolute("x", "b"))], False),
        ([_conditional(_absolute("z", "b"), _absolute("b", "z"))], False),
    ],
)
def test_what_is_sorted(nodes: list[NodeProto], accepted: bool) -> None:
    inputs = {"x": X, "c": np.array(True)} if nodes[0].op_type == "If" else {"x": X}
    content, feeds = build(nodes, inputs, {"y": TensorProto.FLOAT})
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, Refused) is not accepted
    if accepted:
        (note,) = (finding for finding in check_model(content).findings if finding.code == "BT101")
        assert "they are sorted" in note.message
        assert bittrue.load(content).prepare(HERE).run(*feeds)["y"].tolist() == X.tolist()
    else:
        with pytest.raises(bittrue.BittrueError, match="BT-NODE-ORDER"):
            read_model(content)

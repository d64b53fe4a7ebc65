"""Graphs aimed at single passes of ONNX Runtime's optimiser: its bytes, all of its optimisers at work."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.numerics import find as find_numerics
from bittrue.plan.declared import Declared
from bittrue.rewrites import rewrite
from bittrue.rewrites.called_graphs import DIVIDED
from support.differential import assert_same
from support.fused_models import optimised
from support.half_models import branched
from support.onnx_models import HERE, build, cases, needs_measured, run_runtime
from support.pass_graphs import PASSES, PassGraph

# Few of each; --deep and --examples make more.
_USUAL = 12


@needs_measured
@pytest.mark.parametrize("aim", PASSES)
def test_bytes(request: pytest.FixtureRequest, aim: str) -> None:
    for rng in cases(request, usual=_USUAL):
        content, feeds = PASSES[aim](rng).model()
        theirs = run_runtime(content, feeds)
        if not isinstance(theirs, dict):
            continue
        model = bittrue.load(content)
        names = [model.graph.tensors[index].name for index in model.graph.inputs]
        shapes = {name: array.shape for name, array in zip(names, feeds, strict=True)}
        ours = model.prepare(HERE, shapes=shapes).run(*feeds)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))


@needs_measured
@pytest.mark.parametrize("aim", PASSES)
def test_bytes_of_a_branch_that_is_always_taken(request: pytest.FixtureRequest, aim: str) -> None:
    """The runtime puts the nodes of a branch in place of an If whose condition follows from constants."""
    for rng in cases(request, usual=_USUAL // 3):
        _check_branch(PASSES[aim](rng), rng)


@needs_measured
@pytest.mark.parametrize(
    ("aim", "seed"),
    [
        *(("attentions", seed) for seed in ((1, 70), (8, 70), (124, 70), (5, 252), (5, 280), (6, 837), (6, 1036))),
        ("skipped sums", (5, 84)),
        ("turned normalizations", (38, 147)),
    ],
)
def test_free_sizes_of_a_branch_that_is_always_taken(aim: str, seed: tuple[int, int]) -> None:
    """Nodes around it and inside are compared apart; what inference says of both branches is not known of one.

    Dequantizations of the branch belong to all their readers outside until these are joined.
    """
    rng = np.random.default_rng(seed)
    assert _check_branch(PASSES[aim](rng), rng)


def _check_branch(graph: PassGraph, rng: np.random.Generator) -> bool:
    """Whether all bytes are the runtime's; a plan says where they may differ."""
    content, feeds = graph.model()
    content = _with_branch(content, rng)
    theirs = run_runtime(content, feeds)
    if not isinstance(theirs, dict):
        return True
    session = bittrue.load(content).prepare(HERE)
    ours = session.run(*feeds)
    equal = all(ours[name].tobytes() == np.asarray(value).tobytes() for name, value in theirs.items())
    assert equal or DIVIDED in session.plan.notes
    return equal


@needs_measured
@pytest.mark.parametrize("aim", [*PASSES, "two pairs"])
def test_bytes_of_branches_that_running_chooses(request: pytest.FixtureRequest, aim: str) -> None:
    """Some passes do not go into graphs that others call, or do not find constants outside of them."""
    for rng in cases(request, usual=_USUAL // 3):
        _check_chosen_branch(PASSES.get(aim, _two_pairs)(rng), rng)


@needs_measured
@pytest.mark.parametrize("seed", [29, 45])
def test_dequantizations_of_a_branch_beside_casts(seed: int) -> None:
    """Level 1 gives every reader its own, though constants of the graph around are widened later."""
    rng = np.random.default_rng([9, seed])
    _check_chosen_branch(PASSES["turned normalizations"](rng), rng)


def _check_chosen_branch(graph: PassGraph, rng: np.random.Generator) -> None:
    content, feeds = graph.model()
    content, more = branched(content, rng)
    theirs = run_runtime(content, [*feeds, *more])
    if isinstance(theirs, dict):
        ours = bittrue.load(content).prepare(HERE).run(*feeds, *more)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))


def _two_pairs(rng: np.random.Generator) -> PassGraph:
    """Pairs behind each other, of two scales, as quantizers leave them around a Cast that is idle."""
    g = PassGraph(rng, 17, 0)
    x = g.input(g.reals(4, 16))
    for low, high in ((-7, -5), (-6, -5)):
        pair = g.constant(np.float32(np.exp2(rng.uniform(low, high)))), g.constant(np.uint8(rng.integers(90, 160)))
        x = g.node("DequantizeLinear", g.node("QuantizeLinear", x, *pair), *pair)
    g.node("Softplus", x)
    return g


def _with_branch(content: bytes, rng: np.random.Generator) -> bytes:
    """The model with some nodes that follow each other in one of two branches."""
    count = len(onnx.load_from_string(content).graph.node)
    first, last = sorted(int(place) for place in rng.integers(0, count, 2))
    taken, turned = (bool(one) for one in rng.random(2) < 0.5)
    return _in_branch(content, first, last, taken=taken, turned=turned)


def _in_branch(content: bytes, first: int, last: int, *, taken: bool, turned: bool) -> bytes:
    """The model with the nodes from one to another in the branch that is taken.

    The condition is the constant `taken`, or what the graph makes of it (`turned`).
    """
    model = onnx.load_from_string(content)
    graph, nodes = model.graph, list(model.graph.node)
    inside, around = nodes[first : last + 1], [*nodes[:first], *nodes[last + 1 :]]
    read = {name for node in around for name in node.input} | {value.name for value in graph.output}
    given = [name for node in inside for name in node.output if name in read]
    for node in inside:
        for names in (node.input, node.output):
            names[:] = [f"{name} inside" if name in given else name for name in names]
    other = [helper.make_node("Neg", [f"{name} inside"], [f"{name} else"]) for name in given]
    branches = [
        helper.make_graph(nodes, where, [], [onnx.ValueInfoProto(name=f"{name} {where}") for name in given])
        for where, nodes in (("inside", inside), ("else", [*inside, *other]))
    ]
    if turned:
        around.insert(0, helper.make_node("Not", ["taken"], ["chosen"]))
    then, other = branches if taken != turned else branches[::-1]
    name = "chosen" if turned else "taken"
    around.insert(first + turned, helper.make_node("If", [name], given, then_branch=then, else_branch=other))
    graph.initializer.append(numpy_helper.from_array(np.array(taken), "taken"))
    del graph.node[:]
    graph.node.extend(around)
    return bytes(model.SerializeToString())


@needs_measured
@pytest.mark.parametrize("opset", [16, 17])
@pytest.mark.parametrize("last", [1, 2, 3, 4])
@pytest.mark.parametrize("centred", [False, True])
def test_a_normalization_that_begins_in_a_branch(centred: bool, last: int, opset: int) -> None:
    """Nodes inside have a dequantization of their own each, and so have those outside when level 2 joins them.

    In sets with the operator itself, level 1 joins those with a mean that read the one of the branch (`last` is 1).
    """
    rng = np.random.default_rng(last)
    g = PassGraph(rng, opset, 0)
    pair = g.constant(np.float32(0.03)), g.constant(np.uint8(120))
    x = g.node("DequantizeLinear", g.node("QuantizeLinear", g.input(g.reals(1, 7, 16)), *pair), *pair)
    apart = g.node("Sub", x, g.node("ReduceMean", x, axes=[-1])) if centred else x
    spread = g.node("ReduceMean", g.node("Pow", apart, g.constant(np.float32(2))), axes=[-1])
    root = g.node("Sqrt", g.node("Add", spread, g.constant(np.float32(1e-5))))
    scaled = g.node("Mul", g.node("Div", apart, root), g.vector(16))
    g.node("Add", g.node("Add", scaled, g.vector(16)), x)
    content, feeds = g.model()
    content = _in_branch(content, 0, last, taken=True, turned=False)
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    ours = bittrue.load(content).prepare(HERE).run(*feeds)
    for name, value in theirs.items():
        assert_same(name, ours[name], np.asarray(value))


@needs_measured
@pytest.mark.parametrize("tapped", [False, True])
def test_a_sum_that_is_a_result_holds_a_transposition(tapped: bool) -> None:
    """Where its image has another reader, what the transposition would be undone behind is not looked for beyond it."""
    rng = np.random.default_rng(4)
    g = PassGraph(rng, 13, 0)
    zero, scale, weight = g.constant(np.uint8(100)), g.constant(np.float32(0.03)), g.constant(np.float32(0.01))

    def pair(x: str) -> str:
        return g.node("DequantizeLinear", g.node("QuantizeLinear", x, scale, zero), scale, zero)

    def convolution(x: str) -> str:
        filters = g.constant(rng.integers(-127, 128, (8, 8, 1, 1)).astype(np.int8))
        return pair(g.node("Conv", x, g.node("DequantizeLinear", filters, weight, g.constant(np.int8(0)))))

    x = pair(g.node("Relu", convolution(pair(g.input(g.reals(1, 8, 12, 12))))))
    total = g.node("ReduceSum", x, g.indices(2, 3), keepdims=1)
    pair(g.node("Mul", x, convolution(pair(total))))
    content, feeds = g.model()
    if tapped:
        model = onnx.load_from_string(content)
        model.graph.output.append(helper.make_tensor_value_info(total, TensorProto.FLOAT, None))
        content = model.SerializeToString()
    ours = bittrue.load(content).prepare(HERE)
    (step,) = (step for step in ours.plan.steps if step.operator == "sum")
    # Turned back, the image's channels come last.
    assert (ours.plan.tensors[step.inputs[0]].shape[-1] == 8) == (not tapped)
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    found = ours.run(*feeds)
    for name, value in theirs.items():
        assert_same(name, found[name], np.asarray(value))


def _sizes(of: str, *axes: int) -> list[onnx.NodeProto]:
    """Nodes that give `size AXIS` of a tensor; constants `place AXIS` and `first` are there."""
    nodes = []
    for axis in axes:
        nodes.append(helper.make_node("Shape", [of], [f"shape {axis}"]))
        nodes.append(helper.make_node("Gather", [f"shape {axis}", f"place {axis}"], [f"gather {axis}"], axis=0))
        nodes.append(helper.make_node("Unsqueeze", [f"gather {axis}", "first"], [f"size {axis}"]))
    return nodes


def _targets(content: bytes) -> tuple[list[object], list[object]]:
    """What the Reshapes of a model ask for as bittrue rewrites it and as the runtime does; None what is computed."""
    graph = bittrue.load(content).graph
    numerics = find_numerics(HERE)
    ours, _ = rewrite(graph, numerics.rewrites, partial(Declared, numerics, 1 << 28))
    found = [ours.tensors[node.inputs[1] or 0] for node in ours.nodes if node.source == "Reshape"]
    theirs = onnx.load_from_string(optimised(content, "ALL", ())).graph
    stored = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in theirs.initializer}
    return (
        [tensor.values().tolist() if tensor.is_constant else None for tensor in found],
        [stored.get(node.input[1]) for node in theirs.node if node.op_type == "Reshape"],
    )


@pytest.mark.parametrize("form", ["usual", "vector first", "other columns", "weights given", "vector given", "added"])
def test_sizes_that_a_projection_keeps(form: str) -> None:
    """What is multiplied with a square matrix and added to a vector has the sizes of what comes out, known or not."""
    columns = 24 if form == "other columns" else 16
    values: dict[str, np.ndarray] = {"w": np.ones((16, columns), np.float32), "b": np.ones(columns, np.float32)}
    constants = {"place 0": np.array(0), "place 1": np.array(1), "first": np.array([0]), "two": np.array([2])}
    constants |= {name: value for name, value in values.items() if form not in (f"{_NAMES.get(name)} given",)}
    constants["rest"] = np.array([columns // 2])
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    if form == "added":
        nodes.append(helper.make_node("Add", ["y", "b"], ["a"]))
    else:
        nodes.append(helper.make_node("MatMul", ["y", "w"], ["m"]))
        nodes.append(helper.make_node("Add", ["b", "m"] if form == "vector first" else ["m", "b"], ["a"]))
    nodes += _sizes("y", 0, 1)
    nodes.append(helper.make_node("Concat", ["size 0", "size 1", "two", "rest"], ["sizes"], axis=0))
    nodes.append(helper.make_node("Reshape", ["a", "sizes"], ["r"]))
    inputs = {"x": ["B", "L", 16], "z": ["C", "M", 16]}
    inputs |= {name: [*value.shape] for name, value in values.items() if name not in constants}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in inputs.items()],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ours, theirs = _targets(model.SerializeToString())
    assert ours == theirs == [[0, 0, 2, 8] if form in ("usual", "weights given") else None]


_NAMES = {"w": "weights", "b": "vector"}


def test_sizes_are_inferred_anew_when_all_reshapes_were_looked_at() -> None:
    """What one Reshape keeps, another one of the same round does not know yet, and has a constant for good."""
    constants = {"place 0": np.array(0), "place 1": np.array(1), "first": np.array([0]), "two": np.array([2])}
    constants |= {"four": np.array([4]), "joined": np.array([0, 0, 8])}
    nodes = [
        *_sizes("x", 0, 1),
        helper.make_node("Concat", ["size 0", "size 1", "two", "four"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["x", "sizes"], ["apart"]),
        helper.make_node("Sigmoid", ["apart"], ["s"]),
        helper.make_node("Reshape", ["s", "joined"], ["y"]),
        helper.make_node("Exp", ["y"], ["e"]),
        helper.make_node("Shape", ["e"], ["shape"]),
        helper.make_node("Gather", ["shape", "place 0"], ["gather"], axis=0),
        helper.make_node("Unsqueeze", ["gather", "first"], ["size"]),
        helper.make_node("Concat", ["size", "four", "two", "four"], ["others"], axis=0),
        helper.make_node("Reshape", ["x", "others"], ["r"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 4, 8])],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ours, theirs = _targets(model.SerializeToString())
    assert ours[-1] == theirs[-1] == [-1, 4, 2, 4]


@needs_measured
@pytest.mark.parametrize("seed", [33, 40, 48])
def test_attention_beside_a_result(seed: int) -> None:
    """A normalization that is a result begins attention all the same."""
    content, feeds = PASSES["attentions"](np.random.default_rng([seed, 3])).model()
    model = onnx.load_from_string(content)
    read = [name for node in model.graph.node for name in node.input]
    found = [n.output[0] for n in model.graph.node if n.op_type == "Add" and read.count(n.output[0]) >= 4]
    model.graph.output.append(helper.make_empty_tensor_value_info(found[len(found) // 2]))
    theirs = run_runtime(model.SerializeToString(), feeds)
    assert isinstance(theirs, dict)
    ours = bittrue.load(model.SerializeToString()).prepare(HERE).run(*feeds)
    for name, value in theirs.items():
        assert_same(name, ours[name], np.asarray(value))


@needs_measured
@pytest.mark.parametrize("computed", [False, True])
def test_sums_with_constants_that_are_equal_once_computed(computed: bool) -> None:
    """They stay two sums, one of which alone is read by a normalization, which takes its constant in."""
    rng = np.random.default_rng(0)
    constants = {name: rng.standard_normal(8).astype(np.float32) for name in ("bias", "scale", "shift")}
    constants |= {"w": rng.standard_normal((8, 8)).astype(np.float32)}
    constants |= {"turned": -constants["bias"]} if computed else {"other": constants["bias"]}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        *([helper.make_node("Neg", ["turned"], ["other"])] if computed else []),
        helper.make_node("Add", ["m", "bias"], ["one"]),
        helper.make_node("Add", ["m", "other"], ["two"]),
        helper.make_node("Add", ["one", "x"], ["sum"]),
        helper.make_node("LayerNormalization", ["sum", "scale", "shift"], ["y"], axis=-1),
        helper.make_node("Tanh", ["two"], ["z"]),
    ]
    x = rng.standard_normal((2, 5, 8)).astype(np.float32)
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT, "z": TensorProto.FLOAT}, constants, opset=17)
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    ours = bittrue.load(content).prepare(HERE).run(*feeds)
    for name, value in theirs.items():
        assert_same(name, ours[name], np.asarray(value))


@pytest.mark.parametrize("form", ["none", "infinity", "triangle", "split"])
def test_attention_that_is_not_joined_says_so(form: str) -> None:
    """GPT-2's, DistilBERT's and MobileCLIP's forms, which the runtime may join."""
    g = PassGraph(np.random.default_rng(3), 13 if form == "split" else 12, 0)
    x, scale = g.input(g.reals(1, 4, 4)), g.constant(np.float32(2))
    scores = g.node("MatMul", g.node("Div", x, scale), x)
    if form == "infinity":
        hidden = g.node("Expand", g.node("Equal", g.vector(4), g.constant(np.float32(0))), g.indices(1, 4, 4))
        scores = g.node("Where", hidden, g.constant(np.float32(-np.inf)), scores)
    if form == "triangle":
        seen = g.node("Cast", g.input(np.tri(4, dtype=np.float32)), to=9)
        scores = g.node("Where", seen, g.node("Div", scores, scale), g.constant(np.float32(-10000)))
    if form == "split":
        turned = g.node("Transpose", g.node("Reshape", x, g.indices(1, 2, 8)), perm=[0, 2, 1])
        parts = g.node("Reshape", g.node("MatMul", turned, g.constant(g.reals(2, 6))), g.indices(1, 8, 3, 1, 2))
        g.several("Split", 3, parts, axis=2)
    g.node("Softmax", scores, axis=2)
    content, _ = g.model()
    unsure = [name for name in bittrue.load(content).prepare(HERE).plan.inexact if name == "Softmax"]
    assert unsure == ([] if form == "none" else ["Softmax"])


@needs_measured
@pytest.mark.parametrize("outside", [False, True])
def test_sizes_by_axes_from_outside_of_a_branch(outside: bool) -> None:
    """Constants of another graph hide from the runtime which size a Reshape keeps: what is added has no known ones."""
    rng = np.random.default_rng(5)
    axes = numpy_helper.from_array(np.int64([0]), "axes")
    values = {"zero": np.int64(0), "one": np.int64([1]), "two": np.int64([2]), "eight": np.int64([8])}
    values |= {name: rng.standard_normal(8).astype(np.float32) for name in ("scale", "bias")}
    within = [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["g"], axis=0),
        helper.make_node("Unsqueeze", ["g", "axes"], ["u"]),
        helper.make_node("Slice", ["s", "one", "two"], ["part"]),
        helper.make_node("Concat", ["u", "part", "eight"], ["sizes"], axis=0),
        helper.make_node("Sigmoid", ["x"], ["gate"]),
        helper.make_node("Reshape", ["gate", "sizes"], ["r"]),
        helper.make_node("Add", ["r", "x"], ["total"]),
        helper.make_node("LayerNormalization", ["total", "scale", "bias"], ["y"]),
    ]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    branch = helper.make_graph(nodes, "branch", [], results, within if outside else [*within, axes])
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 4, 8]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    call = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    graph = helper.make_graph([call], "graph", inputs, results, [axes] if outside else [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = [rng.standard_normal((16, 4, 8)).astype(np.float32), np.array(True)]
    theirs = run_runtime(model.SerializeToString(), feeds)
    assert isinstance(theirs, dict)
    assert_same("y", bittrue.load(model.SerializeToString()).prepare(HERE).run(*feeds)["y"], np.asarray(theirs["y"]))

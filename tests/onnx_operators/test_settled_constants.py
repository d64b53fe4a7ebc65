"""What follows from constants alone is one, whatever its size: products with it have ONNX Runtime's bytes."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, Checks, build, check, run_runtime

_ONE = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])


class _Weights:
    """Weights [depth, columns] made of other constants."""

    def __init__(self, rng: np.random.Generator, depth: int, columns: int) -> None:
        self.rng, self.shape = rng, (depth, columns)
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, value: object) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0]

    def quantized(self) -> str:
        """Stored with fewer bits, perhaps in another form; real numbers of the right form."""
        depth, columns = self.shape
        form = int(self.rng.integers(4))
        shape = ((depth, columns), (columns, depth), (depth * columns,), (depth, columns))[form]
        kind = int(self.rng.integers(4))
        if kind == 0:
            values = self.rng.integers(-8, 8, shape)
            self.constants.append(helper.make_tensor("packed", TensorProto.INT4, shape, values.reshape(-1)))
            stored = "packed"
        else:
            stored = self.constant(
                self.rng.integers(-100, 100, shape).astype((np.int8, np.int16, np.float16)[kind - 1])
            )
        early = bool(self.rng.random() < 0.5)
        real = stored if early else self.node("Cast", [stored], to=TensorProto.FLOAT)
        if form == 1:
            real = self.node("Transpose", [real], perm=[1, 0])
        elif form == 2:
            sizes = [self.constant([size]) for size in (depth, -1)]
            real = self.node("Reshape", [real, self.node("Concat", sizes, axis=0)])
        elif form == 3:
            half = self.node("Split", [real, self.constant([columns // 2, columns - columns // 2])], 2, axis=1)
            real = self.node("Concat", [half.replace("_0", "_1"), half], axis=1)
        return self.node("Cast", [real], to=TensorProto.FLOAT) if early else real

    def scaled(self, real: str) -> str:
        depth, columns = self.shape
        for way in self.rng.integers(0, 6, 3):
            row = self.constant(self.rng.normal(0.05, 0.02, columns).astype(np.float32))
            if way < 3:
                real = self.node(("Mul", "Sub", "Div")[way], [real, row])
            elif way == 3:
                sizes = self.node("Shape", [real])
                real = self.node("Add", [real, self.node("Expand", [self.constant(np.float32(0.1)), sizes])])
            elif way == 4:
                few = [self.constant(self.rng.normal(size=s).astype(np.float32)) for s in ((depth, 3), (3, columns))]
                real = self.node("Add", [real, self.node("MatMul", few)])
            else:
                positive = self.node("Greater", [real, self.constant(np.float32(0))])
                real = self.node("Where", [positive, real, self.node("Tile", [row, self.constant([1])])])
        return real


def _product(weights: _Weights, made: str, rows: int = 2) -> bytes:
    nodes = [*weights.nodes, helper.make_node("MatMul", ["x", made], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, weights.shape[0]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "graph", [x], [y], weights.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def test_random_chains(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=10)
    for rng in checks:
        weights = _Weights(rng, int(rng.integers(4, 70)), int(rng.integers(4, 70)))
        content = _product(weights, weights.scaled(weights.quantized()), rows=3)
        checks.add(content, [rng.normal(size=(3, weights.shape[0])).astype(np.float32)])


@pytest.mark.parametrize("executor", ["native", "reference"])
def test_large_weights(executor: str) -> None:
    """More than a plan folds; they are made once, not for every run."""
    rng = np.random.default_rng(4)
    weights = _Weights(rng, 320, 1000)
    stored = weights.constant(rng.integers(-127, 128, weights.shape).astype(np.int8))
    real = weights.node("Cast", [stored], to=TensorProto.FLOAT)
    made = weights.node("Mul", [real, weights.constant(rng.random(1000).astype(np.float32))])
    content, x = _product(weights, made), rng.normal(size=(2, 320)).astype(np.float32)
    session = bittrue.load(content).prepare(HERE, executor=executor, memory_limit=1 << 20)
    theirs = run_runtime(content, [x])
    assert isinstance(theirs, dict)
    assert_same("large weights", session.run(x)["y"], theirs["y"])
    assert {step.source for step in session.plan.steps} == {"MatMul", "Relu"}


def test_what_a_small_file_asks_for_is_limited() -> None:
    """Weights of 400 MB made of nothing: refused before memory is taken, unless the limit is raised; said then."""
    weights = _Weights(np.random.default_rng(0), 10_000, 10_000)
    sizes = weights.constant(np.array(weights.shape))
    made = weights.node("Exp", [weights.node("ConstantOfShape", [sizes], value=_ONE)])
    content = _product(weights, made)
    tracemalloc.start()
    with pytest.raises(bittrue.ResourceError, match="memory_limit"):
        bittrue.load(content).prepare(HERE)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_what_stays_is_said() -> None:
    """Products of constants that take too long are left to runs."""
    weights = _Weights(np.random.default_rng(0), 700, 700)
    made = weights.node("ConstantOfShape", [weights.constant(np.array(weights.shape))], value=_ONE)
    made = weights.node("MatMul", [made, made])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = bittrue.load(_product(weights, made)).prepare(HERE).plan
    assert any("1 nodes of constants run every time" in note for note in plan.notes)


_SIZES = [helper.make_node("Shape", ["x"], ["sizes"]), helper.make_node("Gather", ["sizes", "zero"], ["rows"])]
# How weights [96, 80] are made of other constants and sizes, whose values planning knows.
_MADE = {
    "constant": [helper.make_node("Cast", ["q"], ["w"], to=TensorProto.FLOAT)],
    "dequantized": [helper.make_node("DequantizeLinear", ["q", "s"], ["w"])],
    "behind": [helper.make_node("DequantizeLinear", ["q", "s"], ["d"]), helper.make_node("Relu", ["d"], ["w"])],
    "chosen": [
        helper.make_node("NonZero", ["ones"], ["n"]),
        helper.make_node("Reshape", ["n", "flat"], ["k"]),
        helper.make_node("Gather", ["f", "k"], ["w"], axis=1),
    ],
    "kept": [helper.make_node("Compress", ["f", "kept"], ["w"], axis=1)],
    "by size": [
        *_SIZES,
        helper.make_node("Cast", ["rows"], ["factor"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "factor"], ["w"]),
    ],
}


def _calling(around: str, product: NodeProto, shape: list[int | str]) -> list[NodeProto]:
    """Nodes that give y, by a product in a graph of its own or in none."""
    if not around:
        return [product]
    name = helper.make_tensor_value_info
    made = name("y", TensorProto.FLOAT, None)
    if around == "If":
        other = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "other", [], [name("z", 1, None)])
        body = helper.make_graph([product], "body", [], [made])
        return [
            helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
            helper.make_node("Greater", ["most", "s"], ["chosen"]),
            helper.make_node("If", ["chosen"], ["y"], then_branch=body, else_branch=other),
        ]
    if around == "Loop":
        nodes = [product, helper.make_node("Identity", ["go"], ["on"])]
        ports = [name("i", TensorProto.INT64, []), name("go", TensorProto.BOOL, [])]
        body = helper.make_graph(nodes, "body", ports, [name("on", TensorProto.BOOL, []), made])
        return [helper.make_node("Loop", ["two", "true"], ["y"], body=body)]
    each = helper.make_node("MatMul", ["one", "w"], ["y"])
    body = helper.make_graph([each], "body", [name("one", TensorProto.FLOAT, shape[1:])], [made])
    return [helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)]


@pytest.mark.parametrize("around", ["", "If", "Loop", "Scan"])
@pytest.mark.parametrize("made", _MADE)
def test_what_is_no_constant_is_not_prepared(made: str, around: str) -> None:
    """Values that planning knows, and the runtime computes in every run: its products add up in another order."""
    rng = np.random.default_rng(8)
    shape: list[int | str] = ["n", 1, 96] if around == "Scan" else ["n", 96]
    constants = {
        "q": rng.integers(-100, 100, (96, 80)).astype(np.int8),
        "f": rng.normal(size=(96, 80)).astype(np.float32),
        "s": np.array(0.02, np.float32),
        "ones": np.ones(80, np.float32),
        "kept": np.ones(80, np.bool_),
        "flat": np.array([-1]),
        "zero": np.array(0),
        "two": np.array(2),
        "true": np.array(True),
    }
    nodes = _MADE[made] + _calling(around, helper.make_node("MatMul", ["x", "w"], ["y"]), shape)
    read = {name for node in nodes for name in node.input} | ({"s"} if around == "If" else set())
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if name in read],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    sessions = [bittrue.load(model).prepare(HERE, executor=executor) for executor in ("native", "reference")]
    for rows in (1, 5):
        x = rng.normal(size=(rows, *shape[1:])).astype(np.float32)
        theirs = run_runtime(model, [x])
        assert isinstance(theirs, dict)
        for session in sessions:
            assert_same(made, session.run(x)["y"], theirs["y"])


@pytest.mark.parametrize("within", ["If", "Loop", "Scan"])
@pytest.mark.parametrize("deep", [False, True])
def test_made_inside_of_what_is_made_outside(deep: bool, within: str) -> None:
    """Nodes of a called graph that read constants which nodes around it have made give constants, however deep."""
    rng = np.random.default_rng(9)
    shape: list[int | str] = ["n", 1, 96] if within == "Scan" else ["n", 96]
    constants = {
        "q": rng.integers(-100, 100, (80, 96)).astype(np.int8),
        "s": np.array(0.02, np.float32),
        "two": np.array(2),
        "true": np.array(True),
    }
    call = _calling(within, helper.make_node("MatMul", ["x", "w"], ["y"]), shape)
    graphs = [a.g for a in call[-1].attribute if a.HasField("g") and a.name != "else_branch"]
    making = [helper.make_node("Transpose", ["real"], ["turned"]), helper.make_node("Mul", ["turned", "s"], ["w"])]
    inside = [*making, *graphs[0].node]
    del graphs[0].node[:]
    graphs[0].node.extend(inside)
    if deep:
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        branches = (
            helper.make_graph(call, "then", [], [result]),
            helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "else", [], [result]),
        )
        call = [
            helper.make_node("ReduceMax", ["x"], ["large"], keepdims=0),
            helper.make_node("Less", ["s", "large"], ["taken"]),
            helper.make_node("If", ["taken"], ["y"], then_branch=branches[0], else_branch=branches[1]),
        ]
    graph = helper.make_graph(
        [helper.make_node("Cast", ["q"], ["real"], to=TensorProto.FLOAT), *call],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    sessions = [bittrue.load(model).prepare(HERE, executor=executor) for executor in ("native", "reference")]
    for rows in (1, 5):
        x = rng.normal(size=(rows, *shape[1:])).astype(np.float32)
        theirs = run_runtime(model, [x])
        assert isinstance(theirs, dict)
        for session in sessions:
            assert_same(within, session.run(x)["y"], theirs["y"])


_BLOCKS = helper.make_node(
    "MatMulNBits", ["x", "q", "s"], ["y"], domain="com.microsoft", K=32, N=41, bits=4, block_size=32, accuracy_level=4
)


@pytest.mark.parametrize("product", [helper.make_node("MatMul", ["x", "w"], ["y"]), _BLOCKS])
@pytest.mark.parametrize("deep", [1, 2, 3])
def test_initializers_of_graphs_further_out(deep: int, product: NodeProto) -> None:
    """Those of the next graph are prepared for products, others are not."""
    rng = np.random.default_rng(10)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [product]
    for _ in range(deep):
        branches = (
            helper.make_graph(nodes, "then", [], [result]),
            helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "else", [], [result]),
        )
        nodes = [helper.make_node("If", ["taken"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 32]),
        helper.make_tensor_value_info("taken", TensorProto.BOOL, []),
    ]
    weights = {
        "w": rng.normal(size=(32, 41)).astype(np.float32),
        "q": rng.integers(0, 256, (41, 1, 16)).astype(np.uint8),
        "s": rng.random(41).astype(np.float32),
    }
    known = [numpy_helper.from_array(weights[name], name) for name in product.input[1:]]
    graph = helper.make_graph(nodes, "graph", inputs, [result], known)
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString()
    x = [rng.normal(size=(1, 32)).astype(np.float32), np.array(True)]
    theirs = run_runtime(model, x)
    assert isinstance(theirs, dict)
    for executor in ("native", "reference"):
        assert_same(executor, bittrue.load(model).prepare(HERE, executor=executor).run(*x)["y"], theirs["y"])


def test_a_plan_of_weights_that_callers_may_replace(tmp_path: Path) -> None:
    """It loads again: its file says that they are not prepared."""
    rng = np.random.default_rng(11)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "graph",
        [info("x", TensorProto.FLOAT, ["n", 32]), info("w", TensorProto.FLOAT, [32, 41])],
        [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(rng.normal(size=(32, 41)).astype(np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = bittrue.load(model).prepare(HERE)
    session.plan.save(tmp_path / "kept.bittrue")
    x = rng.normal(size=(1, 32)).astype(np.float32)
    assert_same("loaded", bittrue.load_plan(tmp_path / "kept.bittrue").run(x)["y"], session.run(x)["y"])


@pytest.mark.parametrize("level", [0, 4])
@pytest.mark.parametrize("operator", ["MatMulNBits", "Gelu", "FusedMatMul"])
def test_operators_of_the_runtime_itself_are_computed_in_every_run(operator: str, level: int) -> None:
    """So products prepare their constants, and what they give is none for a product behind them."""
    rng = np.random.default_rng(11)
    names, attributes = {"MatMulNBits": "a q s", "Gelu": "a", "FusedMatMul": "a w"}[operator].split(), {}
    if operator == "MatMulNBits":
        attributes = {"K": 32, "N": 41, "bits": 4, "block_size": 32, "accuracy_level": level}
    nodes = [
        helper.make_node(operator, names, ["b"], domain="com.microsoft", **attributes),
        helper.make_node("MatMul", ["x", "b"], ["y"]),
    ]
    constants = {
        "a": rng.normal(size=(40, 32)).astype(np.float32),
        "w": rng.normal(size=(32, 41)).astype(np.float32),
        "q": rng.integers(0, 256, (41, 1, 16)).astype(np.uint8),
        "s": rng.random(41).astype(np.float32),
    }
    feeds = {"x": rng.normal(size=(9, 40)).astype(np.float32)}
    given = {name: constants[name] for name in names}
    content, inputs = build(nodes, feeds, {"y": TensorProto.FLOAT}, given, opset=17)
    assert check(content, inputs) == "equal"

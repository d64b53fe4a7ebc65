"""fuse_quantized gives the graph that ONNX Runtime makes, and every fused node its bytes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state

import bittrue
from bittrue.graph import Graph
from bittrue.numerics import find as find_numerics
from bittrue.plan.declared import Declared
from bittrue.rewrites.onnxruntime_optimizer.fuse_quantized import rewrite
from support.differential import assert_same
from support.fused_models import Tally, all_values, compare_outputs, compare_steps, optimised, structure
from support.onnx_models import HERE, build, cases, check, needs_measured, run_runtime
from support.quantized_graphs import GraphMaker

_OPSETS = (13, 17, 21)


def random_model(rng: np.random.Generator, *, moved: bool = False) -> tuple[bytes, list[np.ndarray]]:
    opset, usual = _OPSETS[int(rng.integers(3))], float(rng.choice([0.95, 0.8, 0.6]))
    maker = GraphMaker(rng, opset=opset, usual=usual, moved=moved)
    while not maker.outputs:
        maker.grow(int(rng.integers(1, 6)))
    return maker.model()


@pytest.mark.parametrize(("pairs", "allowed"), [("", "1"), ("u8", "0")], ids=["s8 too", "u8 alone"])
def test_structure(request: pytest.FixtureRequest, pairs: str, allowed: str) -> None:
    for rng in cases(request):
        content, _ = random_model(rng)
        assert _rewritten(content, pairs) == _optimised(content, allowed)


def _rewritten(content: bytes, pairs: str) -> object:
    graph = bittrue.load(content).graph
    try:
        return structure(rewrite(graph, Declared(find_numerics("onnxruntime"), 1 << 28, graph), pairs)[0])
    except bittrue.InvalidModelError:
        return "refused"


def _optimised(content: bytes, allowed: str) -> object:
    try:
        return structure(bittrue.load(optimised(content, **{"session.qdqisint8allowed": allowed})).graph)
    except onnxruntime_pybind11_state.Fail:
        return "refused"


@pytest.mark.parametrize(("pairs", "allowed"), [("", "1"), ("u8", "0")], ids=["s8 too", "u8 alone"])
@pytest.mark.parametrize("opset", [19, 21, 25])
def test_quantizations_that_name_their_type(opset: int, pairs: str, allowed: str) -> None:
    """From set 21 on, of s8: the runtime makes such pairs unsigned and refuses what it has made, also its own ones.

    Without a zero point they stay as they are.
    """
    x, s, z = np.ones((2, 3), np.float32), np.float32(0.1), np.int8(3)
    first = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])
    last = [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]), helper.make_node("Sin", ["d"], ["y"])]
    named = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], output_dtype=TensorProto.INT8)
    bare = helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=TensorProto.INT8)
    turned = helper.make_node("Transpose", ["d"], ["t"])
    alone = [bare, helper.make_node("DequantizeLinear", ["q", "s"], ["d"]), last[1]]
    for nodes, refused in (
        ((alone if opset >= 21 else [first, *last]), False),
        ([first, *last], False),
        ([named if opset >= 21 else first, *last], opset >= 21 and bool(pairs)),
        ([first, last[0], turned, helper.make_node("Sin", ["t"], ["y"])], opset >= 21 and bool(pairs)),
    ):
        content, _ = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"s": s, "z": z}, opset=opset)
        found = _rewritten(content, pairs)
        assert found == _optimised(content, allowed)
        assert (found == "refused") == refused


@pytest.mark.parametrize("kind", ["INT2", "UINT2", "INT4", "UINT4", "UINT8", "INT16", "FLOAT8E5M2"])
@pytest.mark.parametrize("zero", ["", "0", "1", "vector"])
def test_clamps_before_narrow_types(kind: str, zero: str) -> None:
    """A Relu before a quantization to 4 bits or less, or to floats of 8, goes with any single zero point."""
    number = getattr(TensorProto, kind)
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    size = (4,) if zero == "vector" else ()
    # Those of floats are 0.
    points = np.full(size, int(zero == "1" and "FLOAT" not in kind)).astype(helper.tensor_dtype_to_np_dtype(number))
    names = ["s", "z"] if zero else ["s"]
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", *names], ["q"], **({} if zero else {"output_dtype": number})),
        helper.make_node("DequantizeLinear", ["q", *names], ["y"]),
    ]
    constants = {"s": np.full(size, 0.3, np.float32), "z": points}
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=25)
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("mover", ["Reshape", "Transpose", "DepthToSpace", "Gather", "Resize", "Split"])
def test_movement_of_four_bits(kind: int, mover: str) -> None:
    """Data movement between pairs of 4 bits stays real."""
    x = np.random.default_rng(4).standard_normal((1, 4, 6, 6), np.float32)
    operands = {"Reshape": ["d", "rows"], "Gather": ["d", "one"], "Resize": ["d", "", "twice"]}.get(mover, ["d"])
    given = {"DepthToSpace": {"blocksize": 2}, "Split": {"num_outputs": 1}}.get(mover, {})
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node(mover, operands, ["m"], **given),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"]),
    ]
    constants = {"s": np.float32(0.3), "z": np.array(1, helper.tensor_dtype_to_np_dtype(kind))}
    constants |= {"rows": np.array([4, 36]), "one": np.array([0]), "twice": np.float32([1, 1, 2, 2])}
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    assert _rewritten(content, "") == _optimised(content, "1")
    assert check(content, feeds) == "equal"


@needs_measured
def test_bytes(request: pytest.FixtureRequest) -> None:
    """Fused nodes on the runtime's own values, and outputs that follow from exact nodes alone."""
    tally = Tally()
    for rng in cases(request):
        content, feeds = random_model(rng, moved=True)
        model = optimised(content, off=())
        names = [bittrue.load(content).graph.tensors[i].name for i in bittrue.load(content).graph.inputs]
        theirs = run_runtime(content, feeds)
        assert isinstance(theirs, dict)
        session = bittrue.load(content).prepare(HERE, executor="reference")
        compare_steps(session, {**all_values(model, feeds), **dict(zip(names, feeds, strict=True))}, tally)
        compare_outputs(session, feeds, theirs)
    assert tally.tensors > 100


@needs_measured
def test_transposed_operands(request: pytest.FixtureRequest) -> None:
    """A Gemm transposes its operands and its result itself; a dequantized constant is transposed before."""
    operators = set()
    for rng in cases(request):
        content, feeds = _transposed_product(rng)
        theirs = run_runtime(content, feeds)
        assert isinstance(theirs, dict), theirs
        session = bittrue.load(content).prepare(HERE, executor="reference")
        for name, value in session.run(*feeds).items():
            assert_same(name, value, theirs[name])
        operators |= {(step.operator, len(step.inputs) > 3) for step in session.plan.steps}
    assert {("matmul", False), ("matmul", True), ("transpose", False)} <= operators


def _transposed_product(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """A product of an operand with weights, each of them dequantized or not, transposed or not."""
    rows, depth, columns = (int(rng.choice(choices)) for choices in ((1, 5), (1, 3, 20), (1, 4)))
    gemm, quantized = rng.random() < 0.7, rng.random() < 0.7
    nodes, inputs, constants, names, outputs = [], {}, {}, [], []
    flags = [int(gemm and rng.random() < 0.5) for _ in "ab"]
    for side, shape, flag in zip("ab", ((rows, depth), (depth, columns)), flags, strict=True):
        order = [None, (1, 0), (0, 1), ()][int(rng.integers(4))]
        lies = flag != (order in ((1, 0), ()))
        stored = shape[::-1] if lies else shape
        if not quantized:
            inputs[side] = rng.standard_normal(stored).astype(np.float32)
        else:
            (constants if side == "b" else inputs)[f"{side}q"] = rng.integers(0, 255, stored).astype(np.uint8)
            # The runtime breaks off where weights of a MatMul have other scales than one per column.
            axis = int(rng.integers(2)) if gemm else 1 - lies
            per_slice = side == "b" and rng.random() < 0.5
            sizes = (stored[axis],) if per_slice else ()
            constants[f"{side}s"] = np.asarray(rng.uniform(0.01, 0.05, sizes), np.float32)
            operands = [f"{side}q", f"{side}s"]
            if rng.random() < 0.6:
                constants[f"{side}z"] = np.full(sizes, 9, np.uint8)
                operands.append(f"{side}z")
            nodes.append(
                helper.make_node("DequantizeLinear", operands, [side], **({"axis": axis} if per_slice else {}))
            )
        names.append(side)
        if order is not None:
            names[-1] += "t"
            nodes.append(helper.make_node("Transpose", [side], names[-1:], **({"perm": order} if order else {})))
            if rng.random() < 0.2:
                nodes.append(helper.make_node("Neg", names[-1:], [f"{side}n"]))
                outputs.append(f"{side}n")
    biased = rng.random() < 0.5
    if biased:
        constants["c"] = rng.standard_normal(columns).astype(np.float32)
        names += ["c"] if gemm else []
    attributes = {"transA": flags[0], "transB": flags[1], "alpha": float(rng.choice([1, 0.5]))} if gemm else {}
    nodes.append(
        helper.make_node("Gemm" if gemm else "MatMul", names, ["y" if gemm or not biased else "m"], **attributes)
    )
    if biased and not gemm:
        nodes.append(helper.make_node("Add", ["m", "c"], ["y"]))
    end = ["y", "Transpose", "Neg"][int(rng.integers(3))]
    if end != "y":
        nodes.append(helper.make_node(end, ["y"], ["z"]))
    outputs.append("y" if end == "y" else "z")
    return build(nodes, inputs, dict.fromkeys(outputs, TensorProto.FLOAT), constants, opset=int(rng.choice([13, 21])))


def test_operators_without_effect_in_a_row() -> None:
    """Each of them has been replaced by the time that it is looked at."""
    x = np.float32([[1.5, -2.0]])
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Dropout", ["a"], ["b"]),
        helper.make_node("Identity", ["b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT})
    assert check(content, feeds) == "equal"
    assert [step.operator for step in bittrue.load(content).prepare().plan.steps] == ["relu"]


@pytest.mark.parametrize("read", ["x", "a", "d"])
@pytest.mark.parametrize(("pairs", "allowed"), [("", "1"), ("u8", "0")], ids=["s8 too", "u8 alone"])
def test_known_shapes_are_no_readers(read: str, pairs: str, allowed: str) -> None:
    """The runtime knows them before it looks for groups: of the input, a real result, a pair."""
    rng = np.random.default_rng(7)
    constants = {
        "w": rng.integers(-127, 128, (6, 4, 1, 1)).astype(np.int8),
        "sx": np.float32(0.05),
        "sw": np.float32(0.01),
        "sy": np.float32(0.04),
        "z": np.int8(0),
        "start": np.array([0]),
        "end": np.array([1]),
        "rest": np.array([-1]),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "z"], ["qx"]),
        helper.make_node("DequantizeLinear", ["qx", "sx", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "z"], ["dw"]),
        helper.make_node("Conv", ["dx", "dw"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "sy", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sy", "z"], ["d"]),
        helper.make_node("Shape", [read], ["sizes"]),
        helper.make_node("Slice", ["sizes", "start", "end"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["d", "target"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy", "z"], ["qr"]),
        helper.make_node("DequantizeLinear", ["qr", "sy", "z"], ["y"]),
    ]
    x = rng.standard_normal((2, 4, 3, 3)).astype(np.float32)
    content, _ = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=17)
    graph = bittrue.load(content).graph
    found = rewrite(graph, Declared(find_numerics("onnxruntime"), 1 << 28, graph), pairs)[0]
    ours = _operators(found)
    # Sizes are ours to compute when a run is planned.
    assert [entry for entry in ours if "s64" not in entry] == _operators(
        bittrue.load(optimised(content, **{"session.qdqisint8allowed": allowed})).graph
    )
    assert ("conv", *("u8" if pairs else "s8",) * 2) in ours


@pytest.mark.parametrize("end", [2**63 - 1, 2**31 - 1, 6])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize(("pairs", "allowed"), [("", "1"), ("u8", "0")], ids=["s8 too", "u8 alone"])
def test_slices_of_whole_axes(start: int, end: int, pairs: str, allowed: str) -> None:
    """As exporters write `x[:]`: the runtime drops a Slice to the largest number, and the pairs around it meet."""
    rng = np.random.default_rng(8)
    constants = {
        "w": rng.integers(-127, 128, (6, 4, 1, 1)).astype(np.int8),
        "sx": np.float32(0.05),
        "sw": np.float32(0.01),
        "sy": np.float32(0.04),
        "z": np.int8(0),
        "start": np.array([start]),
        "end": np.array([end]),
        "zero": np.array([0]),
        "two": np.array([2]),
        "three": np.array([3]),
        "six": np.array([6]),
        "axis": np.array([1]),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "z"], ["qx"]),
        helper.make_node("DequantizeLinear", ["qx", "sx", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "z"], ["dw"]),
        helper.make_node("Conv", ["dx", "dw"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "sy", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sy", "z"], ["d"]),
        helper.make_node("Slice", ["d", "start", "end", "axis"], ["whole"]),
        helper.make_node("QuantizeLinear", ["whole", "sy", "z"], ["qw"]),
        helper.make_node("DequantizeLinear", ["qw", "sy", "z"], ["dy"]),
        helper.make_node("Slice", ["dy", "zero", "two", "axis"], ["low"]),
        helper.make_node("Slice", ["dy", "three", "six", "axis"], ["high"]),
        helper.make_node("Tanh", ["low"], ["y"]),
        helper.make_node("Tanh", ["high"], ["u"]),
    ]
    x = rng.standard_normal((2, 4, 3, 3)).astype(np.float32)
    outputs = {"y": TensorProto.FLOAT, "u": TensorProto.FLOAT}
    content, _ = build(nodes, {"x": x}, outputs, constants, opset=17)
    graph = bittrue.load(content).graph
    found = rewrite(graph, Declared(find_numerics("onnxruntime"), 1 << 28, graph), pairs)[0]
    theirs = _operators(bittrue.load(optimised(content, **{"session.qdqisint8allowed": allowed})).graph)
    assert _operators(found) == theirs


def _operators(graph: Graph) -> list[tuple[str, ...]]:
    """Each node's operator and the types of its first operand and result, sorted."""
    types = [
        [graph.tensors[i].dtype for i in (*node.inputs[:1], *node.outputs[:1]) if i is not None] for node in graph.nodes
    ]
    return sorted((node.operator, *given) for node, given in zip(graph.nodes, types, strict=True))

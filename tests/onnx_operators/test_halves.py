"""cast_halves and cast_last give ONNX Runtime's bytes for graphs of binary16 numbers, all of its optimisers at work."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state

import bittrue
from bittrue.rewrites.onnxruntime_optimizer.inserted_casts import KEPT, SINCE
from support.differential import assert_same, inexact_names
from support.fused_models import optimised
from support.half_chains import half_chain
from support.half_models import branched, fed, halved
from support.onnx_models import HERE, build, cases, check, integers, natively, needs_measured, run_runtime, single
from support.quantized_graphs import GraphMaker
from support.real_graphs import RealGraphMaker

_HALF = "tensor(float16)"
_FUNCTIONS = (
    "Elu Gelu HardSigmoid HardSwish LeakyRelu LogSoftmax Mish ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp"
    " ReduceSumSquare Relu Selu Softmax Softplus Softsign Swish ThresholdedRelu"
).split()


def _check(content: bytes, feeds: list[np.ndarray]) -> bool:
    theirs = run_runtime(content, feeds)
    if not isinstance(theirs, dict):
        return False
    session = bittrue.load(content).prepare(HERE)
    ours, unsure = session.run(*feeds), inexact_names(session.plan)
    assert not unsure or HERE.endswith("@aarch64")
    for name, value in theirs.items():
        if name not in unsure:
            assert_same(name, ours[name], np.asarray(value))
    return True


@needs_measured
def test_bytes(request: pytest.FixtureRequest) -> None:
    """Whole graphs of binary16 numbers, and graphs with casts of their own around some nodes."""
    ran = 0
    for rng in cases(request, usual=25):
        maker = RealGraphMaker(rng, opset=int(rng.choice([13, 17, 18, 20, 22])), usual=float(rng.choice([0.95, 0.6])))
        maker.grow(int(rng.integers(1, 4)))
        content, feeds = maker.model()
        content = halved(content, rng, float(rng.choice([1, 0.7, 0.4])))
        ran += _check(content, fed(content, feeds))
    assert ran > 10


@needs_measured
def test_branches(request: pytest.FixtureRequest) -> None:
    """In called graphs constants stay behind their casts, and groups are joined if one is widened outside."""
    ran = 0
    for rng in cases(request, usual=12):
        maker = RealGraphMaker(rng, opset=int(rng.choice([13, 17, 18, 20, 22])), usual=float(rng.choice([0.95, 0.6])))
        maker.grow(int(rng.integers(1, 4)))
        content, feeds = maker.model()
        content = halved(content, rng, float(rng.choice([1, 0.7])))
        content, more = branched(content, rng)
        ran += _check(content, fed(content, [*feeds, *more]))
    assert ran > 5


@needs_measured
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("projections", [1, 2])
def test_sizes_that_a_reshape_keeps(projections: int, inside: bool) -> None:
    """What asks a normalization for sizes that a Reshape has already, goes, and it stands alone then.

    Equal nodes are one before, whose sizes several Reshapes read: these stay. In a branch equal constants are several.
    """
    rng = np.random.default_rng(projections)
    constants = {name: rng.standard_normal(16).astype(np.float16) for name in ("scale", "bias")} | {
        "axes": np.int64([0])
    }
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("LayerNormalization", ["e", "scale", "bias"], ["n"]),
    ]
    for k in range(projections):
        constants |= {f"w{k}": _halves(rng, 16, 16), f"four{k}": np.int64([4])}
        nodes += [helper.make_node("MatMul", ["n", f"w{k}"], [f"p{k}"]), helper.make_node("Shape", ["n"], [f"s{k}"])]
        for axis in (0, 1):
            constants[f"{axis} of {k}"] = np.array(axis)
            nodes.append(helper.make_node("Gather", [f"s{k}", f"{axis} of {k}"], [f"g{axis}{k}"]))
            nodes.append(helper.make_node("Unsqueeze", [f"g{axis}{k}", "axes"], [f"u{axis}{k}"]))
        nodes.append(helper.make_node("Concat", [f"u0{k}", f"u1{k}", f"four{k}", f"four{k}"], [f"c{k}"], axis=0))
        nodes.append(helper.make_node("Reshape", [f"p{k}", f"c{k}"], [f"y{k}"]))
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["N", "S", 16])]
    outputs = [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT16, None) for k in range(projections)]
    feeds = [_halves(rng, 2, 3, 16)]
    if inside:
        branch = helper.make_graph(nodes, "branch", [], outputs, initializers)
        names = [value.name for value in outputs]
        nodes, initializers = [helper.make_node("If", ["c"], names, then_branch=branch, else_branch=branch)], []
        inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
        feeds.append(np.array(True))
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    assert _check(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString(), feeds
    )


@needs_measured
def test_pairs(request: pytest.FixtureRequest) -> None:
    """Quantizations and dequantizations with binary16 scales."""
    ran = 0
    for rng in cases(request, usual=10):
        maker = GraphMaker(rng, opset=int(rng.choice([17, 21])), usual=0.9)
        while not maker.outputs:
            maker.grow(int(rng.integers(1, 6)))
        content, feeds = maker.model()
        content = halved(content, rng, float(rng.choice([1, 0.4])))
        ran += _check(content, fed(content, feeds))
    assert ran > 5


@needs_measured
@pytest.mark.parametrize("dequantized", [False, True])
@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8)])
def test_products_of_pairs_before_casts_of_the_file(shape: tuple[int, ...], dequantized: bool) -> None:
    """Behind inserted casts groups of pairs are looked for before products and sums are joined."""
    rng = np.random.default_rng(1)
    pairs = {"scale": np.float32(0.01), "point": np.uint8(120), "step": np.float32(0.02), "zero": np.int8(0)}
    bias = {"bias": rng.standard_normal(40).astype(np.float32)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "point"], ["d"]),
        helper.make_node("DequantizeLinear", ["codes", "step", "zero"], ["w"]),
        helper.make_node("Cast", ["d"], ["d half"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["w"], ["w half"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["d half", "w half"], ["m"]),
        helper.make_node("Cast", ["m"], ["m single"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["m single", "bias"], ["y"]),
        helper.make_node("MatMul", ["h", "k"], ["p"]),
    ]
    if dequantized:
        bias = {"integers": integers(rng, (40,), np.int32) // 2**20, "bias step": np.float32(0.0002)}
        nodes.insert(0, helper.make_node("DequantizeLinear", [*bias], ["bias"]))
    constants = {**pairs, **bias, "codes": integers(rng, (8, 40), np.int8), "k": _halves(rng, 4, 4)}
    feeds = {"x": integers(rng, shape, np.uint8), "h": _halves(rng, 2, 4)}
    assert _check(*build(nodes, feeds, {"y": TensorProto.FLOAT, "p": TensorProto.FLOAT16}, constants, opset=17))


@needs_measured
@pytest.mark.parametrize("opset", [13, 16])
def test_what_inserted_casts_bring_together(opset: int) -> None:
    """Equal casts stay two, and the nodes of a normalization share one dequantization."""
    rng = np.random.default_rng(2)
    constants = {"scale": np.float32(0.03), "point": np.uint8(120), "two": np.float16(2), "epsilon": np.float16(1e-3)}
    constants |= {name: _halves(rng, 37) for name in ("factor", "added")} | {"k": _halves(rng, 37, 37)}
    wide = {"to": TensorProto.FLOAT}
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Cast", ["n"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Cast", ["t"], ["t wide"], **wide),
        helper.make_node("ReduceMean", ["t"], ["mean"], axes=[-1]),
        helper.make_node("Cast", ["mean"], ["mean wide"], **wide),
        helper.make_node("Sub", ["t wide", "mean wide"], ["apart"]),
        helper.make_node("QuantizeLinear", ["apart", "scale", "point"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "point"], ["d"]),
        helper.make_node("Cast", ["d"], ["a"], to=TensorProto.FLOAT16),
        helper.make_node("ReduceMean", ["a"], ["b"], axes=[-1]),
        helper.make_node("Sub", ["a", "b"], ["c"]),
        helper.make_node("Pow", ["c", "two"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["spread"], axes=[-1]),
        helper.make_node("Add", ["spread", "epsilon"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", ["c", "root"], ["ratio"]),
        helper.make_node("Mul", ["ratio", "factor"], ["scaled"]),
        helper.make_node("Add", ["scaled", "added"], ["normal"]),
        helper.make_node("MatMul", ["normal", "k"], ["y half"]),
        helper.make_node("Cast", ["y half"], ["y"], **wide),
    ]
    feeds = {"x": rng.standard_normal((1, 37, 50)).astype(np.float32)}
    assert _check(*build(nodes, feeds, {"y": TensorProto.FLOAT, "apart": TensorProto.FLOAT}, constants, opset=opset))


@needs_measured
def test_products_of_integers_by_scales_of_16_bits(request: pytest.FixtureRequest) -> None:
    """MatMulIntegerToFloat has no kernel for them: everything of binary16 is widened."""
    for rng in cases(request, usual=10):
        columns = (5,) if rng.random() < 0.5 else ()
        codes = integers(rng, (3, 9), rng.choice([np.uint8, np.int8]))
        operands: dict[str, np.ndarray | None] = {"a": codes, "b": integers(rng, (9, 5), np.int8)}
        operands |= {"a scale": _halves(rng), "b scale": _halves(rng, *columns)}
        operands["a point"] = np.array(7, codes.dtype) if rng.random() < 0.7 else None
        operands["b point"] = np.zeros(columns, np.int8) if rng.random() < 0.5 else None
        operands["bias"] = _halves(rng, 5) if rng.random() < 0.5 else None
        constants = [name for name, given in operands.items() if given is not None and rng.random() < 0.5]
        made = single(
            "MatMulIntegerToFloat", operands, [TensorProto.FLOAT16], domain="com.microsoft", constants=constants
        )
        assert check(*made) == "equal"


@pytest.mark.parametrize("half", [False, True])
def test_a_plan_says_that_a_cast_behind_a_quantized_convolution_may_stay(half: bool) -> None:
    """The runtime moves transpositions between two casts there, of which there is one on aarch64."""
    rng = np.random.default_rng(3)
    pair = {"scale": np.float32(0.05), "point": np.uint8(120)}
    constants = {**pair, "codes": integers(rng, (8, 8, 1, 1), np.int8), "step": np.float32(0.01), "zero": np.int8(0)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", *pair], ["d"]),
        helper.make_node("DequantizeLinear", ["codes", "step", "zero"], ["w"]),
        helper.make_node("Conv", ["d", "w"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", *pair], ["q"]),
        helper.make_node("DequantizeLinear", ["q", *pair], ["r"]),
        *([helper.make_node("Cast", ["r"], ["h"], to=TensorProto.FLOAT16)] if half else []),
        helper.make_node("GlobalAveragePool", ["h" if half else "r"], ["y"]),
    ]
    content, _ = build(
        nodes, {"x": integers(rng, (1, 8, 5, 5), np.uint8)}, {"y": 10 if half else 1}, constants, opset=17
    )
    assert (KEPT in bittrue.load(content).prepare("onnxruntime").plan.notes) == half


@needs_measured
def test_lone_nodes() -> None:
    """A node with a kernel between nodes without one is widened; behind casts of the file it keeps its rounding."""
    x = np.linspace(-3, 3, 40).astype(np.float32).reshape(5, 8)
    for kernel, reads_before in itertools.product(("Round", "Clip", "Neg", "Transpose"), (False, True)):
        nodes = [
            helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
            helper.make_node("Sin" if reads_before else "Round", ["h"], ["b"]),
            helper.make_node(kernel, ["b"], ["k"]),
            helper.make_node("Exp", ["k"], ["e"]),
            helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT),
        ]
        assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}))


def _halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.2).astype(np.float16)


@needs_measured
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("total", ["Add", "Sum"])
def test_sums_behind_convolutions_in_a_branch(total: str, outside: bool) -> None:
    """Weights from outside are not laid out in blocks: the sum begins the convolution, whose image stays in planes."""
    rng = np.random.default_rng(3)
    weights = onnx.numpy_helper.from_array((rng.standard_normal((16, 16, 3, 3)) * 0.3).astype(np.float32), "w")
    half = onnx.numpy_helper.from_array(_halves(rng, 4, 3), "half")
    bias = onnx.numpy_helper.from_array(rng.standard_normal(16).astype(np.float32), "b")
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Cast", ["c"], ["c half"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["x"], ["x half"], to=TensorProto.FLOAT16),
        helper.make_node(total, ["c half", "x half"], ["t"]),
        helper.make_node("Cast", ["t"], ["t single"], to=TensorProto.FLOAT),
        helper.make_node("Exp", ["t single"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 5, 5])
    chosen = helper.make_tensor_value_info("chosen", TensorProto.BOOL, [])
    beside = helper.make_tensor_value_info("beside", TensorProto.FLOAT16, [2, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    product = helper.make_tensor_value_info("product", TensorProto.FLOAT16, None)
    branch = helper.make_graph(nodes, "branch", [], [y], [bias] if outside else [bias, weights])
    around = [
        helper.make_node("If", ["chosen"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("MatMul", ["beside", "half"], ["product"]),
    ]
    constants = [half, weights] if outside else [half]
    graph = helper.make_graph(around, "graph", [x, chosen, beside], [y, product], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = [rng.standard_normal((1, 16, 5, 5)).astype(np.float32), np.array(True), _halves(rng, 2, 4)]
    assert _check(model.SerializeToString(), feeds)


@needs_measured
@pytest.mark.parametrize("first", [False, True])
def test_copies_of_dequantizations_are_asked_last(first: bool) -> None:
    """By then the Concat that reads one is known to stand alone, so this one does, too, and rounds nothing."""
    rng = np.random.default_rng(4)
    constants = {"scale": np.float16(0.0123), "point": np.uint8(120)}
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("QuantizeLinear", ["e", "scale", "point"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "point"], ["d"]),
        helper.make_node("Sin", ["d"], ["s"]),
        helper.make_node("Concat", ["d", "s"] if first else ["s", "d"], ["c"], axis=0),
        helper.make_node("Tanh", ["c"], ["t"]),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    assert _check(*build(nodes, {"x": _halves(rng, 4, 40)}, {"y": TensorProto.FLOAT}, constants, opset=21))


@needs_measured
@pytest.mark.parametrize("kernel", ["Concat", "Max"])
def test_nodes_of_definitions_are_asked_after_those_of_the_file(kernel: str) -> None:
    """A Relu is a Max by then, which stands alone as its reader does, though the reader stands behind it."""
    rng = np.random.default_rng(4)
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Relu", ["e"], ["r"]),
        helper.make_node("Sin", ["r"], ["s"]),
        helper.make_node(kernel, ["s", "r"], ["c"], **({"axis": 0} if kernel == "Concat" else {})),
        helper.make_node("Tanh", ["c"], ["t"]),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    assert _check(*build(nodes, {"x": _halves(rng, 4, 40)}, {"y": TensorProto.FLOAT}, opset=18))


@needs_measured
@pytest.mark.parametrize("exponent", [2, 2.002])
@pytest.mark.parametrize("count", [1, 2])
def test_exponents_of_normalizations_without_a_mean(count: int, exponent: float) -> None:
    """Only 2 is the exponent of one; where two share it, it is cast in every run."""
    rng = np.random.default_rng(0)
    constants: dict[str, np.ndarray] = {"two": np.array(exponent, np.float16), "epsilon": np.array(1e-3, np.float16)}
    nodes = [helper.make_node("Exp", ["x"], ["0 in"])]
    for turn in range(count):
        constants[f"{turn} scale"] = 1 + _halves(rng, 24)
        for kind, inputs, output in (
            ("Pow", ("in", "two"), "power"),
            ("ReduceMean", ("power",), "mean"),
            ("Add", ("mean", "epsilon"), "sum"),
            ("Sqrt", ("sum",), "root"),
            ("Div", ("in", "root"), "ratio"),
            ("Mul", ("ratio", "scale"), "scaled"),
        ):
            names = [name if name in ("two", "epsilon") else f"{turn} {name}" for name in inputs]
            given = {"axes": [-1]} if kind == "ReduceMean" else {}
            nodes.append(helper.make_node(kind, names, [f"{turn} {output}"], **given))
        nodes.append(helper.make_node("Sin", [f"{turn} scaled"], [f"{turn + 1} in"]))
    nodes.append(helper.make_node("Cast", [f"{count} in"], ["y"], to=TensorProto.FLOAT))
    assert _check(*build(nodes, {"x": _halves(rng, 3, 24)}, {"y": TensorProto.FLOAT}, constants, opset=17))


@needs_measured
def test_equal_nodes_of_which_one_gives_a_result() -> None:
    """Of two equal Splits, the results of the one that stays are read from the other, but for that of the graph."""
    rng = np.random.default_rng(3)
    constants = {"two": np.array([2, 2]), "parts": np.array([2, 2])}
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Split", ["e", "two"], ["y", "a"]),
        helper.make_node("Sin", ["a"], ["b"]),
        helper.make_node("Split", ["e", "parts"], ["c", "d"]),
        helper.make_node("Tanh", ["c"], ["f"]),
        helper.make_node("Tanh", ["d"], ["g"]),
        *(helper.make_node("Cast", [name], [f"{name} wide"], to=TensorProto.FLOAT) for name in "bfg"),
    ]
    results = {"y": TensorProto.FLOAT16, **dict.fromkeys(("b wide", "f wide", "g wide"), TensorProto.FLOAT)}
    assert _check(*build(nodes, {"x": _halves(rng, 4, 30)}, results, constants, opset=17))


@needs_measured
@pytest.mark.parametrize("operator", ["MatMul", "Gemm", "Conv"])
def test_shared_weights(operator: str) -> None:
    """Weights and biases that several nodes read are cast in every run: nothing prepares them."""
    rng = np.random.default_rng(5)
    for shared in ("w", "b", "wb"):
        x, w, b = _halves(rng, 4, 600), _halves(rng, 600, 600), _halves(rng, 600)
        if operator == "Conv":
            x, w, b = _halves(rng, 2, 64, 7, 7), _halves(rng, 64, 64, 3, 3), _halves(rng, 64)
        rest = ["b"] if operator != "MatMul" else []
        nodes, results = [helper.make_node("Sigmoid", ["x"], ["s"])], {"y": TensorProto.FLOAT16}
        nodes.append(helper.make_node(operator, ["s", "w", *rest], ["p"]))
        nodes.append(helper.make_node(operator, ["p", "w", *rest], ["y"]))
        if operator == "Conv":
            nodes[-1:] = [helper.make_node("Identity", ["p"], ["y"])]
            for name in shared:
                nodes.append(helper.make_node("Sigmoid", [name], [f"{name}_s"]))
                results[f"{name}_s"] = TensorProto.FLOAT16
        constants = {"w": w, "b": b}
        assert _check(*build(nodes, {"x": x}, results, constants, opset=17))


@needs_measured
@pytest.mark.parametrize("opset", [14, 17])
def test_shared_exponent(opset: int) -> None:
    """A normalization by nodes whose exponent other nodes read as well is joined without its mean and bias."""
    rng = np.random.default_rng(5)
    for count in (1, 2):
        # A widened constant makes the runtime look for groups once more.
        nodes, before = [helper.make_node("Mul", ["x", "factor"], ["s"])], "s"
        for turn in map(str, range(count)):
            parts = [
                ("ReduceMean", [before], "mean"),
                ("Sub", [before, "mean"], "centred"),
                ("Pow", ["centred", "two"], "squares"),
                ("ReduceMean", ["squares"], "variance"),
                ("Add", ["variance", "epsilon"], "sum"),
                ("Sqrt", ["sum"], "root"),
                ("Div", ["centred", "root"], "quotient"),
                ("Mul", ["quotient", "scale"], "scaled"),
                ("Add", ["scaled", "bias"], "shifted"),
                ("Tanh", ["shifted"], "y"),
            ]
            made = {output for _, _, output in parts}
            for kind, inputs, output in parts:
                names = [f"{name}{turn}" if name in made else name for name in inputs]
                axes = {"axes": [-1]} if kind == "ReduceMean" else {}
                nodes.append(helper.make_node(kind, names, [f"{output}{turn}"], **axes))
            before = f"y{turn}"
        constants = {"two": np.float16(2), "epsilon": np.float16(1e-5), "factor": _halves(rng, 40)}
        constants |= {"scale": _halves(rng, 40), "bias": _halves(rng, 40)}
        nodes.append(helper.make_node("Cast", [before], ["y"], to=TensorProto.FLOAT))
        x = {"x": _halves(rng, 2, 5, 40) * 9}
        assert _check(*build(nodes, x, {"y": TensorProto.FLOAT}, constants, opset=opset))


class _Chain:
    """Nodes one behind the other on images [2, 16, n] whose channels a transposition has put last."""

    def __init__(self, rng: np.random.Generator, opset: int) -> None:
        self.rng, self.opset = rng, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {"two": np.array(2, np.float16), "epsilon": np.array(1e-5, np.float16)}
        self.constants |= {"axes": np.array([-1]), "shape": np.array([2, 16, -1])}

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, *shape: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = 1 + _halves(self.rng, *shape)
        return name

    def mean(self, of: str) -> str:
        return self.add("ReduceMean", of, axes=[-1]) if self.opset < 18 else self.add("ReduceMean", of, "axes")

    def normalized(self, of: str) -> str:
        centred = self.add("Sub", of, self.mean(of))
        variance = self.mean(self.add("Pow", centred, "two"))
        quotient = self.add("Div", centred, self.add("Sqrt", self.add("Add", variance, "epsilon")))
        return self.add("Add", self.add("Mul", quotient, self.constant(16)), self.constant(16))

    def some(self, of: str) -> str:
        for _ in range(int(self.rng.integers(3))):
            if self.rng.random() < 0.5:
                of = self.add(str(self.rng.choice(["Relu", "Tanh", "Round"])), of)
            else:
                of = self.add(str(self.rng.choice(["Add", "Mul"])), of, self.constant(16))
        return of


@needs_measured
def test_moved_transpositions(request: pytest.FixtureRequest) -> None:
    """Which numbers are rounded depends on where the runtime moves transpositions before it inserts casts."""
    for rng in cases(request, usual=12):
        opset = int(rng.choice([13, 14, 17, 18]))
        chain = _Chain(rng, opset)
        before = chain.add("Sigmoid", chain.add("Mul", "x", chain.constant(16, 1)))
        if rng.random() < 0.3:
            before = chain.add("Reshape", before, "shape")
        first = last = chain.some(chain.add("Transpose", before, perm=[0, 2, 1]))
        for _ in range(int(rng.integers(1, 3))):
            last = chain.normalized(last)
        last = chain.some(last)
        if rng.random() < 0.3:
            last = chain.add("Add", last, first)
        if rng.random() < 0.5:
            last = chain.add("Transpose", last, perm=[0, 2, 1])
        chain.nodes.append(helper.make_node("Cast", [chain.add("Tanh", last)], ["y"], to=TensorProto.FLOAT))
        x = (3 * rng.standard_normal((2, 16, int(rng.integers(3, 8))))).astype(np.float16)
        assert _check(*build(chain.nodes, {"x": x}, {"y": TensorProto.FLOAT}, chain.constants, opset=opset))


@needs_measured
def test_shared_out(request: pytest.FixtureRequest) -> None:
    """Slices that are all of a tensor become one Split, whose neighbours decide about casts."""
    for rng in cases(request, usual=10):
        opset = int(rng.choice([12, 13, 18]))
        chain = _Chain(rng, opset)
        source, size = chain.add(str(rng.choice(["Sigmoid", "Relu", "Identity"])), "x"), 6
        cuts = sorted({0, size, *rng.choice(np.arange(1, size), int(rng.integers(0, 4)), replace=False).tolist()})
        gone = int(rng.integers(1, 4 * len(cuts)))
        parts = []
        for begin, end in itertools.pairwise(cuts):
            if end - begin == 1 and rng.random() < 0.7:
                index = np.array(begin - size * (rng.random() < 0.5))
                taken = "scalar" if rng.random() < 0.5 else "row"
                name = f"i{begin}"
                chain.constants[name] = index if taken == "scalar" else index.reshape(1)
                part = chain.add("Gather", source, name, axis=1)
                if taken == "scalar":
                    chain.constants["one"] = np.array([1])
                    part = chain.add(
                        "Unsqueeze", part, *(["one"] if opset > 12 else []), **({} if opset > 12 else {"axes": [1]})
                    )
            else:
                for name, bound in (("b", begin), ("e", end if end < size or rng.random() < 0.5 else 2**62)):
                    chain.constants[f"{name}{begin}"] = np.array([bound])
                chain.constants["axis"] = np.array([-2 if rng.random() < 0.5 else 1])
                chain.constants["step"] = np.array([1])
                ends = ["step"] if rng.random() < 0.5 else []
                part = chain.add("Slice", source, f"b{begin}", f"e{begin}", "axis", *ends)
            parts += [part] * (len(parts) != gone)
        changed = [chain.add("Neg", part) if rng.random() < 0.4 else part for part in parts]
        rng.shuffle(changed)
        joined = chain.add("Concat", *changed, axis=1)
        chain.nodes.append(
            helper.make_node("Tanh", [chain.add(str(rng.choice(["Mul", "Add"])), joined, joined)], ["y"])
        )
        x = _halves(rng, 2, size, 5)
        assert _check(*build(chain.nodes, {"x": x}, {"y": TensorProto.FLOAT16}, chain.constants, opset=opset))


@needs_measured
def test_reshapes_in_a_row(request: pytest.FixtureRequest) -> None:
    """Reshapes one behind the other are one, which may stand alone."""
    for rng in cases(request, usual=9):
        chain = _Chain(rng, 18)
        chain.constants |= {
            "a": np.array([6, -1]),
            "b": np.array([2, 3, 5]),
            "c": np.array([0, 1, 3, 5]),
            "place": np.array([1]),
        }
        last, shape = chain.add("Sigmoid" if rng.random() < 0.8 else "Identity", "x"), (2, 3, 5)
        for _ in range(int(rng.integers(1, 5))):
            if shape == (2, 3, 5):
                kind, operand, shape = [
                    ("Reshape", "a", (6, 5)),
                    ("Reshape", "c", (2, 1, 3, 5)),
                    ("Unsqueeze", "place", (2, 1, 3, 5)),
                ][rng.integers(3)]
            else:
                kind, operand = ("Squeeze", "place") if len(shape) == 4 and rng.random() < 0.5 else ("Reshape", "b")
                shape = (2, 3, 5)
            last = chain.add(kind, last, operand)
            if rng.random() < 0.1:
                chain.add("Neg", last)
        chain.nodes.append(helper.make_node("Exp" if rng.random() < 0.8 else "Transpose", [last], ["y"]))
        assert _check(
            *build(chain.nodes, {"x": _halves(rng, 2, 3, 5)}, {"y": TensorProto.FLOAT16}, chain.constants, opset=18)
        )


@needs_measured
def test_chains(request: pytest.FixtureRequest) -> None:
    """Transpositions move past whatever reads them, as far as the runtime moves them; parts of graphs are binary32."""
    ran = 0
    for rng in cases(request, usual=20):
        ran += _check(*half_chain(rng))
    assert ran > 12


_GELU = {"root": np.float16(2**0.5), "one": np.float16(1), "half": np.float16(0.5)}


def _gelu(of: str, result: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Div", [of, "root"], [f"{of}_root"]),
        helper.make_node("Erf", [f"{of}_root"], [f"{of}_erf"]),
        helper.make_node("Add", [f"{of}_erf", "one"], [f"{of}_one"]),
        helper.make_node("Mul", [of, f"{of}_one"], [f"{of}_twice"]),
        helper.make_node("Mul", [f"{of}_twice", "half"], [result]),
    ]


@needs_measured
@pytest.mark.parametrize("opset", [18, 20])
def test_transposed_gelu(opset: int) -> None:
    """A transposition goes behind a Gelu, which is an operator from set 20 on, and behind what joins both sides."""
    x = np.random.default_rng(5).standard_normal((1, 3, 16)).astype(np.float16)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[2, 1, 0]),
        *_gelu("t", "g"),
        helper.make_node("Concat", ["t", "g"], ["c"], axis=2),
        helper.make_node("Transpose", ["c"], ["u"], perm=[1, 0, 2]),
        helper.make_node("Mul", ["u", "u"], ["q"]),
        helper.make_node("Tanh", ["q"], ["y"]),
    ]
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, _GELU, opset=opset))


@needs_measured
def test_transposed_before_gelu() -> None:
    """A Gelu reads a tensor once, as one node: a transposition before it leads to the one behind it."""
    x = np.random.default_rng(5).standard_normal((4, 8, 16)).astype(np.float16)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 2, 0]),
        helper.make_node("Softmax", ["t"], ["s"], axis=-1),
        helper.make_node("Slice", ["s", "begin", "end", "begin"], ["p"]),
        *_gelu("p", "g"),
        helper.make_node("Transpose", ["g"], ["u"], perm=[0, 2, 1]),
        helper.make_node("Concat", ["u", "u"], ["d"], axis=0),
        helper.make_node("Tanh", ["d"], ["y"]),
    ]
    constants = {**_GELU, "begin": np.array([0]), "end": np.array([2])}
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, constants, opset=22))


@needs_measured
def test_gelu_behind_moved_transposition() -> None:
    """What a transposition has moved behind is no half of x: then the runtime finds the Gelu."""
    rng = np.random.default_rng(5)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Mul", ["t", "t"], ["q"]),
        *_gelu("q", "g"),
        helper.make_node("Conv", ["g", "w"], ["c"], pads=[1, 1]),
        helper.make_node("Tanh", ["c"], ["y"]),
    ]
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 4, 8), (16, 2, 3)))
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, {**_GELU, "w": w}, opset=20))


@needs_measured
def test_transposed_once_more() -> None:
    """Once a constant has been widened, transpositions move again: here past a cast that one Gelu reads by then."""
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 3, 16), (16,)))
    nodes = [
        helper.make_node("Add", ["x", "w"], ["m"]),
        helper.make_node("Transpose", ["m"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Cast", ["t"], ["c"], to=TensorProto.FLOAT),
        *_gelu("c", "g"),
        helper.make_node("Transpose", ["g"], ["y"], perm=[2, 1, 0]),
    ]
    constants = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5), "w": w}
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=14))


def _normalization(wide: int, half: bool) -> list[onnx.NodeProto]:
    """Of x; the centred values are cast to another type before they are squared."""
    return [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[-1]),
        helper.make_node("Sub", ["x", "mean"], ["near"]),
        helper.make_node("Cast", ["near"], ["centred"], to=wide),
        helper.make_node("Pow", ["centred", "two"], ["squares"]),
        helper.make_node("ReduceMean", ["squares"], ["variance"], axes=[-1]),
        helper.make_node("Add", ["variance", "epsilon"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", ["centred", "root"], ["quotient"]),
        helper.make_node("Cast", ["quotient"], ["rounded"], to=TensorProto.FLOAT16 if half else TensorProto.FLOAT),
        helper.make_node("Mul", ["rounded", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["y"]),
    ]


@needs_measured
@pytest.mark.parametrize("half", [False, True])
def test_normalizations_by_wider_numbers(half: bool) -> None:
    """PyTorch's export of halves centres in binary16, and squares in binary64: one normalization all the same."""
    rng, dtype = np.random.default_rng(5), np.float16 if half else np.float32
    x, scale, bias = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 3, 16), (16,), (16,)))
    constants = {"two": np.float64(2), "epsilon": np.float64(1e-3), "scale": scale, "bias": bias}
    results = {"y": TensorProto.FLOAT16 if half else TensorProto.FLOAT}
    nodes = [helper.make_node("Sigmoid", ["input"], ["x"]), *_normalization(TensorProto.DOUBLE, half)]
    assert _check(*build(nodes, {"input": x}, results, constants, opset=14))


@needs_measured
def test_saved_exponents() -> None:
    """A saved file casts constants: folded when it is opened, they keep no normalization from being joined."""
    rng, parts = np.random.default_rng(5), [helper.make_node("Sigmoid", ["x"], ["xa"])]
    for turn in "ab":
        names = {"x": f"x{turn}", "y": "xb" if turn == "a" else "last", "two": "two", "epsilon": "epsilon"}
        for node in _normalization(TensorProto.FLOAT16, True):
            if node.op_type == "Cast":
                names[node.output[0]] = names.get(node.input[0], f"{node.input[0]}_{turn}")
                continue
            inputs = [
                names.get(name, f"{name}_{turn}" if name not in ("scale", "bias") else name) for name in node.input
            ]
            outputs = [names.get(name, f"{name}_{turn}") for name in node.output]
            copied = helper.make_node(node.op_type, inputs, outputs)
            copied.attribute.extend(node.attribute)
            parts.append(copied)
    x, scale, bias = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 3, 16), (16,), (16,)))
    constants = {"two": np.float16(2), "epsilon": np.float16(1e-3), "scale": scale, "bias": bias}
    parts.append(helper.make_node("Cast", ["last"], ["y"], to=TensorProto.FLOAT))
    content, feeds = build(parts, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=14)
    for level in ("BASIC", "EXTENDED"):
        assert _check(optimised(content, level, off=()), feeds)


@needs_measured
def test_saved_casts() -> None:
    """The runtime knows the casts that it has inserted by their names in saved files again: they do not round."""
    x = np.random.default_rng(5).standard_normal((2, 3, 16)).astype(np.float32)
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("Cast", ["t"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("Sigmoid", ["h"], ["s"]),
        helper.make_node("Cast", ["h"], ["w"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["s"], ["v"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["v", "w"], ["y"]),
    ]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, opset=17)
    for level in ("BASIC", "EXTENDED"):
        assert _check(optimised(content, level, off=()), feeds)


@needs_measured
def test_averages_behind_shared_statistics() -> None:
    """What one batch normalization reads twice stays a cast: it leaves blocks of channels, and so does the average."""
    rng = np.random.default_rng(5)
    x, w, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 16, 7, 7), (16, 16, 3, 3), (16,)))
    ones = np.ones(16, np.float16)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("BatchNormalization", ["r", "ones", "b", "b", "ones"], ["n"]),
        helper.make_node("GlobalAveragePool", ["n"], ["g"]),
        helper.make_node("Cast", ["g"], ["y"], to=TensorProto.FLOAT),
    ]
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"w": w, "b": b, "ones": ones}, opset=17))


@needs_measured
@pytest.mark.parametrize("limits", [(0.0, 6.0), (-0.1, 1.3)])
def test_limits_of_fused_convolutions(limits: tuple[float, float]) -> None:
    """A Clip has a kernel, but a convolution that ends with one has none: what is between them is not rounded."""
    rng = np.random.default_rng(5)
    x, w, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 3, 7, 7), (16, 3, 3, 3), (16,)))
    finished = helper.make_node(
        "FusedConv", ["x", "w", "b"], ["c"], domain="com.microsoft", activation="Clip", activation_params=limits
    )
    nodes = [finished, helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)]
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"w": w, "b": b}, opset=17))


def test_small_variances() -> None:
    """The epsilon of a batch normalization is added as a binary32 number; of sums of 1e-3 or so its rounding tells."""
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((1, 4, 3, 3), (64, 4, 1, 1)))
    scale, bias, mean = (rng.standard_normal(64).astype(np.float16) for _ in range(3))
    variance = rng.uniform(5e-5, 2e-3, 64).astype(np.float16)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["n"]),
        helper.make_node("Cast", ["n"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = {"w": w, "scale": scale, "bias": bias, "mean": mean, "variance": variance}
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=17))


@needs_measured
def test_computed_factors() -> None:
    """A root of a constant has no kernel: behind the casts it is computed in every run, and no factor of a product."""
    x = np.random.default_rng(5).standard_normal((2, 3, 16)).astype(np.float16)
    nodes = [
        helper.make_node("Sqrt", ["three"], ["root"]),
        helper.make_node("Mul", ["x", "root"], ["a"]),
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Mul", ["t", "root"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["m"]),
        helper.make_node("Cast", ["m"], ["y"], to=TensorProto.FLOAT),
    ]
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"three": np.float16(3)}, opset=17))


@needs_measured
def test_idle_expand() -> None:
    """An Expand to the sizes that are there goes; what is left stands alone between nodes without a kernel."""
    x = np.random.default_rng(5).standard_normal((2, 3, 16)).astype(np.float16)
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Unsqueeze", ["s", "axis"], ["u"]),
        helper.make_node("Expand", ["u", "sizes"], ["e"]),
        helper.make_node("Tanh", ["e"], ["t"]),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = {"axis": np.array([1]), "sizes": np.array([1, 3, 1])}
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=17))


@needs_measured
def test_joined_reshapes() -> None:
    """Reshapes that become one are asked last whether they stand alone: here behind the Concat that reads them."""
    x = np.random.default_rng(5).standard_normal((1, 12, 16)).astype(np.float16)
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Reshape", ["s", "four"], ["f"]),
        helper.make_node("Reshape", ["f", "three"], ["r"]),
        helper.make_node("Tanh", ["r"], ["t"]),
        helper.make_node("Sub", ["t", "s"], ["d"]),
        helper.make_node("Concat", ["d", "r"], ["c"], axis=1),
        helper.make_node("Tanh", ["c"], ["y"]),
    ]
    constants = {"four": np.array([1, 12, 4, 4]), "three": np.array([1, 12, 16])}
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, constants, opset=17))


@needs_measured
def test_shapes_behind_products_of_blocks() -> None:
    """The shape of MatMulNBits on binary16 numbers is known: a product and a sum behind it become one."""
    rng = np.random.default_rng(5)
    nodes = [
        helper.make_node(
            "MatMulNBits",
            ["x", "q", "s"],
            ["n"],
            domain="com.microsoft",
            K=32,
            N=48,
            bits=4,
            block_size=32,
            accuracy_level=4,
        ),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["p"]),
        helper.make_node("Add", ["b", "p"], ["t"]),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = {
        "q": rng.integers(0, 256, (48, 1, 16)).astype(np.uint8),
        "s": abs(_halves(rng, 48, 1)),
        "w": _halves(rng, 48, 600),
        "b": _halves(rng, 600),
    }
    content, feeds = build(nodes, {"x": _halves(rng, 2, 7, 32)}, {"y": TensorProto.FLOAT}, constants)
    assert _check(content, feeds)
    steps = bittrue.load(content).prepare(HERE).plan.steps
    assert [step.operator for step in steps if step.operator in ("matmul", "add")].count("add") == 0


@needs_measured
@pytest.mark.parametrize("opset", [14, 17, 18, 20, 24])
def test_operators_that_others_define(opset: int) -> None:
    """Which ones the runtime replaces by their definitions depends on the operator set."""
    ran, x = 0, np.linspace(-4, 4, 48).astype(np.float16).reshape(1, 3, 16)
    for name in _FUNCTIONS:
        # Defined by binary64 numbers there, which have no rows.
        if (name, opset) == ("ReduceLogSumExp", 18):
            continue
        feeds = {"x": abs(x) if "Log" in name else x}
        ran += _check(*build([helper.make_node(name, ["x"], ["y"])], feeds, {"y": TensorProto.FLOAT16}, opset=opset))
    assert ran > 10


def test_kernels() -> None:
    """The runtime has registered the kernels that the rewrite takes for granted."""
    kernels: dict[str, int] = {}
    for kernel in onnxruntime_pybind11_state.get_all_opkernel_def():
        kinds = {kind for allowed in kernel.type_constraints.values() for kind in allowed}
        if kernel.provider == "CPUExecutionProvider" and _HALF in kinds:
            first = kernel.version_range[0]
            kernels[kernel.op_name] = min(kernels.get(kernel.op_name, first), first)
    for name, since in SINCE.items():
        # It is replaced by a cast.
        if name != "CastLike":
            assert since in (1, kernels[name])


@needs_measured
@pytest.mark.parametrize("leads_on", [True, False])
@pytest.mark.parametrize("position", ["Unsqueeze", "Round"])
def test_transpositions_that_move_on(position: str, leads_on: bool) -> None:
    """Rotated keys: their transposition moves on to the next one, and positions in binary16 are transposed instead."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 5, 3, 8)).astype(np.float16)
    angles = rng.standard_normal((5, 8) if position == "Unsqueeze" else (1, 1, 5, 8)).astype(np.float16)
    constants = {
        "axes": np.array([0, 1]),
        "zero": np.array([0]),
        "half": np.array([4]),
        "end": np.array([8]),
        "last": np.array([3]),
        "weights": rng.standard_normal((5, 4) if leads_on else (8, 4)).astype(np.float16),
    }
    positions = []
    for kind in ("Cos", "Sin"):
        inputs = [f"{kind}/f", "axes"] if position == "Unsqueeze" else [f"{kind}/f"]
        positions += [helper.make_node(kind, ["angles"], [f"{kind}/f"]), helper.make_node(position, inputs, [kind])]
    nodes = [
        helper.make_node("Transpose", ["x"], ["k"], perm=(0, 2, 1, 3)),
        *positions,
        helper.make_node("Slice", ["k", "zero", "half", "last"], ["low"]),
        helper.make_node("Slice", ["k", "half", "end", "last"], ["high"]),
        helper.make_node("Neg", ["high"], ["turned"]),
        helper.make_node("Concat", ["turned", "low"], ["rotated"], axis=3),
        helper.make_node("Mul", ["k", "Cos"], ["a"]),
        helper.make_node("Mul", ["rotated", "Sin"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node(
            *(("Transpose", ["c"], ["d"]) if leads_on else ("Neg", ["c"], ["d"])),
            **({"perm": (0, 1, 3, 2)} if leads_on else {}),
        ),
        helper.make_node("MatMul", ["d", "weights"], ["y"]),
    ]
    assert _check(*build(nodes, {"x": x, "angles": angles}, {"y": TensorProto.FLOAT16}, constants))


@needs_measured
@pytest.mark.parametrize("residual", ["sum", "normalized", "turned"])
def test_symbols_of_widened_results(residual: str) -> None:
    """A wide result has the sizes that follow from what the file declares of operands, not those of its own twin."""
    rng = np.random.default_rng(2)
    x, z = (rng.standard_normal((2, 40, 96)).astype(np.float16) for _ in range(2))
    constants = {"scale": np.ones(96, np.float16), "bias": np.ones(96, np.float16)}
    nodes = [
        helper.make_node("Add", ["x", "z"], ["sum"]),
        helper.make_node("LayerNormalization", ["sum", "scale"], ["normalized"], axis=-1),
        helper.make_node("Mul", ["normalized", "bias"], ["gain"]),
        helper.make_node("Transpose", ["normalized"], ["turn"], perm=[1, 0, 2]),
        helper.make_node("Sigmoid", ["turn"], ["sigmoid"]),
        helper.make_node("Transpose", ["sigmoid"], ["turned"], perm=[1, 0, 2]),
        helper.make_node("Add", ["gain", residual], ["last"]),
        helper.make_node("LayerNormalization", ["last", "scale"], ["h"], axis=-1),
        helper.make_node("Neg", ["h"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["y"], to=TensorProto.FLOAT),
    ]
    content, feeds = build(nodes, {"x": x, "z": z}, {"y": TensorProto.FLOAT}, constants)
    model = onnx.load_from_string(content)
    for position, value in enumerate(model.graph.input):
        for axis in range(2):
            value.type.tensor_type.shape.dim[axis].dim_param = f"free{position}{axis}"
    for name in ("sum", "normalized", "gain", "last"):
        model.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.FLOAT16, ["rows", "lines", 96]))
    for name in ("turn", "sigmoid"):
        model.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.FLOAT16, ["lines", "rows", 96]))
    assert _check(model.SerializeToString(), feeds)


@needs_measured
@pytest.mark.parametrize("bounds", [(), ("low",), ("", "high"), ("low", "high")])
def test_clip_of_infinities(bounds: tuple[str, ...]) -> None:
    """A bound that the file leaves out is the largest binary16 number, but between nodes that are widened."""
    x = np.array([np.inf, -np.inf, 65504, 1, np.nan], np.float16)
    constants = {"low": np.float16(-2), "high": np.float16(0.5)}
    nodes = [
        helper.make_node("Clip", ["x", *bounds], ["y"]),
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Clip", ["a", *bounds], ["b"]),
        helper.make_node("Abs", ["b"], ["z"]),
    ]
    outputs = {"y": TensorProto.FLOAT16, "z": TensorProto.FLOAT16}
    assert _check(*build(nodes, {"x": x}, outputs, {name: constants[name] for name in bounds if name}))


@needs_measured
@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("shapes", [((37,), (37,)), ((2, 1), (1, 35)), ((1, 35), (2, 1)), ((1,), (1,)), ((), (9,))])
def test_equal_extremes(operator: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Which zero and which NaN is kept."""
    rng = np.random.default_rng(0)
    values = np.array([0.0, -0.0, 1, np.nan, -np.nan], np.float16)
    a, b = (np.asarray(rng.choice(values, shape), np.float16) for shape in shapes)
    nodes = [helper.make_node(operator, ["a", "b"], ["y"])]
    assert _check(*build(nodes, {"a": a, "b": b}, {"y": TensorProto.FLOAT16}))


@needs_measured
@pytest.mark.parametrize("operator", ["Slice", "Conv", "Reshape", "Expand"])
def test_ranks_without_sizes(operator: str) -> None:
    """A transposition passes what follows from sizes that are inputs: the runtime knows how many there are."""
    rng = np.random.default_rng(3)
    constants = {
        "filters": rng.standard_normal((8, 8, 3)).astype(np.float16),
        "weights": rng.standard_normal((8, 4)).astype(np.float16),
        "gain": rng.standard_normal((5, 1)).astype(np.float16),
        "factor": rng.standard_normal((1, 8, 1, 3)).astype(np.float16),
        "zero": np.zeros(1, np.int64),
        "last": np.array([2]),
    }
    if operator in ("Slice", "Conv"):
        nodes = [helper.make_node("Slice", ["x", "zero", "size", "last"], ["s"])]
    else:
        nodes = [helper.make_node(operator, ["x", "size"], ["s"])]
    nodes += [
        helper.make_node(*(("Conv", ["s", "filters"], ["a"]) if operator == "Conv" else ("Exp", ["s"], ["a"]))),
        helper.make_node("Transpose", ["a"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Mul", ["t", "gain"], ["m"]),
        helper.make_node("Round", ["m"], ["rows"]),
        helper.make_node("Transpose", ["m"], ["back"], perm=[0, 2, 1]),
        helper.make_node("Unsqueeze", ["back", "end"], ["lone"]),
        helper.make_node("Mul", ["lone", "factor"], ["p"]),
        helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT),
    ]
    constants["end"] = np.array([3])
    width = 7 if operator == "Conv" else 5
    x = rng.standard_normal((2, 8, width + 1 if operator in ("Slice", "Conv") else width)).astype(np.float16)
    size = np.array([width] if operator in ("Slice", "Conv") else [2, 8, width])
    outputs = {"y": TensorProto.FLOAT, "rows": TensorProto.FLOAT16}
    content, feeds = build(nodes, {"x": x, "size": size}, outputs, constants)
    assert _check(content, feeds)


@needs_measured
def test_joined_groups_are_asked_last() -> None:
    """A normalization of parts stands alone in front of a node that stands alone itself."""
    rng = np.random.default_rng(4)
    constants = {
        "axis": np.array([-1]),
        "two": np.float16(2),
        "epsilon": np.float16(1e-3),
        "scale": rng.standard_normal(8).astype(np.float16),
        "bias": rng.standard_normal(8).astype(np.float16),
    }
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("ReduceMean", ["e", "axis"], ["mean"]),
        helper.make_node("Sub", ["e", "mean"], ["centred"]),
        helper.make_node("Pow", ["centred", "two"], ["power"]),
        helper.make_node("ReduceMean", ["power", "axis"], ["variance"]),
        helper.make_node("Add", ["variance", "epsilon"], ["total"]),
        helper.make_node("Sqrt", ["total"], ["root"]),
        helper.make_node("Div", ["centred", "root"], ["quotient"]),
        helper.make_node("Mul", ["quotient", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["normalized"]),
        helper.make_node("Concat", ["e", "normalized"], ["both"], axis=1),
        helper.make_node("Neg", ["both"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["y"], to=TensorProto.FLOAT),
    ]
    x = rng.standard_normal((2, 3, 8)).astype(np.float16)
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants))


@pytest.mark.parametrize("large", [False, True])
def test_biases_between_pairs(large: bool) -> None:
    """They are quantized by binary16 operations; a quotient beyond their numbers is lost."""
    rng = np.random.default_rng(5)
    constants = {
        "scale": np.float16(2e-4 if large else 0.05),
        "point": np.int16(3),
        "codes": rng.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8),
        "weight_scale": np.float16(0.01),
        "bias": rng.standard_normal(4).astype(np.float16),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "point"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "point"], ["d"]),
        helper.make_node("DequantizeLinear", ["codes", "weight_scale"], ["w"]),
        helper.make_node("Conv", ["d", "w", "bias"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "scale", "point"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "scale", "point"], ["y"]),
    ]
    x = rng.standard_normal((1, 3, 6, 6)).astype(np.float16)
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, constants, opset=21))


def test_sums_that_the_next_one_reads(request: pytest.FixtureRequest) -> None:
    """Between the parts of one operator nothing is rounded; what another operator of the same kind reads is."""
    ran = 0
    for rng in cases(request, usual=12):
        ones: dict[str, np.ndarray] = {k: rng.standard_normal(16).astype(np.float16) for k in ("gamma", "beta", "row")}
        feeds = {name: rng.standard_normal((2, 3, 16)).astype(np.float16) for name in "ab"}
        known, nodes = list(feeds), []
        feeds["gate"] = rng.standard_normal((2, 3, 1)).astype(np.float16)
        for i in range(int(rng.integers(2, 5))):
            kind = str(rng.choice(["SkipSimplifiedLayerNormalization", "SkipLayerNormalization", "GatedAdd"]))
            sum_of, result = [str(rng.choice(known[-2:])), str(rng.choice(known))], [f"y{i}"]
            if kind == "GatedAdd":
                sum_of.append("gate")
            else:
                sum_of += ["gamma"] if "Simplified" in kind else ["gamma", "beta"]
                sum_of += ["row"] * int(rng.integers(2))
                result += ["", "", f"sum{i}"]
            nodes.append(helper.make_node(kind, sum_of, result, domain="com.microsoft"))
            known += [name for name in result if name]
        ran += _check(*build(nodes, feeds, dict.fromkeys(known[2:], TensorProto.FLOAT16), ones))
    assert ran > 8


def test_sequences_between_nodes_without_a_kernel() -> None:
    """Their elements are rounded, though what comes before and behind is widened."""
    x = np.random.default_rng(5).standard_normal((2, 3, 16)).astype(np.float16)
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("SplitToSequence", ["s", "parts"], ["q"], axis=-1),
        helper.make_node("SequenceAt", ["q", "first"], ["a"]),
        helper.make_node("SequenceAt", ["q", "second"], ["b"]),
        helper.make_node("Mul", ["a", "b"], ["m"]),
        helper.make_node("Cast", ["m"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = {"parts": np.array(8), "first": np.array(0), "second": np.array(1)}
    assert _check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=17))


def test_shapes_behind_windows_of_free_images() -> None:
    """Two sizes side by side may have as many windows; the shape is no constant all the same."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["p"], ["shape"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Reshape", ["f", "shape"], ["r"]),
        helper.make_node("Sigmoid", ["r"], ["y"]),
    ]
    images = [np.ones((1, 2, size, 9), np.float16) for size in (4, 13)]
    model = onnx.load_from_string(build(nodes, {"x": images[0]}, {"y": TensorProto.FLOAT16}, opset=17)[0])
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    for image in images:
        assert _check(model.SerializeToString(), [image])


@pytest.mark.parametrize("operator", ["Add", "Mul"])
def test_pairs_of_constants_of_16_bits(request: pytest.FixtureRequest, operator: str) -> None:
    """Level 1 makes them integers before anybody asks what a dequantization reads: its binary16 result stays."""
    for rng in cases(request, usual=15):
        kind = np.dtype(rng.choice([np.uint16, np.int16]))
        shape = (int(rng.choice([1, 4])), 8) if rng.random() < 0.5 else (8,)
        scale, point = np.float16(2.0 ** rng.uniform(-13, -6)), integers(rng, (), kind)
        constants = {"w": _halves(rng, *shape), "scale": np.asarray(scale), "point": np.asarray(point)}
        pair = [
            helper.make_node("QuantizeLinear", ["w", "scale", "point"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "scale", "point"], ["d"]),
        ]
        nodes = [*pair, helper.make_node(operator, ["x", "d"], ["y"])]
        feeds = {"x": _halves(rng, 4, 8)}
        assert _check(*build(nodes, feeds, {"y": TensorProto.FLOAT16}, constants, opset=21))


_GATES: dict[str, dict[str, object]] = {
    "Gelu": {},
    "FastGelu": {},
    "FastGelu of a sum": {"vectors": 1},
    "QuickGelu": {},
    "QuickGelu of x": {"alpha": 1.0},
    "BiasGelu": {"vectors": 1},
    "SkipLayerNormalization": {"vectors": 2, "twice": True},
    "SkipLayerNormalization with a row": {"vectors": 3, "twice": True},
    "SkipSimplifiedLayerNormalization": {"vectors": 1, "twice": True},
}


@needs_measured
@pytest.mark.parametrize("before", ["nothing", "a product", "a reshaped product"])
@pytest.mark.parametrize("name", list(_GATES))
def test_contributed_operators(name: str, before: str) -> None:
    """Gates without a kernel are what defines them, constants rounded; sums that are normalized stand alone whole.

    A definition's Identity stays, and keeps a reshape before it on binary16 numbers.
    """
    rng, given = np.random.default_rng(7), dict(_GATES[name])
    vectors = [f"v{number}" for number in range(int(str(given.pop("vectors", 0))))]
    operands = ["x"] * (2 if given.pop("twice", False) else 1) + vectors
    constants: dict[str, np.ndarray] = {vector: _halves(rng, 16) for vector in vectors}
    constants |= {"w": _halves(rng, 16, 16), "heads": np.array([-1, 6, 16])}
    product = helper.make_node("MatMul", ["given", "w"], ["x" if before == "a product" else "flat"])
    nodes = {
        "nothing": [helper.make_node("Identity", ["given"], ["x"])],
        "a product": [product],
        "a reshaped product": [product, helper.make_node("Reshape", ["flat", "heads"], ["x"])],
    }[before]
    operator = name.partition(" ")[0]
    nodes += [
        helper.make_node(operator, operands, ["gated"], domain="com.microsoft", **given),
        helper.make_node("Neg", ["gated"], ["y"]),
    ]
    read = {index for node in nodes for index in node.input}
    constants = {index: value for index, value in constants.items() if index in read}
    for opset in (17, 22):
        feeds = {"given": _halves(rng, 40, 6, 16)}
        assert _check(*build(nodes, feeds, {"y": TensorProto.FLOAT16}, constants, opset=opset))


@needs_measured
@pytest.mark.parametrize("scale", [np.float16, np.float32])
@pytest.mark.parametrize("before", ["Identity", "Neg", "Cast", "Transpose"])
def test_normalization_of_two_types(before: str, scale: type) -> None:
    """A file's SimplifiedLayerNormalization gives the type of its scale; for two types there is no kernel."""
    rng, narrow, wide = np.random.default_rng(11), TensorProto.FLOAT16, TensorProto.FLOAT
    halves = scale == np.float32
    given = {"Cast": {"to": narrow if halves else wide}, "Transpose": {"perm": [1, 0]}}
    nodes = [
        helper.make_node(before, ["given"], ["x"], **given.get(before, {})),
        helper.make_node("SimplifiedLayerNormalization", ["x", "scale"], ["n"], axis=-1, epsilon=1e-6),
        helper.make_node("Mul", ["n", "scale"], ["y"]),
    ]
    values = rng.normal(size=(16, 16)).astype(np.float32 if halves == (before == "Cast") else np.float16)
    constants = {"scale": rng.normal(size=16).astype(scale)}
    assert _check(*build(nodes, {"given": values}, {"y": wide if halves else narrow}, constants, opset=17))


@needs_measured
@pytest.mark.parametrize(
    ("opset", "part"), [(13, {}), (17, {}), (17, {"start": 1}), (17, {"start": -2, "end": -1}), (17, {"end": 2})]
)
def test_sizes_of_a_transposed_image(opset: int, part: dict[str, int]) -> None:
    """Shape takes sizes from before a transposition, which stands alone then and is widened: DeBERTa's convolution."""
    rng = np.random.default_rng(12)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["t", "w"], ["c"], kernel_shape=[3], pads=[1, 1]),
        helper.make_node("Transpose", ["c"], ["u"], perm=[0, 2, 1]),
        helper.make_node("Shape", ["u"], ["sizes"], **part),
        helper.make_node("Cast", ["sizes"], ["numbers"], to=TensorProto.FLOAT16),
        helper.make_node("ReduceSum", ["numbers"], ["total"], keepdims=0),
        helper.make_node("Sub", ["u", "total"], ["y"]),
    ]
    x = _halves(rng, 2, 60, 16)
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, {"w": _halves(rng, 16, 16, 3)}, opset=opset)
    model = onnx.load_from_string(content)
    for axis, name in enumerate(("batch", "length")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    assert _check(model.SerializeToString(), feeds)


@pytest.mark.parametrize("target", [None, "UINT8", "INT8", "INT16", "INT32", "INT64", "BOOL"])
def test_every_half_is_native(target: str | None) -> None:
    """Casts to integers, and the sign (of NaN, too)."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    if target is None:
        model = single("Sign", {"x": x}, [TensorProto.FLOAT16])
    else:
        kind = getattr(TensorProto, target)
        model = single("Cast", {"x": x}, [kind], {"to": kind})
    assert check(*model) == "equal"
    natively(*model)


@needs_measured
def test_copies_of_weights() -> None:
    """Products by a weight and by a copy of it read one cast, no constant to the runtime: DeBERTa's shared keys."""
    rng = np.random.default_rng(13)
    nodes = [
        helper.make_node("Identity", ["w"], ["copy"]),
        helper.make_node("Identity", ["copy"], ["again"]),
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["places", "again"], ["b"]),
        helper.make_node("Tanh", ["b"], ["c"]),
        helper.make_node("Sub", ["a", "c"], ["y"]),
    ]
    feeds = {"x": _halves(rng, 2, 64, 768)}
    constants = {"w": _halves(rng, 768, 768), "places": _halves(rng, 1, 64, 768)}
    assert _check(*build(nodes, feeds, {"y": TensorProto.FLOAT16}, constants, opset=17))


@needs_measured
@pytest.mark.parametrize(
    ("forms", "shared"),
    [
        (("stored", "stored"), True),
        (("stored", "copied"), True),
        (("stored", "rounded"), False),
        (("stored", "squeezed"), False),
        (("rounded", "rounded"), True),
        (("rounded", "rounded otherwise"), False),
        (("squeezed", "rounded"), False),
    ],
)
def test_constants_that_are_equal_once_computed(forms: tuple[str, str], shared: bool) -> None:
    """They stay two, each of which is widened: only of one that two nodes read a normalization knows no value.

    The same function of equal constants is one before it is computed.
    """
    small = np.float32(1e-5)
    stored = {
        "stored": np.float16(small),
        "copied": np.float16(small),
        "rounded": small,
        "rounded otherwise": np.float32(1.0001e-5),
        "squeezed": np.float16([small]),
    }
    nodes, constants = [], {"scale": np.linspace(0.5, 2, 8).astype(np.float16), "two": np.float16(2)}
    for name, form in zip(("epsilon", "addend"), forms, strict=True):
        constants[name if form == "stored" else f"{name} before"] = np.asarray(stored[form])
        if form != "stored":
            kind = {"copied": "Identity", "squeezed": "Squeeze"}.get(form, "Cast")
            given = {"to": TensorProto.FLOAT16} if kind == "Cast" else {}
            nodes.append(helper.make_node(kind, [f"{name} before"], [name], **given))
    nodes += [
        helper.make_node("Pow", ["x", "two"], ["power"]),
        helper.make_node("ReduceMean", ["power"], ["mean"], axes=[-1]),
        helper.make_node("Add", ["epsilon", "mean"], ["total"]),
        helper.make_node("Sqrt", ["total"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["quotient"]),
        helper.make_node("Mul", ["quotient", "scale"], ["scaled"]),
        helper.make_node("Exp", ["scaled"], ["e"]),
        helper.make_node("Add", ["e", "addend"], ["y"]),
    ]
    x = (np.random.default_rng(0).standard_normal((4, 8)) * 0.004).astype(np.float16)
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, constants, opset=17)
    assert _check(content, feeds)
    (made,) = (n for n in onnx.load_from_string(optimised(content, "ALL", ())).graph.node if "LayerNorm" in n.op_type)
    (epsilon,) = (given.f for given in made.attribute if given.name == "epsilon")
    assert epsilon == (small if shared else np.float32(np.float16(small)))

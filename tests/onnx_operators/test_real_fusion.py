"""fold_reals and fuse_reals give ONNX Runtime's bytes for graphs of real operators, all of its optimisers at work."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.arithmetic import floats
from support.differential import assert_same
from support.onnx_models import HERE, build, cases, check, needs_measured, run_runtime, value_info
from support.real_graphs import RealGraphMaker


@needs_measured
def test_bytes(request: pytest.FixtureRequest) -> None:
    seen: set[str] = set()
    for rng in cases(request):
        maker = RealGraphMaker(rng, opset=int(rng.choice([13, 17, 18])), usual=float(rng.choice([0.95, 0.8, 0.6])))
        maker.grow(int(rng.integers(1, 5)))
        content, feeds = maker.model()
        theirs = run_runtime(content, feeds)
        if not isinstance(theirs, dict):
            # Its optimiser makes an invalid graph in some places: of 1 / x times itself, and of a scaled operand of one
            # product that is scaled again for another.
            assert re.search(r"Invalid model\. Node input '(div|mul)\d+' is not a graph input", theirs.message)
            continue
        for executor in ("reference", "auto"):
            session = bittrue.load(content).prepare(HERE, executor=executor)
            ours = session.run(*feeds)
            for name, value in theirs.items():
                assert_same(f"{name} ({executor})", ours[name], np.asarray(value))
        steps = session.plan.steps
        seen.update("conv of a sum" if s.operator == "conv" and len(s.inputs) > 9 else s.operator for s in steps)
    assert {"conv of a sum", "gelu", "matmul", "layer_normalization"} <= seen


@needs_measured
@pytest.mark.parametrize("order", [[1, 0, 2], [1, 2, 0], [0, 2, 1]])
def test_single_columns_of_transposed_matrices(order: list[int]) -> None:
    """Where their elements are no neighbours, they are not added up as a row."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 17, 7), (3, 7, 1)))
    lies = np.ascontiguousarray(np.transpose(b, np.argsort(order)))
    nodes = [
        helper.make_node("Neg", ["b"], ["n"]),
        helper.make_node("Transpose", ["n"], ["t"], perm=order),
        helper.make_node("MatMul", ["a", "t"], ["y"]),
    ]
    content, feeds = build(nodes, {"a": a, "b": lies}, {"y": TensorProto.FLOAT})
    assert check(content, feeds) == "equal"


@needs_measured
def test_bias_of_integer_products(request: pytest.FixtureRequest) -> None:
    """Where the runtime puts a bias into the product before it, a normalized sum with a residual adds it first."""
    fused = 0
    for rng in cases(request, usual=20):
        content, x = _normalized_product(rng)
        theirs = run_runtime(content, [x])
        assert isinstance(theirs, dict)
        session = bittrue.load(content).prepare(HERE)
        ours = session.run(x)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))
        fused += any(step.source == "SkipLayerNormalization" for step in session.plan.steps)
    assert fused > 6


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("reader", [None, "factor", "product"])
def test_gelu_of_integer_products(opset: int, reader: str | None) -> None:
    """A product of integers has its factor by the time that Gelu is joined, but not where the operator set has Gelu."""
    rng = np.random.default_rng(1)
    constants = {"w": rng.integers(-127, 128, (16, 200)).astype(np.int8), "ws": np.float32(0.02)}
    constants |= {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["factor"]),
        helper.make_node("Mul", ["real", "factor"], ["product"]),
        helper.make_node("Div", ["product", "root"], ["d"]),
        helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Add", ["e", "one"], ["a"]),
        helper.make_node("Mul", ["product", "a"], ["twice"]),
        helper.make_node("Mul", ["twice", "half"], ["y"]),
    ]
    if reader is not None:
        nodes.append(helper.make_node("Neg", [reader], ["other"]))
    outputs = {"y": TensorProto.FLOAT} | ({} if reader is None else {"other": TensorProto.FLOAT})
    x = rng.standard_normal((5, 16)).astype(np.float32)
    content, feeds = build(nodes, {"x": x}, outputs, constants, opset=opset)
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    assert_same("y", bittrue.load(content).prepare(HERE).run(*feeds)["y"], np.asarray(theirs["y"]))


def _normalized_product(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """Layer normalization of a dynamically quantized product, a bias and a residual; operands in any order, and now and
    then another reader or a bias that is no vector.
    """
    rows, size = int(rng.choice([1, 5])), int(rng.choice([8, 16]))
    per_column = bool(rng.random() < 0.5)
    bias_shape = (size,) if rng.random() < 0.8 else (1, size) if rng.random() < 0.5 else ()
    constants = {
        "w": rng.integers(-128, 128, (size, size)).astype(np.int8),
        "sw": np.asarray(rng.random(size if per_column else None) * 0.02 + 0.01, np.float32),
        "zw": np.zeros(size if per_column else (), np.int8),
        "b": np.asarray(rng.standard_normal(bias_shape), np.float32),
        "g": (1 + rng.random(size)).astype(np.float32),
        "c": rng.standard_normal(size).astype(np.float32),
    }

    def pair(one: str, two: str, turned: float) -> list[str]:
        return [two, one] if rng.random() < turned else [one, two]

    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "zw"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Mul", pair("s", "sw", 0.3), ["factor"]),
        helper.make_node("Mul", pair("real", "factor", 0.15), ["product"]),
        helper.make_node("Add", pair("product", "b", 0.3), ["biased"]),
        helper.make_node("Add", pair("biased", "x", 0.5), ["total"]),
        helper.make_node("LayerNormalization", ["total", "g", "c"], ["y"], epsilon=1e-5),
    ]
    outputs = ["y"]
    for name in ("real", "factor", "product", "biased", "total"):
        if rng.random() < 0.06:
            outputs.append(name if rng.random() < 0.5 else f"{name}_negative")
            nodes += [] if outputs[-1] == name else [helper.make_node("Neg", [name], outputs[-1:])]
    x = rng.standard_normal((1, rows, size)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "product",
        [value_info("x", x)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString()), x


@needs_measured
@pytest.mark.parametrize("form", ["plain", "read", "own bias"])
@pytest.mark.parametrize("turned", [False, True])
def test_biases_before_skipping_normalizations_of_the_file(turned: bool, form: str) -> None:
    """A vector that the file adds to a product before its SkipLayerNormalization is added last, on either side.

    So is it in the sum that the node gives, too, which others read; a node that has a bias takes in no other.
    """
    read, own = form == "read", ["b"] * (form == "own bias")
    rng = np.random.default_rng(5)
    shapes = {"x": (1, 6, 8), "w": (8, 16), "b": (16,), "r": (1, 6, 16), "scale": (16,), "shift": (16,)}
    values = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    sides = ["r", "biased"] if turned else ["biased", "r"]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["biased"]),
        helper.make_node(
            "SkipLayerNormalization",
            [*sides, "scale", "shift", *own],
            ["y", "", "", "sum"] if read else ["y"],
            domain="com.microsoft",
        ),
        *([helper.make_node("Neg", ["sum"], ["z"])] if read else []),
    ]
    inputs = {name: values.pop(name) for name in ("x", "r")}
    outputs = dict.fromkeys(("y", "z") if read else ("y",), TensorProto.FLOAT)
    content, feeds = build(nodes, inputs, outputs, values, opset=17)
    model = onnx.load_from_string(content)
    for given in model.graph.input:
        # Else product and vector are one product.
        given.type.tensor_type.shape.dim[0].dim_param = "batch"
    assert check(model.SerializeToString(), feeds) == "equal"


@needs_measured
@pytest.mark.parametrize("begin", ["conv", "pool", "Neg", "input"])
@pytest.mark.parametrize("groups", [1, 16, 2])
def test_convolutions_of_the_file_that_begin_with_an_image(begin: str, groups: int) -> None:
    """They go into blocks of channels where that image is in such, else they stay in planes."""
    rng = np.random.default_rng(4)
    shapes = {"w": (16, 16, 3, 3), "f": (16, 16 // groups, 3, 3), "b": (16,), "last": (8, 16, 3, 3)}
    constants = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    begins = {
        "conv": [helper.make_node("Conv", ["x", "w"], ["z"], pads=[1] * 4)],
        "pool": [helper.make_node("MaxPool", ["x"], ["z"], kernel_shape=[3, 3], pads=[1] * 4)],
        "Neg": [helper.make_node("Neg", ["x"], ["z"])],
        "input": [],
    }[begin]
    nodes = [
        *begins,
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1] * 4),
        helper.make_node(
            "FusedConv",
            ["a", "f", "b", "z" if begins else "x"],
            ["c"],
            domain="com.microsoft",
            pads=[1] * 4,
            group=groups,
            activation="Relu",
        ),
        helper.make_node("Conv", ["c", "last"], ["y"], pads=[1] * 4),
    ]
    x = rng.standard_normal((2, 16, 9, 9)).astype(np.float32)
    assert check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)) == "equal"


@pytest.mark.parametrize(
    "dims", [("n", 16, 12, 12), ("n", 16, "h", "w"), (2, 16, 12, 12), (2, 16, "h", 12), ("n", "c", "h", "w")]
)
@pytest.mark.parametrize("between", ["Neg", "Relu", "stride", "pool", "group", "enlarged"])
def test_sums_of_images_of_free_sizes(dims: tuple[int | str, ...], between: str) -> None:
    """A convolution begins with the other image only where both are known to have the same sizes.

    Free channels (Optimum) have the size that filters say.
    """
    rng = np.random.default_rng(3)
    constants = {name: rng.standard_normal((16, 16, 3, 3)).astype(np.float32) for name in "uvw"}
    constants |= {"b": rng.standard_normal(16).astype(np.float32), "rows": np.array([0, 4, -1])}
    constants |= {"one": np.ones(4, np.float32), "zero": np.zeros(4, np.float32), "twice": np.float32([1, 1, 2, 2])}
    step = 2 if between == "stride" else 1
    moved = {
        "group": [
            helper.make_node("Shape", ["a"], ["sizes"]),
            helper.make_node("Reshape", ["a", "rows"], ["r"]),
            helper.make_node("InstanceNormalization", ["r", "one", "zero"], ["i"]),
            helper.make_node("Reshape", ["i", "sizes"], ["m"]),
        ],
        "stride": [helper.make_node("Conv", ["a", "u"], ["m"], pads=[1] * 4, strides=[2, 2])],
        "pool": [helper.make_node("MaxPool", ["a"], ["m"], kernel_shape=[3, 3], pads=[1] * 4)],
        # Which forgets even how many images there are.
        "enlarged": [
            helper.make_node("MaxPool", ["a"], ["small"], kernel_shape=[2, 2], strides=[2, 2]),
            helper.make_node(
                "Resize",
                ["small", "", "twice"],
                ["m"],
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
        ],
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1] * 4),
        *moved.get(between, [helper.make_node(between, ["a"], ["m"])]),
        helper.make_node("Conv", ["a", "u", "b"], ["left"], pads=[1] * 4, strides=[step] * 2),
        helper.make_node("Conv", ["m", "v", "b"], ["right"], pads=[1] * 4),
        helper.make_node("Add", ["left", "right"], ["y"]),
    ]
    x = rng.standard_normal((2, 16, 12, 12)).astype(np.float32)
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    model = onnx.load_from_string(content)
    for place, size in zip(model.graph.input[0].type.tensor_type.shape.dim, dims, strict=True):
        if isinstance(size, str):
            place.dim_param = size
    content = model.SerializeToString()
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    assert_same("y", bittrue.load(content).prepare(HERE).run(*feeds)["y"], theirs["y"])


@needs_measured
@pytest.mark.parametrize("batch", [2, "n"])
@pytest.mark.parametrize(
    ("given", "mode", "attributes", "end"),
    [
        ("sizes", "nearest", {}, "sum"),
        ("sizes", "nearest", {}, "average"),
        ("sizes", "nearest", {"keep_aspect_ratio_policy": "not_larger"}, "average"),
        ("sizes", "linear", {}, "sum"),
        ("sizes", "linear", {"antialias": 1}, "sum"),
        ("factors", "linear", {"antialias": 1}, "average"),
        ("factors", "cubic", {}, "sum"),
    ],
)
def test_images_enlarged_to_sizes(
    batch: int | str, given: str, mode: str, attributes: dict[str, int], end: str
) -> None:
    """Constant sizes count as factors where all sizes of the image are known (pyramids); never for cubic ones."""
    rng = np.random.default_rng(3)
    constants = {name: rng.standard_normal((16, 16, 1, 1)).astype(np.float32) for name in "uvw"}
    constants |= {"sizes": np.array([2, 16, 8, 15]), "factors": np.float32([1, 1, 2, 3])}
    operands = ["a", "", "", "sizes"] if given == "sizes" else ["a", "", "factors"]
    places = {"coordinate_transformation_mode": "asymmetric"} | ({"nearest_mode": "floor"} if mode == "nearest" else {})
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Resize", operands, ["m"], mode=mode)]
    nodes[1].attribute.extend(helper.make_attribute(*item) for item in (places | attributes).items())
    if end == "sum":
        nodes += [helper.make_node("Conv", ["z", "u"], ["b"]), helper.make_node("Add", ["m", "b"], ["c"])]
        nodes += [helper.make_node("Conv", ["c", "v"], ["y"])]
    else:
        nodes += [helper.make_node("GlobalAveragePool", ["m"], ["y"]), helper.make_node("Neg", ["z"], ["idle"])]
    shapes = {"x": (2, 16, 4, 5), "z": (2, 16, 8, 15)}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model = onnx.load_from_string(build(nodes, inputs, {"y": TensorProto.FLOAT}, constants, opset=18)[0])
    for info in model.graph.input:
        if isinstance(batch, str):
            info.type.tensor_type.shape.dim[0].dim_param = batch
    theirs = run_runtime(model.SerializeToString(), list(inputs.values()))
    assert isinstance(theirs, dict)
    ours = bittrue.load(model.SerializeToString()).prepare(HERE, shapes=shapes)
    assert_same("y", ours.run(*inputs.values())["y"], theirs["y"])


@pytest.mark.parametrize("opset", [21, 22])
@pytest.mark.parametrize("constant", [False, True])
def test_sums_of_two_convolutions(constant: bool, opset: int) -> None:
    """In planes that one begins with the other image that comes first in the file, wherever it stands in the sum."""
    rng = np.random.default_rng(1)
    given = {"x": rng.standard_normal((1, 20, 9, 9)).astype(np.float32)}
    weights = {name: rng.standard_normal((8, 20, 3, 3)).astype(np.float32) for name in ("v", "w")}
    biases = {name: rng.standard_normal(8).astype(np.float32) for name in ("b", "c")}
    convolutions = [helper.make_node("Conv", ["x", *two], [two[0] + "x"]) for two in (("v", "b"), ("w", "c"))]
    for nodes in (convolutions, convolutions[::-1]):
        for operands in (["vx", "wx"], ["wx", "vx"]):
            graph = [*nodes, helper.make_node("Add", operands, ["y"])]
            inputs, constants = (given, biases | weights) if constant else (given | weights, biases)
            content, feeds = build(graph, inputs, {"y": TensorProto.FLOAT}, constants, opset=opset)
            assert check(content, feeds) == "equal"
            plan = bittrue.load(content).prepare("onnxruntime@aarch64").plan
            assert len(plan.steps) == 2
            assert plan.inexact == ()


@needs_measured
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("exponent", [2, 2.00001, 3])
def test_exponents_of_normalizations(exponent: float, centred: bool) -> None:
    """The runtime asks for the number 2 where there is no mean, and takes any number for it where there is one."""
    rng = np.random.default_rng(4)
    constants = {"two": np.float32(exponent), "epsilon": np.float32(1e-3)}
    constants |= {name: rng.standard_normal(37).astype(np.float32) for name in ("scale", "bias")}
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[-1]), helper.make_node("Sub", ["x", "mean"], ["d"])]
    apart = "d" if centred else "x"
    nodes = [
        *(nodes if centred else []),
        helper.make_node("Pow", [apart, "two"], ["power"]),
        helper.make_node("ReduceMean", ["power"], ["spread"], axes=[-1]),
        helper.make_node("Add", ["spread", "epsilon"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", [apart, "root"], ["ratio"]),
        helper.make_node("Mul", ["ratio", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["y"]),
    ]
    x = np.abs(rng.standard_normal((5, 37))).astype(np.float32)
    assert check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=13)) == "equal"


def test_biases_of_integer_products_on_aarch64() -> None:
    """There the bias is part of the product, whichever operand it is: one rounding of product and sum."""
    rng = np.random.default_rng(5)
    constants = {"w": rng.integers(-127, 128, (16, 40)).astype(np.int8), "ws": np.float32(0.02)}
    constants["b"] = rng.standard_normal(40).astype(np.float32)
    x = rng.standard_normal((7, 16)).astype(np.float32)
    for turned in (False, True):
        nodes = [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            helper.make_node("MatMulInteger", ["q", "w", "z"], ["sums"]),
            helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["s", "ws"], ["factor"]),
            helper.make_node("Mul", ["real", "factor"], ["product"]),
            helper.make_node("Add", ["b", "product"] if turned else ["product", "b"], ["y"]),
        ]
        content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
        model = bittrue.load(content)
        elsewhere, here = (model.prepare(name).run(*feeds)["y"] for name in ("onnxruntime@aarch64", "onnxruntime"))
        steps = model.prepare("onnxruntime", executor="reference").trace(*feeds)
        real, factor = steps["sums"].astype(np.float32), np.float32(steps["s"] * constants["ws"])
        assert here.tobytes() == (real * factor + constants["b"]).tobytes()
        assert elsewhere.tobytes() == floats.fused_multiply_add(real, factor, constants["b"]).tobytes()
        assert elsewhere.tobytes() != here.tobytes()

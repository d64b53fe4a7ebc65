"""Dequantized constants that are multiplied: the graph becomes the one that ONNX Runtime optimises it to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from support.onnx_models import HERE, MICROSOFT, Checks, build, cases, check, options

TWO_BITS = (TensorProto.INT2, TensorProto.UINT2)
EIGHT_BITS = (TensorProto.INT8, TensorProto.UINT8)
KINDS = {
    TensorProto.UINT2: (0, 3),
    TensorProto.INT2: (-2, 1),
    TensorProto.UINT4: (0, 15),
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
}


def model(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    kind = list(KINDS)[rng.integers(len(KINDS))]
    low, high = KINDS[kind]
    k, n = int(rng.integers(17, 150)), int(rng.integers(2, 40))
    if kind in TWO_BITS and rng.random() < 0.8:
        n = 4 * (n // 4 + 1)
    block = int(rng.choice([8, 16, 32, 64, 128]))
    form = str(rng.choice(["blocks", "blocks", "tensor", "channel"]))
    shape = {"blocks": (-(-k // block), n), "tensor": (), "channel": (n,)}[form]
    places = {"blocks": {"axis": 0, "block_size": block}, "tensor": {}, "channel": {"axis": 1}}[form]
    # Columns first, as most exporters keep them, and turned when dequantized.
    turned = rng.random() < 0.4
    # Sets before 21 know neither blocks nor 4 bits, those before 25 no 2 bits.
    sets_since = [25] if kind in TWO_BITS else [13, 19, 21, 25] if form != "blocks" and kind in EIGHT_BITS else [21, 25]
    opset = int(rng.choice(sets_since))
    if turned:
        shape, places = shape[::-1], {**places, **({"axis": 1 - places["axis"]} if places else {})}
    constants = [
        helper.make_tensor("w", kind, (n, k) if turned else (k, n), rng.integers(low, high + 1, k * n).tolist()),
        numpy_helper.from_array(np.asarray(rng.uniform(0.01, 0.1, shape), np.float32), "scale"),
    ]
    names = ["w", "scale"]
    # Quantizations of 2 bits with zero points end in an error of the runtime where they are repeated.
    if rng.random() < (0 if turned and kind in TWO_BITS else 0.6):
        points = rng.integers(low, high + 1, int(np.prod(shape))).tolist()
        constants.append(helper.make_tensor("zero", kind, shape, points))
        names.append("zero")
    operator, inputs = ("Gemm", ["x", "d"]) if rng.random() < 0.3 else ("MatMul", ["x", "d"])
    attributes = {}
    if operator == "Gemm" and rng.random() < 0.6:
        constants.append(numpy_helper.from_array(rng.standard_normal(n).astype(np.float32), "bias"))
        inputs.append("bias")
        if rng.random() < 0.2:
            attributes["alpha"] = 2.0
    # The runtime's own operator knows no blocks.
    domain = "com.microsoft" if form != "blocks" and kind not in TWO_BITS and rng.random() < 0.4 else ""
    nodes = [helper.make_node("DequantizeLinear", names, ["stored" if turned else "d"], domain=domain, **places)]
    if turned:
        nodes.append(
            helper.make_node("Transpose", ["stored"], ["d"], **({"perm": [1, 0]} if rng.random() < 0.8 else {}))
        )
    behind = _behind(rng, n, constants)
    nodes.append(helper.make_node(operator, inputs, ["product" if behind else "y"], **attributes))
    nodes += behind
    outputs = ["y"]
    # Open: a Gemm that shares its transposed weights with a MatMul transposes them itself, too.
    if rng.random() < 0.1 and not (turned and operator == "Gemm"):
        nodes.append(helper.make_node("MatMul", ["x", "d"], ["y2"]))
        outputs.append("y2")
    x = rng.standard_normal((int(rng.integers(1, 6)), k)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        constants,
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=sets, ir_version=11)
    return proto.SerializeToString(), x


def _behind(rng: np.random.Generator, n: int, constants: list[onnx.TensorProto]) -> list[onnx.NodeProto]:
    """Half of the time nodes that read the product: a sum with a vector, a gate, a pair of quantizations."""
    nodes, name = [], "product"
    if rng.random() < 0.5:
        return []
    if rng.random() < 0.5:
        constants.append(numpy_helper.from_array(rng.standard_normal(n).astype(np.float32), "added"))
        operands = [name, "added"] if rng.random() < 0.5 else ["added", name]
        nodes.append(helper.make_node("Add", operands, ["sum"]))
        name = "sum"
    gate = str(rng.choice(["", "QuickGelu", "Gelu", "FastGelu", "Relu"]))
    if gate:
        nodes.append(helper.make_node(gate, [name], ["gated"], domain="" if gate == "Relu" else "com.microsoft"))
        name = "gated"
    if rng.random() < 0.4:
        constants.append(numpy_helper.from_array(np.float32(0.07), "step"))
        constants.append(numpy_helper.from_array(np.uint8(120), "middle"))
        nodes.append(helper.make_node("QuantizeLinear", [name, "step", "middle"], ["quantized"]))
        nodes.append(helper.make_node("DequantizeLinear", ["quantized", "step", "middle"], ["real"]))
    if nodes:
        nodes[-1].output[0] = "y"
    return nodes


def content_bits(content: bytes) -> int:
    low, high = KINDS[onnx.load_from_string(content).graph.initializer[0].data_type]
    return (high - low).bit_length()


def _columns(optimized: onnx.ModelProto) -> list[int]:
    """Of the products with weights by blocks."""
    found = (node for node in optimized.graph.node if node.op_type == "MatMulNBits")
    return [entry.i for node in found for entry in node.attribute if entry.name == "N"]


def test_random_models(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    replaced = 0
    for rng in cases(request, usual=25):
        content, x = model(rng)
        chosen = options()
        chosen.optimized_model_filepath = str(tmp_path / "optimized.onnx")
        theirs = onnxruntime.InferenceSession(content, chosen, ["CPUExecutionProvider"]).run(None, {"x": x})
        wanted = sorted(node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node)
        if content_bits(content) == 2 and any(n % 4 for n in _columns(onnx.load(tmp_path / "optimized.onnx"))):
            # Of these the runtime leaves weights unwritten.
            for name in (HERE, "onnxruntime@aarch64"):
                with pytest.raises(bittrue.UnsupportedError, match="2-bit"):
                    bittrue.load(content).prepare(name)
            continue
        session = bittrue.load(content).prepare(HERE, executor="reference")
        steps = session.plan.steps
        assert sum("block_size" in s.parameters for s in steps if s.operator == "matmul") == wanted.count("MatMulNBits")
        replaced += wanted.count("MatMulNBits")
        for ours, other in zip(session.run(x).values(), theirs, strict=True):
            if any(step.inexact for step in steps):
                assert np.abs(ours - other).max() < 2e-6 * np.abs(other).max()
            else:
                assert ours.tobytes() == other.tobytes()
    assert replaced


def test_fused_products_of_the_file(request: pytest.FixtureRequest) -> None:
    """FusedMatMul and FusedGemm keep dequantized operands as they are, transposed ones and quantized results, too."""
    checks = Checks(request, usual=24, only="equal")
    for rng in checks:
        gemm, flags = rng.random() < 0.6, [int(rng.integers(2)) for _ in "ab"]
        rows, depth, columns = (int(rng.choice(sizes)) for sizes in ((1, 4), (3, 40, 300), (1, 5, 24)))
        nodes, fed, constants = [], {}, {"s": np.float32(0.01), "z": np.int8(0)}
        for side, shape, flag in zip("ab", ((rows, depth), (depth, columns)), flags, strict=True):
            turned, stored = rng.random() < 0.3, constants if side == "b" and rng.random() < 0.6 else fed
            first, shape = f"{side}t" if turned else side, shape[::-1] if flag != turned else shape
            if side == "b" or rng.random() < 0.4:
                stored[f"{side}q"] = rng.integers(-128, 128, shape).astype(np.int8)
                nodes.append(helper.make_node("DequantizeLinear", [f"{side}q", "s", "z"], [first]))
            else:
                stored[first] = rng.standard_normal(shape).astype(np.float32)
            if turned:
                nodes.append(helper.make_node("Transpose", [first], [side], perm=[1, 0]))
        names, given = ["a", "b"], {"transA": flags[0], "transB": flags[1]}
        if gemm and rng.random() < 0.5:
            constants["c"] = rng.standard_normal(columns).astype(np.float32)
            names.append("c")
        if gemm:
            nodes.append(helper.make_node("FusedGemm", names, ["y"], domain=MICROSOFT, activation="Relu", **given))
        else:
            nodes.append(helper.make_node("FusedMatMul", names, ["y"], domain=MICROSOFT, **given))
        if rng.random() < 0.4:
            nodes.append(helper.make_node("QuantizeLinear", ["y", "s", "z"], ["q"]))
            checks.add(*build(nodes, fed, {"q": TensorProto.INT8}, constants))
        else:
            checks.add(*build(nodes, fed, {"y": TensorProto.FLOAT}, constants))


@pytest.mark.parametrize("bits", [8, 16])
def test_rows_times_dequantized_weights(bits: int) -> None:
    """A single row multiplies weights that are not packed, since no constant holds them, in an order of its own."""
    rng, kind = np.random.default_rng(bits), {8: np.int8, 16: np.int16}[bits]
    constants = {
        "w": rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (48, 20)).astype(kind),
        "s": np.float32(0.01),
        "z": kind(0),
        "b": rng.integers(-999, 999, 20).astype(np.int32),
        "t": np.int32(0),
    }
    nodes = [
        helper.make_node("DequantizeLinear", names, [result])
        for names, result in ((["w", "s", "z"], "dw"), (["b", "s", "t"], "db"))
    ]
    nodes.append(helper.make_node("Gemm", ["x", "dw", "db"], ["y"]))
    x = rng.standard_normal((1, 48)).astype(np.float32)
    assert check(*build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)) == "equal"


@pytest.mark.parametrize("gate", ["FastGelu", "its definition"])
def test_biases_before_fast_gates(gate: str) -> None:
    """A sum before a FastGelu of the file is that gate's, before one that the runtime makes it is the product's."""
    defined = [
        helper.make_node("Pow", ["sum", "three"], ["cube"]),
        helper.make_node("Mul", ["cube", "small"], ["bent"]),
        helper.make_node("Add", ["sum", "bent"], ["whole"]),
        helper.make_node("Mul", ["whole", "root"], ["angle"]),
        helper.make_node("Tanh", ["angle"], ["tanh"]),
        helper.make_node("Add", ["tanh", "unit"], ["top"]),
        helper.make_node("Mul", ["sum", "half"], ["halved"]),
        helper.make_node("Mul", ["halved", "top"], ["gated"]),
    ]
    nodes = [
        helper.make_node(
            "MatMulNBits",
            ["x", "w", "scales", "points"],
            ["product"],
            domain="com.microsoft",
            K=64,
            N=24,
            bits=4,
            block_size=32,
            accuracy_level=4,
        ),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        *([helper.make_node(gate, ["sum"], ["gated"], domain="com.microsoft")] if gate == "FastGelu" else defined),
        helper.make_node("Neg", ["gated"], ["y"]),
    ]
    rng = np.random.default_rng(6)
    constants = {
        "w": rng.integers(0, 256, (24, 2, 16)).astype(np.uint8),
        "scales": rng.standard_normal((24, 2)).astype(np.float32),
        "points": rng.integers(0, 256, (24, 1)).astype(np.uint8),
        "b": rng.standard_normal(24).astype(np.float32),
        **{name: np.float32(v) for name, v in (("three", 3), ("small", 0.044715), ("unit", 1), ("half", 0.5))},
        "root": np.float32(0.7978845608),
    }
    x = rng.standard_normal((30, 64)).astype(np.float32)
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("shared", ["scale", "equal scale", "zero point"])
def test_shared_scales(shared: str) -> None:
    """Products whose scale another node reads stay; small equal constants are one, and zero points do not count."""
    rng = np.random.default_rng(2)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
        helper.make_node("DequantizeLinear", ["z", "scale" if shared == "scale" else "other", "zero"], ["e"]),
    ]
    constants = {
        "w": rng.integers(0, 256, (40, 5)).astype(np.uint8),
        "scale": np.float32(0.01),
        "zero": np.uint8(120),
        "other": np.float32(0.02 if shared == "zero point" else 0.01),
    }
    inputs = {"x": rng.standard_normal((3, 40)).astype(np.float32), "z": np.ones(3, np.uint8)}
    used = {name: value for name, value in constants.items() if any(name in node.input for node in nodes)}
    content, feeds = build(nodes, inputs, {"y": TensorProto.FLOAT, "e": TensorProto.FLOAT}, used, opset=17)
    assert check(content, feeds) == "equal"
    plan = bittrue.load(content).prepare(HERE).plan
    assert any("block_product" in step.rules for step in plan.steps) == (shared == "zero point")


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8, TensorProto.UINT8])
def test_contributed_dequantizations(kind: int, opset: int) -> None:
    """Weights of 4 bits before operator set 21 are dequantized by the runtime's own operator."""
    rng, (low, high) = np.random.default_rng(kind), KINDS[kind]
    constants = [
        helper.make_tensor("w", kind, (64, 24), rng.integers(low, high, 64 * 24).tolist()),
        numpy_helper.from_array(rng.uniform(0.002, 0.03, 24).astype(np.float32), "s"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], domain="com.microsoft", axis=1),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    x = rng.standard_normal((30, 64)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    assert check(model.SerializeToString(), [x]) == "equal"


def test_weights_that_the_file_quantizes() -> None:
    """The pair's scale is read by the dequantization alone: what quantizes a constant is gone by then."""
    rng = np.random.default_rng(12)
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    constants = {
        "w": rng.standard_normal((64, 24)).astype(np.float32),
        "s": np.asarray(0.02, np.float32),
        "z": np.asarray(3, np.int8),
    }
    x = rng.standard_normal((30, 64)).astype(np.float32)
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("block", [32, "column", "all"])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT8, TensorProto.UINT8])
def test_halves(kind: int, block: int | str, alone: bool) -> None:
    """Weights with binary16 scales are cut into blocks, too, and the product is one of binary32."""
    rng, (low, high), (depth, columns) = np.random.default_rng(kind), KINDS[kind], (64, 24)
    shape = {32: (2, columns), "column": (columns,), "all": ()}[block]
    scale = rng.uniform(0.002, 0.03, shape).astype(np.float16)
    constants = [
        helper.make_tensor("w", kind, (depth, columns), rng.integers(low, high, depth * columns).tolist()),
        helper.make_tensor("z", kind, shape, rng.integers(low, high, scale.size).tolist()),
        numpy_helper.from_array(scale, "s"),
        numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float16), "before"),
        numpy_helper.from_array(rng.standard_normal(columns).astype(np.float16), "b"),
    ]
    place = {32: {"block_size": 32, "axis": 0}, "column": {"axis": 1}, "all": {}}[block]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], **place),
        *([] if alone else [helper.make_node("MatMul", ["x", "before"], ["p"])]),
        helper.make_node("MatMul", ["x" if alone else "p", "d"], ["y" if alone else "product"]),
        *([] if alone else [helper.make_node("Add", ["product", "b"], ["y"])]),
    ]
    for rows in ((30,), (2, 9)):
        x = rng.standard_normal((*rows, depth)).astype(np.float16)
        graph = helper.make_graph(
            nodes,
            "graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT16, x.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
            [constant for constant in constants if any(constant.name in node.input for node in nodes)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        assert check(model.SerializeToString(), [x]) == "equal"

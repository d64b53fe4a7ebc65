"""Files of quantized ONNX operators as calls of bittrue.qnn, against integers and binary32 numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue import qnn
from bittrue.errors import InputError, UnsupportedError
from systems.test_tvm_qnn import requantized

F32 = np.float32
EXECUTORS = ("auto", "reference")


def model_of(
    nodes: list[Any], constants: dict[str, Any], inputs: dict[str, tuple[int, tuple[Any, ...]]], out: int
) -> bittrue.Model:
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    arrays = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("y", out, None)], arrays)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    return bittrue.load(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def results(model: bittrue.Model, *x: np.ndarray) -> np.ndarray:
    found = [
        next(iter(qnn.from_onnx(model).model().prepare(numerics="tvm-qnn", executor=e).run(*x).values()))
        for e in EXECUTORS
    ]
    np.testing.assert_array_equal(*found)
    return np.asarray(found[0])


def quantized(real: np.ndarray, scale: np.float32, point: int, dtype: str) -> np.ndarray:
    steps = np.asarray(real, F32) * (F32(1) / scale)
    whole = np.trunc(np.abs(steps) + F32(0.5)) * np.sign(steps) + point
    return np.clip(whole, *{"int8": (-128, 127), "uint8": (0, 255)}[dtype]).astype(dtype)


@pytest.mark.parametrize("seed", range(6))
def test_a_network(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = ("uint8", "int8")[seed % 2]
    several, groups = seed % 3 > 0, 1 + seed % 2
    s = {name: F32(rng.uniform(0.02, 0.3)) for name in ("x", "c", "a", "m", "y")}
    z = {name: int(rng.integers(0, 100)) for name in s}
    w = rng.integers(-20, 21, (4, 2 // groups, 3, 2)).astype(np.int8)
    ws = rng.uniform(0.01, 0.1, 4 if several else ()).astype(F32)
    wz = np.zeros(ws.shape, np.int8) if several else np.int8(3)
    bias, b = rng.integers(-50, 50, 4).astype(np.int32), rng.integers(-9, 10, (8, 3)).astype(np.int8)
    constants = {f"s{k}": v for k, v in s.items()} | {f"z{k}": np.asarray(v, dtype) for k, v in z.items()}
    constants |= {"w": w, "ws": ws, "wz": wz, "bias": bias, "b": b, "bz": np.int8(-1), "shape": np.int64([0, -1])}
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        node(
            "QLinearConv",
            ["q", "sx", "zx", "w", "ws", "wz", "sc", "zc", "bias"],
            ["c"],
            pads=[1, 0, 1, 1],
            group=groups,
        ),
        node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node(
            "QLinearMul" if seed % 2 else "QLinearAdd",
            ["p", "sc", "zc", "p", "sc", "zc", "sa", "za"],
            ["a"],
            domain="com.microsoft",
        ),
        node("QLinearConcat", ["sc", "zc", "a", "sa", "za", "p", "sc", "zc"], ["j"], axis=1, domain="com.microsoft"),
        node("Transpose", ["j"], ["t"], perm=[0, 2, 3, 1]),
        node("Reshape", ["t", "shape"], ["r"]),
        node("QLinearMatMul", ["r", "sc", "zc", "b", "sm", "bz", "sy", "zy"], ["mm"]),
        node("DequantizeLinear", ["mm", "sy", "zy"], ["y"]),
    ]
    x = (rng.normal(size=(1, 2, 3, 3)) * 3).astype(F32)
    found = results(model_of(nodes, constants, {"x": (TensorProto.FLOAT, x.shape)}, TensorProto.FLOAT), x)

    q = quantized(x, s["x"], z["x"], dtype).astype(int)
    padded = np.pad(q - z["x"], ((0, 0), (0, 0), (1, 1), (0, 1)))
    filters = w.astype(int) - np.asarray(wz, int).reshape(-1, 1, 1, 1)
    acc = np.zeros((4, 3, 3), int)
    for o in range(4):
        first = o // (4 // groups) * (2 // groups)
        for i in range(3):
            for j in range(3):
                acc[o, i, j] = (padded[0, first : first + 2 // groups, i : i + 3, j : j + 2] * filters[o]).sum() + bias[
                    o
                ]
    scales = s["x"] * ws
    c = np.vectorize(
        lambda v, o: requantized(
            int(v), scales[o] if several else scales, 0, s["c"], z["c"], dtype=dtype, scalar=not several
        )
    )(acc, np.arange(4).reshape(-1, 1, 1))
    p = c[:, :2, :2].max((1, 2)).reshape(4, 1, 1)
    real = (p - z["c"]).astype(F32) * s["c"]
    a = quantized(real * real if seed % 2 else real + real, s["a"], z["a"], dtype).astype(int)
    moved = np.vectorize(lambda v: requantized(int(v), s["a"], z["a"], s["c"], z["c"], dtype=dtype))(a)
    r = np.concatenate([moved, p]).reshape(1, 8)
    total = (r - z["c"]) @ (b.astype(int) + 1)
    expected = [
        requantized(int(v), s["c"] * s["m"], 0, s["y"], z["y"], ("TONEAREST", "int64"), dtype) for v in total[0]
    ]
    np.testing.assert_array_equal(found[0], (np.array(expected) - z["y"]).astype(F32) * s["y"])


def test_sums_are_results_of_integer_operators() -> None:
    rng = np.random.default_rng(8)
    x, w = rng.integers(0, 256, (1, 1, 4, 4)).astype(np.uint8), rng.integers(0, 256, (2, 1, 2, 2)).astype(np.uint8)
    constants = {"w": w, "xz": np.uint8(7), "wz": np.uint8(9), "b": w.reshape(4, 2)}
    nodes = [helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], auto_pad="SAME_UPPER")]
    model = model_of(nodes, constants, {"x": (TensorProto.UINT8, x.shape)}, TensorProto.INT32)
    padded = np.pad(x.astype(int) - 7, ((0, 0), (0, 0), (0, 1), (0, 1)))
    expected = np.array(
        [
            [(padded[0, 0, i : i + 2, j : j + 2] * (f[0].astype(int) - 9)).sum() for j in range(4)]
            for f in w
            for i in range(4)
        ]
    )
    np.testing.assert_array_equal(results(model, x).reshape(8, 4), expected)
    nodes = [helper.make_node("MatMulInteger", ["x", "b", "xz", "wz"], ["y"])]
    model = model_of(nodes, constants, {"x": (TensorProto.UINT8, (4, 4))}, TensorProto.INT32)
    sums = (x[0, 0].astype(int) - 7) @ (w.reshape(4, 2).astype(int) - 9)
    np.testing.assert_array_equal(results(model, x[0, 0]), sums)


def test_real_ends() -> None:
    """Operators on real numbers before the first quantized value and behind the last one."""
    node, sx, sy = helper.make_node, F32(0.03), F32(0.01)
    constants = {"b": F32([0.5, -0.25, 1.0]), "s": sx, "z": np.uint8(9), "t": sy, "u": np.uint8(3)}
    nodes = [
        node("Add", ["x", "b"], ["1"]),
        node("Relu", ["1"], ["2"]),
        node("QuantizeLinear", ["2", "s", "z"], ["3"]),
        node("QLinearLeakyRelu", ["3", "s", "z", "t", "u"], ["4"], alpha=0.5, domain="com.microsoft"),
        node("DequantizeLinear", ["4", "t", "u"], ["5"]),
        node("Mul", ["5", "b"], ["6"]),
        node("LeakyRelu", ["6"], ["y"], alpha=0.125),
    ]
    x = np.random.default_rng(2).normal(size=(5, 3)).astype(F32)
    found = results(model_of(nodes, constants, {"x": (TensorProto.FLOAT, x.shape)}, TensorProto.FLOAT), x)
    q = quantized(np.maximum(x + constants["b"], 0), sx, 9, "uint8").astype(F32)
    real = (q - 9) * sx
    stored = quantized(np.where(real > 0, real, real * F32(0.5)), sy, 3, "uint8").astype(F32)
    product = (stored - 3) * sy * constants["b"]
    np.testing.assert_array_equal(found, np.where(product > 0, product, product * F32(0.125)))


@pytest.mark.parametrize("operator", ["QLinearSigmoid", "QLinearSoftmax", "Sigmoid", "Tanh"])
def test_functions(operator: str) -> None:
    """The same as the function of bittrue.qnn.nn between dequantize and quantize."""
    of_codes = operator.startswith("QLinear")
    function = {"QLinearSoftmax": qnn.nn.softmax, "Tanh": qnn.nn.tanh}.get(operator, qnn.nn.sigmoid)
    constants = {"s": F32(0.04), "z": np.uint8(120), "t": F32(1 / 256), "u": np.uint8(0)}
    codes = np.arange(256).astype(np.uint8).reshape(16, 16)
    x = codes if of_codes else (codes.astype(F32) - 120) * F32(0.04)
    more = {"axis": -1, "opset": 13} if operator == "QLinearSoftmax" else {}
    names, domain = (["x", "s", "z", "t", "u"], "com.microsoft") if of_codes else (["x"], "")
    kind = TensorProto.UINT8 if of_codes else TensorProto.FLOAT
    nodes = [helper.make_node(operator, names, ["y"], domain=domain, **more)]
    found = results(model_of(nodes, constants, {"x": (kind, x.shape)}, kind), x)
    if not of_codes:
        np.testing.assert_array_equal(found, function(x))
        return
    real = function(qnn.dequantize(x, F32(0.04), 120))
    np.testing.assert_array_equal(found, qnn.quantize(real, F32(1 / 256), 0, out_dtype="uint8"))


@pytest.mark.parametrize("seed", range(4))
def test_products_with_an_addend(seed: int) -> None:
    rng = np.random.default_rng(seed)
    several, turned, alpha, stored = seed % 2 == 1, seed > 1, (1.0, 0.5, 1.0, 0.3)[seed], seed != 2
    x, w = rng.integers(0, 256, (3, 6)).astype(np.uint8), rng.integers(-90, 91, (6, 4)).astype(np.int8)
    ws = rng.uniform(0.01, 0.1, 4 if several else ()).astype(F32)
    wz = np.zeros(4, np.int8) if several else np.int8(-3)
    sx, sy = F32(0.02), F32(rng.uniform(0.1, 0.4))
    constants = {"w": w.T.copy() if turned else w, "ws": ws, "wz": wz, "c": rng.integers(-500, 500, 4).astype(np.int32)}
    constants |= {"s": sx, "z": np.uint8(7), "t": sy, "u": np.uint8(100)}
    names = ["x", "s", "z", "w", "ws", "wz", "c"] + (["t", "u"] if stored else [])
    nodes = [helper.make_node("QGemm", names, ["y"], domain="com.microsoft", alpha=alpha, transB=int(turned))]
    kind = TensorProto.UINT8 if stored else TensorProto.FLOAT
    found = results(model_of(nodes, constants, {"x": (TensorProto.UINT8, x.shape)}, kind), x)
    acc = (x.astype(int) - 7) @ (w.astype(int) - np.asarray(wz, int)) + constants["c"]
    scales = sx * ws * F32(alpha) if alpha != 1 else sx * ws
    if not stored:
        np.testing.assert_array_equal(found, acc.astype(F32) * scales)
        return
    for at in np.ndindex(acc.shape):
        scale = scales[at[1]] if several else scales
        wanted = requantized(int(acc[at]), scale, 0, sy, 100, ("TONEAREST", "int64"), "uint8", scalar=not several)
        assert found[at] == wanted


def test_what_is_refused_says_why() -> None:
    open_input = {"x": (TensorProto.UINT8, ("n", 4))}
    constants = {"b": np.zeros((4, 2), np.int8), "one": F32(1), "zero": np.uint8(0)}
    product = [helper.make_node("MatMulInteger", ["x", "b"], ["y"])]
    model = model_of(product, constants, open_input, TensorProto.INT32)
    with pytest.raises(InputError, match="open shape"):
        qnn.from_onnx(model)
    with pytest.raises(UnsupportedError, match="two types, which TVM's frontend refuses"):
        qnn.from_onnx(model, {"x": (3, 4)})
    known = {"x": (TensorProto.FLOAT, (3, 4))}
    model = model_of([helper.make_node("Erf", ["x"], ["y"])], {}, known, TensorProto.FLOAT)
    with pytest.raises(UnsupportedError, match=r"no form in bittrue\.qnn for Erf"):
        qnn.from_onnx(model)
    model = model_of([helper.make_node("QuantizeLinear", ["x", "one"], ["y"])], constants, known, TensorProto.UINT8)
    with pytest.raises(UnsupportedError, match="absent scale or zero point"):
        qnn.from_onnx(model)

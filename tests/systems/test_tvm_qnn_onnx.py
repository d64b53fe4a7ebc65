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
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {}, known, TensorProto.FLOAT)
    with pytest.raises(UnsupportedError, match=r"no form in bittrue\.qnn for Relu"):
        qnn.from_onnx(model)
    model = model_of([helper.make_node("QuantizeLinear", ["x", "one"], ["y"])], constants, known, TensorProto.UINT8)
    with pytest.raises(UnsupportedError, match="absent scale or zero point"):
        qnn.from_onnx(model)

"""bittrue.qnn as an interface: the RFC's calls, errors, graphs in several numerics and executors, recorded values."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue import qnn
from bittrue.arithmetic import elementary
from bittrue.errors import InputError
from bittrue.runtime.native import native_module
from support.replays import replays
from support.shared import REPOSITORY, SHARED

F32 = np.float32
EXECUTORS = ["reference", *(["native"] if native_module() is not None else [])]
GOLDEN = SHARED / "golden"
# Check values of the system's own tests, what the system gave when it was run, and what the build on PyPI gives.
RECORDED = {
    GOLDEN / "tvm_qnn": 311,
    GOLDEN / "tvm_qnn_run": 389,
    REPOSITORY / "tests" / "data" / "recorded" / "tvm_qnn": 232,
    REPOSITORY / "tests" / "data" / "recorded" / "tvm_qnn_computed": 58,
}


@pytest.mark.parametrize("folder", RECORDED, ids=["checks", "run", "wheel", "computed"])
def test_recorded_values(folder: Path) -> None:
    if not folder.is_dir():
        pytest.skip(f"the recorded vectors are not at {folder}")
    for executor, found in replays(folder, EXECUTORS).items():
        unequal = [f"{executor}, {o.case}: {o.refusal or o.first}" for o in found.outcomes if not o.equal]
        assert not unequal, unequal[:5]
        assert found.equal == RECORDED[folder]


def test_the_calls_of_the_rfc() -> None:
    """quantize, quantized_conv2d and dequantize as the text spells them, by position and by keyword."""
    data = np.array([[[[0.5, 1.0], [1.5, -2.0]]]], F32)
    kernel = np.uint8([[[[130, 128], [127, 129]]]])
    q = qnn.quantize(data, 0.25, 128, "uint8")
    assert np.array_equal(q, qnn.quantize(data=data, scale=0.25, zero_point=128, out_dtype="uint8"))
    assert q.tolist() == [[[[130, 132], [134, 120]]]]
    y = qnn.quantized_conv2d(q, kernel, 0.25, 128, 0.5, 128, 0.125, 100, "uint8")
    again = qnn.quantized_conv2d(
        quantized_data=q,
        quantized_kernel=kernel,
        input_scale=0.25,
        input_zero_point=128,
        kernel_scale=0.5,
        kernel_zero_point=128,
        output_scale=0.125,
        output_zero_point=100,
        out_dtype="uint8",
        strides=(1, 1),
        padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        channels=None,
        kernel_size=None,
        data_layout="NCHW",
        kernel_layout="OIHW",
        out_layout="",
    )
    assert y.tolist() == again.tolist() == [[[[2 * 2 + 0 * 4 - 1 * 6 + 1 * -8 + 100]]]]
    assert y.dtype == np.uint8
    x = qnn.dequantize(y, 0.125, 100, "float32")
    assert np.array_equal(x, qnn.dequantize(quantized_data=y, scale=0.125, zero_point=100, out_dtype="float32"))
    assert x.tolist() == [[[[-1.25]]]]


def test_layers_of_the_rfc_are_their_parts() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (2, 6, 7, 3)).astype(np.uint8)
    w = rng.integers(-128, 128, (2, 2, 3, 4)).astype(np.int8)
    scales = rng.uniform(0.01, 0.1, 4).astype(F32)
    same = {"data_layout": "NHWC", "kernel_layout": "HWIO", "padding": (1, 0)}
    found = qnn.quantized_conv2d(x, w, 0.02, 100, scales, 0, 0.4, -3, "int8", **same)
    acc = qnn.conv2d(x, w, 100, 0, 0.02, scales, (2, 2), 4, **same)
    parts = qnn.requantize(acc, F32(0.02) * scales, 0, 0.4, -3, axis=3)
    np.testing.assert_array_equal(found, parts)
    single = rng.integers(-128, 128, (2, 2, 3, 1)).astype(np.int8)
    depthwise = qnn.quantized_conv2d(
        x, single.transpose(0, 1, 2, 3), 0.02, 100, scales[:3], 0, 0.4, 0, "uint8", groups=3, data_layout="NHWC",
        kernel_layout="HWOI",
    )  # fmt: skip
    assert depthwise.shape == (2, 5, 6, 3)
    rows = x.reshape(2, -1)
    weights = rng.integers(0, 256, (5, rows.shape[1])).astype(np.uint8)
    np.testing.assert_array_equal(
        qnn.quantized_fully_connected(rows, weights, 0.02, 100, 0.03, 128, 4.0, 7, "uint8"),
        qnn.requantize(
            qnn.dense(rows, weights, 100, 128, 0.02, 0.03, 5), F32(0.02) * F32(0.03), 0, 4.0, 7, out_dtype="uint8"
        ),
    )
    pooled = qnn.quantized_pool2d(x, 0.5, 3, 0.5, 3, "uint8", "avg", (2, 2), (2, 2), layout="NHWC")
    blocks = x[:, :6, :6].reshape(2, 3, 2, 3, 2, 3).astype(int).sum((2, 4))
    np.testing.assert_array_equal(pooled, blocks // 4)


def network(x: qnn.Expr) -> qnn.Expr:
    """A layer with several scales, one with parameters of its own, a sum, pools and functions."""
    rng = np.random.default_rng(4)
    w = rng.integers(-127, 128, (3, 3, 3, 8)).astype(np.int8)
    scales = rng.uniform(0.001, 0.01, 8).astype(F32)
    acc = qnn.conv2d(
        x, w, 3, 0, 0.05, scales, (3, 3), 8, (2, 2), (0, 0, 1, 1), data_layout="NHWC", kernel_layout="HWIO"
    )
    acc = qnn.bias_add(acc, rng.integers(-2000, 2000, 8).astype(np.int32), axis=3)
    first = qnn.requantize(acc, F32(0.05) * scales, 0, 0.02, -128, axis=3)
    gate = qnn.sigmoid(first, 0.02, -128, 1 / 256, -128)
    joined = qnn.mul(first, gate, 0.02, -128, 1 / 256, -128, 0.015, -100)
    total = qnn.add(joined, first, 0.015, -100, 0.02, -128, 0.03, -120)
    pooled = qnn.max_pool2d(total, (2, 2), (2, 2), layout="NHWC")
    averaged = qnn.avg_pool2d(pooled, 0.03, -120, 0.025, -110, (2, 2), (1, 1), (1, 1), (1, 1))
    return qnn.concatenate([pooled, qnn.clip(pooled, -90, 50)], [0.03, 0.03], [-120, -120], 0.03, -120, 3), averaged


@pytest.mark.parametrize("numerics", [name for name in bittrue.numerics_names() if name.startswith("tvm-qnn")])
def test_a_graph_is_its_calls_on_every_executor(numerics: str) -> None:
    rounding = "TONEAREST" if numerics.endswith("tonearest") else "UPWARD"
    compute = next((name for name in ("float32", "float64") if name in numerics), "int64")
    data = np.random.default_rng(9).integers(-128, 128, (2, 17, 16, 3)).astype(np.int8)
    model = qnn.model(network(qnn.var("x", data.shape, "int8")))
    with qnn.requantize_config(rounding=rounding, compute_dtype=compute):
        expected = network(data)  # type: ignore[arg-type]
        named = qnn.model(network(qnn.var("x", data.shape, "int8")))
    for executor in EXECUTORS:
        for built, table in ((model, numerics), (named, "tvm-qnn"), (named, numerics)):
            found = list(built.prepare(numerics=table, executor=executor).run(x=data).values())
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{table} {executor}")


def test_a_graph_in_another_numerics() -> None:
    """Its operators are those of other formats, so that other runtimes' arithmetic can run it."""
    x = qnn.var("x", (1, 4, 4, 2), "uint8")
    w = np.random.default_rng(2).integers(0, 256, (2, 2, 2, 3)).astype(np.uint8)
    acc = qnn.conv2d(x, w, 128, 120, 0.1, 0.02, (2, 2), 3, data_layout="NHWC", kernel_layout="HWIO")
    acc = qnn.bias_add(acc, np.int32([5, -7, 100]), axis=3)
    y = qnn.requantize(acc, F32(0.1) * F32(0.02), 0, 0.05, 100, out_dtype="uint8")
    data = np.random.default_rng(3).integers(0, 256, (1, 4, 4, 2)).astype(np.uint8)
    for numerics in ("litert", "tvm-qnn", "tvm-qnn-float32"):
        session = qnn.model(y).prepare(numerics=numerics)
        (found,) = session.run(x=data).values()
        assert found.shape == (1, 3, 3, 3)
        assert [step.operator for step in session.plan.steps] == ["conv"]


def test_one_tensor_may_have_several_parameters() -> None:
    data = np.int8([[1, 2, 3]])
    x = qnn.var("x", (1, 3), "int8")
    outputs = [qnn.dequantize(x, 0.5, 0), qnn.dequantize(x, 0.25, 1), qnn.requantize(x, 2.0, 0, 1.0, 0)]
    found = list(qnn.model(outputs).prepare().run(x=data).values())
    assert [y.tolist() for y in found] == [[[0.5, 1.0, 1.5]], [[0.0, 0.25, 0.5]], [[2, 4, 6]]]


@pytest.mark.parametrize("count", [None, 1, 3])
def test_computed_scales(count: int | None) -> None:
    """Scales and zero points that are inputs of the graph give what constants give, those of quantize included."""
    rng = np.random.default_rng(6)
    data = (rng.normal(size=(2, 3, 4)) * 60).astype(F32)
    shape = () if count is None else (count,)
    scale, point = np.asarray(rng.uniform(0.2, 2, shape), F32), np.asarray(rng.integers(-9, 9, shape), np.int32)
    x, s, z = qnn.var("x", data.shape), qnn.var("s", shape), qnn.var("z", shape, "int32")
    for dtype in ("int8", "uint8", "int16", "uint16", "int32"):
        q = qnn.quantize(x, s, z, axis=1, out_dtype=dtype)
        outputs = [q, qnn.dequantize(q, s, z, axis=1), qnn.dequantize(q, s, z, axis=1, out_dtype="float16")]
        for executor in EXECUTORS:
            session = qnn.model(outputs).prepare(executor=executor)
            found = list(session.run(x=data, s=scale, z=point).values())
            quantized = qnn.quantize(data, scale, point, axis=1, out_dtype=dtype)
            np.testing.assert_array_equal(found[0], quantized)
            np.testing.assert_array_equal(found[1], qnn.dequantize(quantized, scale, point, axis=1))
            np.testing.assert_array_equal(
                found[2], qnn.dequantize(quantized, scale, point, axis=1, out_dtype="float16")
            )
    with pytest.raises(InputError, match="input_scale"):
        qnn.requantize(np.int32([1]), s, 0, 1.0, 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("of_kernel", [7, [1, -2, 3, 0]])
def test_computed_zero_points(dtype: str, of_kernel: Any) -> None:
    """Layers whose zero points are inputs of the graph give what constants give: 16-bit data minus theirs wraps."""
    rng = np.random.default_rng(7)
    info, kernel = np.iinfo(dtype), rng.integers(-128, 128, (4, 3, 2, 3)).astype(np.int8)
    point, points = np.int32(info.min), np.int32(of_kernel)
    scales = F32([0.5, 0.25, 1, 2])

    def requantized(acc: Any, axis: int) -> Any:
        return qnn.requantize(acc, scales, 0, 900.0, 3, axis=axis)

    def convolution(x: Any, z_x: Any, z_w: Any) -> Any:
        layer = {"kernel_size": (2, 3), "channels": 4, "padding": (1, 0)}
        return requantized(qnn.conv2d(x, kernel, z_x, z_w, 1.0, scales, **layer), 1)

    def product(x: Any, z_x: Any, z_w: Any) -> Any:
        return requantized(qnn.dense(x, kernel.reshape(4, 18), z_x, z_w, 1.0, scales, units=4), 1)

    def batches(x: Any, z_x: Any, z_w: Any) -> Any:
        return qnn.batch_matmul(x, kernel.astype(dtype).reshape(2, 6, 6), z_x, z_w, 1.0, 1.0)

    calls: list[tuple[Any, tuple[int, ...]]] = [(convolution, (2, 3, 5, 6)), (product, (5, 18))]
    if dtype != "int16" and not points.ndim:
        calls.append((batches, (2, 4, 6)))
    for call, shape in calls:
        x = rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
        given = {"x": x, "z_x": point, "z_w": points}
        model = qnn.model(call(*(qnn.var(name, value.shape, value.dtype) for name, value in given.items())))
        for executor in EXECUTORS:
            (found,) = model.prepare(executor=executor).run(**given).values()
            np.testing.assert_array_equal(found, call(x, point, points))


def test_one_scale_beside_a_vector_of_one() -> None:
    """Scales of a product that belong to an axis of size 1 may stand beside one of the whole tensor."""
    x, y = np.arange(-8, 8, dtype=np.int8).reshape(2, 1, 8), np.arange(8, dtype=np.int8).reshape(1, 1, 8)
    found = qnn.mul(x, y, [0.5], 1, 0.25, 2, 1.0, 3, 1, 1)
    np.testing.assert_array_equal(found, qnn.mul(x, y, [0.5], 1, [0.25], 2, 1.0, 3, 1, 1))
    with pytest.raises(InputError, match="rhs_axis"):
        qnn.mul(np.zeros((1, 2), np.int8), np.zeros((1, 2), np.int8), [0.5, 1], 0, 0.25, 0, 1.0, 0, 1, 1)


@pytest.mark.parametrize("compute", ["int64", "float32", "float64"])
@pytest.mark.parametrize("zero_point", [0, 7, 2**24 + 1, -(2**31), 2**31 - 1])
def test_executors_agree_on_any_zero_point(zero_point: int, compute: str) -> None:
    rng = np.random.default_rng(5)
    kinds = [("int8", "UPWARD"), ("int16", "TONEAREST"), *product(("int32", "int64"), ("UPWARD", "TONEAREST"))]
    for source, rounding in kinds:
        info = np.iinfo(source)
        data = rng.integers(info.min, info.max, 300, dtype=source, endpoint=True) >> rng.integers(0, info.bits, 300)
        data = np.concatenate([data, [info.min, info.min + 1, info.max, info.max - 1]]).astype(source)
        x = qnn.var("x", data.shape, source)
        outputs = [
            qnn.requantize(x, 0.3, zero_point, 0.7, point, -1, rounding, compute, target)
            for target in ("int8", "int16", "int32")
            for point in (0, -5, 2**24 + 3)
        ]
        outputs.append(qnn.requantize(x, F32(rng.uniform(0.1, 2, 304)), zero_point, 0.7, 3, 0, rounding, compute))
        sessions = [qnn.model(outputs).prepare(executor=e) for e in EXECUTORS]
        assert "on the reference" not in str(sessions[-1].plan)
        results = [list(session.run(x=data).values()) for session in sessions]
        for found in results[1:]:
            for one, other in zip(results[0], found, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("zero_point", [0, 5, -7, 70000, 2**24 + 1, -(2**31)])
def test_executors_agree_on_quantization(dtype: str, zero_point: int) -> None:
    rng = np.random.default_rng(3)
    odd = F32([np.nan, np.inf, -np.inf, 3e38])
    data = (
        np.concatenate([np.arange(-400, 400) * F32(0.25), rng.normal(size=796) * 1e3, odd]).astype(F32).reshape(-1, 4)
    )
    x = qnn.var("x", data.shape)
    for scale in (0.5, 0.1, F32([0.3, 0.7, 1e-30, 2.0])):
        model = qnn.model(qnn.quantize(x, scale, zero_point, axis=1, out_dtype=dtype))
        results = [next(iter(model.prepare(executor=e).run(x=data).values())) for e in EXECUTORS]
        for found in results[1:]:
            np.testing.assert_array_equal(results[0], found)


U8, S8 = np.zeros((1, 2, 4, 4), np.uint8), np.zeros((1, 2, 4, 4), np.int8)
KERNEL = np.zeros((3, 2, 2, 2), np.uint8)


def conv(**changed: Any) -> Callable[[], Any]:
    arguments: dict[str, Any] = {
        "data": U8, "kernel": KERNEL, "input_zero_point": 0, "kernel_zero_point": 0, "input_scale": 1.0,
        "kernel_scale": 1.0, "kernel_size": (2, 2), "channels": 3,
    }  # fmt: skip
    return lambda: qnn.conv2d(**{**arguments, **changed})


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: qnn.quantize(np.zeros(3), 1.0, 0), "data"),
        (lambda: qnn.quantize(np.zeros(3, F32), 0.0, 0), "output_scale"),
        (lambda: qnn.quantize(np.zeros(3, F32), math.nan, 0), "output_scale"),
        (lambda: qnn.quantize(np.zeros(3, F32), 1.0, 0.5), "output_zero_point"),
        (lambda: qnn.quantize(np.zeros(3, F32), 1.0, 2**31), "output_zero_point"),
        (lambda: qnn.quantize(np.zeros(3, F32), [1.0, 2.0], 0), "output_scale"),
        (lambda: qnn.quantize(np.zeros(3, F32), [1.0] * 3, 0, axis=1), "axis"),
        (lambda: qnn.quantize(np.zeros(3, F32), 1.0, 0, "float32"), "out_dtype"),
        (lambda: qnn.quantize(np.zeros(3, F32), 1.0, 0, "nonsense"), "out_dtype"),
        (lambda: qnn.quantize(np.zeros(3, F32), 1.0), "output_zero_point"),
        (lambda: qnn.quantize(np.zeros(3, F32), 1.0, 0, scale=1.0), "output_scale"),
        (lambda: qnn.dequantize(np.zeros(3, F32), 1.0, 0), "data"),
        (lambda: qnn.dequantize(np.zeros(3, np.int8), 1.0, 0, out_dtype="int8"), "out_dtype"),
        (lambda: qnn.requantize(np.zeros(3, F32), 1.0, 0, 1.0, 0), "data"),
        (lambda: qnn.requantize(np.zeros(3, np.int32), 1.0, 0, 0.0, 0), "output_scale"),
        (lambda: qnn.requantize(np.zeros(3, np.int32), 1.0, 0, [1.0], 0), "output_scale"),
        (lambda: qnn.requantize(np.zeros(3, np.int32), 1.0, 0, 1.0, 0, rounding="EVEN"), "rounding"),
        (lambda: qnn.requantize(np.zeros(3, np.int32), 1.0, 0, 1.0, 0, compute_dtype="int32"), "compute_dtype"),
        (lambda: qnn.requantize(np.zeros(3, np.int32), 1.0, 0, 1.0, 0, out_dtype="uint16"), "out_dtype"),
        (lambda: qnn.requantize(np.zeros(3, np.int32), qnn.var("s", ()), 0, 1.0, 0), "input_scale"),
        (lambda: qnn.requantize_config(round="UPWARD"), "requantize_config"),
        (lambda: qnn.requantize_config(rounding="DOWN"), "rounding"),
        (conv(data=np.zeros((1, 2, 4, 4), F32)), "data"),
        (conv(data=U8[0]), "data"),
        (conv(kernel=KERNEL[:, :1]), "groups"),
        (conv(channels=4), "kernel"),
        (conv(kernel_size=(3, 3)), "kernel"),
        (conv(kernel_size=None), "kernel_size"),
        (conv(strides=(0, 1)), "strides"),
        (conv(strides=(1, 1, 1)), "strides"),
        (conv(padding=(1, 2, 3)), "padding"),
        (conv(padding=-1), "padding"),
        (conv(padding="same"), "padding"),
        (conv(dilation=(4, 1)), "kernel_size"),
        (conv(groups=0), "groups"),
        (conv(groups=3), "groups"),
        (conv(data_layout="NCHWc"), "data_layout"),
        (conv(kernel_layout="IOHW"), "kernel_layout"),
        (conv(out_layout="CHWN"), "out_layout"),
        (conv(out_dtype="int8"), "out_dtype"),
        (conv(kernel_scale=[1.0, 2.0]), "kernel_scale"),
        (conv(input_zero_point=[0, 0]), "input_zero_point"),
        # What the system compiles for no CPU.
        (conv(kernel=np.zeros((2, 2, 2, 3), np.uint8), kernel_layout="HWIO"), "kernel_layout"),
        (conv(data=U8.transpose(0, 2, 3, 1), data_layout="NHWC"), "kernel_layout"),
        (conv(data_layout="NHWC", kernel_layout="HWOI", data=np.zeros((1, 4, 4, 3), np.uint8)), "kernel"),
        (
            conv(data_layout="NHWC", kernel_layout="HWOI", data=U8, kernel=np.zeros((2, 2, 3, 4), np.uint8)),
            "kernel_layout",
        ),
        (conv(out_layout="NHWC"), "out_layout"),
        (
            conv(groups=2, kernel=np.zeros((2, 2, 2, 2), np.uint8), channels=4, kernel_zero_point=[0] * 4),
            "kernel_zero_point",
        ),
        (lambda: qnn.conv2d_transpose(U8, KERNEL[:2], 0, 0, 1.0, 1.0, dilation=(2, 1)), "dilation"),
        (lambda: qnn.clip(U8, -1, 6), "a_min"),
        (lambda: qnn.requantize(S8, 0.5, 0, 1.0, 0, axis=4), "axis"),
        (lambda: qnn.requantize(np.int8(3), 0.5, 1, 1.0, 0), "data"),
        (lambda: qnn.leaky_relu(np.int8(3), 0.1, 0.5, 0, 1.0, 0), "x"),
        (lambda: qnn.add(np.int8(3), np.int8(3), 0.5, 1, 1.0, 0, 1.0, 0), "lhs"),
        (lambda: qnn.subtract(np.int8(3), np.int8(3), 1.0, 0, 0.5, 1, 1.0, 0), "rhs"),
        (lambda: qnn.add(U8[0], U8[0], 0.5, 1, 1.0, 0, 1.0, 0, 3, 3), "lhs_axis"),
        (lambda: qnn.mul(U8[0], U8[0], 0.5, 1, 1.0, 0, 1.0, 0, -4, -4), "lhs_axis"),
        (lambda: qnn.add(U8[0, 0, 0], U8[0, 0, 0], 0.5, 1, 1.0, 0, 1.0, 0, -2, -2), "lhs_axis"),
        (lambda: qnn.max_pool2d(U8, (2, 2), out_layout="NHWC"), "out_layout"),
        (lambda: qnn.avg_pool2d(U8, 1.0, 0, 1.0, 0, (2, 2), (1, 1), (0, 0), (1, 1), out_layout="NCHW"), "out_layout"),
        (lambda: qnn.max_pool2d(U8[:, :1], (2, 1), layout="NHWC", ceil_mode=True), "data"),
        (lambda: qnn.mul(U8, U8, [1.0] * 4, 0, [1.0] * 4, 0, 1.0, 0, 3, -1), "rhs_axis"),
        (lambda: qnn.dequantize(np.int8(3), [0.5], 0), "axis"),
        (lambda: qnn.simulated_quantize(F32(3), 0.5, 0), "axis"),
        (lambda: qnn.dense(U8, KERNEL, 0, 0, 1.0, 1.0, 3), "data"),
        (lambda: qnn.dense(U8[0, 0], U8[0, 0, :, :3], 0, 0, 1.0, 1.0, 4), "weight"),
        (lambda: qnn.batch_matmul(U8[0], U8[0, :, :, :2], 0, 0, 1.0, 1.0), "y"),
        (lambda: qnn.bias_add(np.zeros((2, 3), np.int32), np.zeros(2, np.int32)), "bias"),
        (lambda: qnn.add(U8, S8, 1.0, 0, 1.0, 0, 1.0, 0), "rhs"),
        (lambda: qnn.add(U8, U8[:, :, :3], 1.0, 0, 1.0, 0, 1.0, 0), "rhs"),
        (lambda: qnn.mul(U8, U8, [1.0, 2.0], 0, [1.0] * 4, 0, 1.0, 0, 1, 2), "rhs_axis"),
        (lambda: qnn.concatenate(U8, [1.0], [0], 1.0, 0, 0), "data"),
        (lambda: qnn.concatenate([U8, U8], [1.0], [0, 0], 1.0, 0, 0), "input_scales"),
        (lambda: qnn.concatenate([U8, U8], [1.0, 1.0], [0, 0], 1.0, 0, "0"), "axis"),
        (lambda: qnn.concatenate([U8, U8[:, :1]], [1.0, 1.0], [0, 0], 1.0, 0, 0), "data"),
        (lambda: qnn.softmax(S8, 1.5, 0, 1.0, 0), "scale"),
        (lambda: qnn.softmax(U8, 0.5, 0, 1.0, 0), "x"),
        (lambda: qnn.avg_pool2d(U8, 1.0, 0, 1.0, 0, (9, 9), (1, 1), 0, 1), "pool_size"),
        (lambda: qnn.max_pool2d(U8, (2, 2), layout="NHCW"), "layout"),
        (lambda: qnn.quantized_conv2d(U8, KERNEL, 1.0, 0, 1.0, 0, 1.0, 0, "int16"), "out_dtype"),
        (lambda: qnn.simulated_quantize(np.zeros(2, F32), 1.0, 0, out_dtype="int4"), "out_dtype"),
        (lambda: qnn.parameters_from_range(1.0, 0.0), "maximum"),
        (lambda: qnn.parameters_from_range(0.5, 1.0), "minimum"),
        (lambda: qnn.parameters_from_range(-1.0, 1.0, "uint8", "caffe"), "framework"),
        (lambda: qnn.var("", (1,)), "qnn.var"),
        (lambda: qnn.var("x", (-1,)), "qnn.var"),
        (lambda: qnn.model([]), "qnn.model"),
        (lambda: qnn.model([np.zeros(3)]), "qnn.model"),  # type: ignore[list-item]
        (lambda: bool(qnn.var("x", (1,))), "symbolic"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], Any], argument: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert argument in str(caught.value)


def test_every_output_has_a_name() -> None:
    """Also where several are one tensor."""
    x = qnn.var("x", (3,), "int8")
    y = qnn.clip(x, 0, 5)
    found = qnn.model([y, qnn.nn.transpose(y, (0,)), y]).prepare().run(x=np.int8([1, -2, 9]))
    assert [one.tolist() for one in found.values()] == [[1, 0, 5]] * 3


def test_vectors_of_one() -> None:
    """They serve all slices, with the arithmetic of vectors."""
    a, b = np.uint8([1, 2, 3, 250]), np.uint8([7])
    (found,) = (
        qnn.model(qnn.mul(qnn.var("a", (4,), "uint8"), b, 0.28, 255, np.float32([0.15]), 0, 0.25, 0)).prepare().run(a=a)
    ).values()
    assert found.tolist() == [0, 0, 0, 0]
    same = [qnn.dense(np.int8([[1, 2]]), np.int8([[3, 4], [5, 6]]), 1, z, 0.5, 0.5, 2).tolist() for z in (4, [4])]
    assert same == [[[0, 2]]] * 2


def test_functions_without_a_value_give_the_largest_one() -> None:
    """As a running TVM does."""
    assert qnn.sqrt(np.int8([4, -1, 0]), 1.0, 0, 1.0, 0).tolist() == [2, 127, 0]
    assert qnn.sqrt(np.uint8([4, 2]), 1.0, 3, 1.0, 0).tolist() == [1, 255]
    x = qnn.var("x", (3,), "int8")
    for executor in EXECUTORS:
        session = qnn.model(qnn.log(x, 1.0, 0, 0.1, 0)).prepare(executor=executor)
        assert session.run(x=np.int8([1, -3, 0]))["qnn.log"].tolist() == [0, 127, -128]


def test_what_has_no_value_is_refused() -> None:
    with pytest.raises(InputError, match="shift"):
        qnn.leaky_relu(np.int8([1]), 1.0, 0.5, 0, 0.5, 0)
    with pytest.raises(InputError, match="below"):
        qnn.requantize(np.int32([1]), 1e-20, 0, 1e20, 0)


@pytest.mark.parametrize("executor", ["native", "reference"])
def test_functions_of_real_numbers(executor: str) -> None:
    """Every step rounded to binary32; a quotient by 6 is a product by its inverse, as the system compiles it."""
    x, one = np.linspace(-9, 9, 1999, dtype=np.float32), np.float32(1)
    gate = np.clip(x + np.float32(3), np.float32(0), np.float32(6))
    far, near = elementary.exp(np.float32(-2) * abs(x)), elementary.exp(-x)
    expected = {
        qnn.nn.hard_swish: (x * gate) * np.float32(1 / 6),
        qnn.nn.sigmoid: one / (one + near),
        qnn.nn.tanh: np.copysign((one - far) / (one + far), x),
    }
    assert (expected[qnn.nn.hard_swish] != x * gate / np.float32(6)).any()
    for function, wanted in expected.items():
        (found,) = qnn.model(function(qnn.var("x", x.shape))).prepare("tvm-qnn", executor=executor).run(x).values()
        assert found.tobytes() == wanted.tobytes(), function.__name__


def test_configurations_nest_and_end() -> None:
    tie = np.int32([-1])
    assert qnn.requantize(tie, 0.5, 0, 1.0, 0).tolist() == [0]
    with qnn.requantize_config(rounding="TONEAREST") as outer:
        assert qnn.current_requantize_config() is outer
        with qnn.requantize_config(rounding="UPWARD", compute_dtype="float32"):
            assert qnn.requantize(tie, 0.5, 0, 1.0, 0).tolist() == [0]
            assert qnn.requantize(tie, 0.5, 0, 1.0, 0, rounding="TONEAREST").tolist() == [-1]
        assert qnn.requantize(tie, 0.5, 0, 1.0, 0).tolist() == [-1]
    assert qnn.current_requantize_config().rounding == "None"
    # The zero point comes before the rounding of reals: the tie has another sign.
    with qnn.requantize_config(rounding="TONEAREST", compute_dtype="float32"):
        assert qnn.requantize(tie, 0.5, 0, 1.0, 1).tolist() == [1]
    with qnn.requantize_config(rounding="TONEAREST", compute_dtype="int64"):
        assert qnn.requantize(tie, 0.5, 0, 1.0, 1).tolist() == [0]


@pytest.mark.parametrize("seed", range(200))
def test_parameters_from_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = -float(rng.exponential(3)), float(rng.exponential(3))
    if seed % 5 == 0:
        low = 0.0
    kind = str(rng.choice(["int8", "uint8", "int16"]))
    info = np.iinfo(kind)
    narrow = bool(rng.integers(2))
    scale, point = qnn.parameters_from_range(low, high, kind, narrow_range=narrow)
    ends = info.min + narrow, info.max
    real = (high - low) / (ends[1] - ends[0])
    assert scale == F32(real)
    assert ends[0] <= point <= ends[1]
    assert abs(point - (ends[0] - low / real)) <= 0.5 + 1e-6
    if kind != "int16":
        found, zero = qnn.parameters_from_range(low, high, kind, "mxnet")
        levels = F32(127.5 if kind == "int8" else 255.5)
        assert found == F32(1) / (levels / F32(max(-low, high)))
        assert zero == 0

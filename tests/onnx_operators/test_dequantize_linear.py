"""DequantizeLinear: random one-node models against ONNX Runtime, every version, and the specification's vectors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from onnx_operators.test_quantize_linear import F16, F32, FLOATS, INTEGERS, limits, places
from support.onnx_models import MICROSOFT, Checks, check, scale, single
from support.onnx_narrow import run_memory
from support.onnx_vectors import check_vector, vectors

S32 = np.dtype(np.int32)
NARROWER = [np.dtype(getattr(ml_dtypes, t)) for t in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")]


def values(rng: np.random.Generator, source: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Anything that the type holds."""
    if source in FLOATS:
        return np.asarray(rng.integers(0, 256, shape)).astype(np.uint8).view(source)
    low, high = (-(2**31), 2**31 - 1) if source == S32 else limits(source)
    ends = np.where(rng.random(shape) < 0.5, low, high)
    return np.asarray(np.where(rng.random(shape) < 0.1, ends, rng.integers(low, high + 1, shape))).astype(source)


def model(rng: np.random.Generator, source: np.dtype, opset: int, domain: str = "") -> tuple[bytes, list[np.ndarray]]:
    shape = tuple(int(v) for v in rng.integers(0 if rng.random() < 0.03 else 1, 8, rng.integers(0, 5)))
    scale_shape, attributes = places(rng, shape)
    if domain or opset < 21:
        attributes.pop("block_size", None)
    real = F32 if rng.random() < 0.5 else F16
    scales = scale(rng, scale_shape).astype(real)
    if rng.random() < 0.1:
        # The sign of NaN times NaN is a recorded limit.
        last = 0.5 if source in FLOATS else np.nan
        scales = np.asarray(rng.choice(np.array([0, -1, np.inf, -np.inf, 1e-40, 6e4, last], real), scale_shape))
    zero: np.ndarray | None = values(rng, source, scale_shape)
    if source in FLOATS and rng.random() < 0.95:
        zero = np.zeros(scale_shape, source)
    if rng.random() < 0.2:
        zero = None
    result = real
    if opset >= 23 and not domain and rng.random() < 0.4:
        result = F32 if rng.random() < 0.5 else F16
        attributes["output_dtype"] = int(helper.np_dtype_to_tensor_dtype(result))
    inputs = {"x": values(rng, source, shape), "scale": scales, "zero": zero}
    # Narrow types cannot be fed.
    narrow = source not in INTEGERS[:4] and source != S32
    constants = [name for name in ("zero", "scale") if rng.random() < 0.8 or (narrow and name == "zero")]
    kind = helper.np_dtype_to_tensor_dtype(result)
    return single(
        "DequantizeLinear",
        inputs,
        [kind],
        attributes,
        constants=constants + ["x"] * narrow,
        opset=opset,
        domain=domain,
    )


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, 60)
    for rng in checks:
        source = [*INTEGERS, S32, *FLOATS][rng.integers(13)]
        opset = 25 if source in INTEGERS[6:] else int(rng.choice([21, 23, 24, 25]))
        content, feeds = model(rng, source, opset)
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))
    assert set(checks.outcomes) == {"equal", "refused"}


def test_random_models_of_the_contributed_operator(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        content, feeds = model(rng, [*INTEGERS[:6], S32][rng.integers(7)], 21, MICROSOFT)
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))
    assert "equal" in checks.outcomes


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("opset", range(10, 27))
def test_every_opset_and_type(opset: int) -> None:
    """What ONNX Runtime accepts and refuses: all types of x, scale and output, all quantized values of 8-bit floats."""
    outcomes = []
    reals = [F32, F16, np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e8m0fnu)]
    for source in (*INTEGERS, S32, *FLOATS, *NARROWER):
        x = np.arange(256, dtype=np.uint8).view(source) if source in FLOATS else np.ones(3).astype(source)
        for scale_type in reals:
            for result in reals[:3]:
                attributes = {"output_dtype": int(helper.np_dtype_to_tensor_dtype(result))} if opset > 22 else {}
                inputs = {"x": x, "scale": np.ones(()).astype(scale_type), "zero": None}
                kind = helper.np_dtype_to_tensor_dtype(result)
                content, feeds = single(
                    "DequantizeLinear", inputs, [kind], attributes, constants=["x", "scale"], opset=opset
                )
                outcome = check(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f), native=False)
                outcomes.append(outcome)
    sources = 3 + (4 if opset > 18 else 0) + (4 if opset > 20 else 0) + (2 if opset > 24 else 0)
    assert outcomes.count("equal") == sources * (4 if opset > 22 else 2 if opset > 18 else 1)


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 24, 25, 28])
@pytest.mark.parametrize(("name", "value", "since"), [("axis", 0, 13), ("block_size", 0, 21), ("output_dtype", 1, 23)])
def test_attributes_come_with_versions(opset: int, name: str, value: int, since: int) -> None:
    inputs = {"x": np.ones(3, np.uint8), "scale": np.float32(0.5)}
    content, feeds = single("DequantizeLinear", inputs, [TensorProto.FLOAT], {name: value}, opset=opset)
    if opset < since:
        with pytest.raises(bittrue.UnsupportedError, match=f"'{name}' is not known"):
            bittrue.load(content)
        return
    assert bittrue.load(content).graph.nodes[0].version == opset
    assert bittrue.load(content).prepare("onnx").run(*feeds)["y0"].tolist() == [0.5, 0.5, 0.5]


def test_errors_name_the_node_and_what_to_do() -> None:
    x = np.ones((2, 3), np.uint8)
    for inputs, attributes, message in (
        ({"x": x, "scale": np.ones(4, np.float32)}, {}, r"node 0 \(DequantizeLinear.*shape \[4\].*axis 1"),
        ({"x": x, "scale": np.ones(3, np.float32)}, {"axis": 2}, "axis 2 is outside a tensor of rank 2"),
        ({"x": x, "scale": np.ones((2, 3), np.float32)}, {"block_size": 2}, r"blocks of 2 on axis 1 .* need \[2, 2\]"),
        ({"x": x, "scale": np.ones(3, np.float32), "zero": np.zeros(2, np.uint8)}, {}, r"zero point 'zero' has shape"),
        ({"x": x, "scale": np.float32(1)}, {"block_size": -2}, "block_size -2 is negative"),
        ({"x": x.astype(np.int32), "scale": np.float32(1), "zero": np.int32(5)}, {}, "a zero point is 5"),
    ):
        content, _ = single("DequantizeLinear", inputs, [1], attributes, constants=["scale", "zero"])
        with pytest.raises(bittrue.InvalidModelError, match=message):
            bittrue.load(content).prepare("onnx")
    late = {"x": x.astype(np.int32), "scale": np.float32(1), "zero": np.int32(5)}
    content, feeds = single("DequantizeLinear", late, [1])
    with pytest.raises(bittrue.RunError, match="a zero point is 5"):
        bittrue.load(content).prepare("onnx").run(*feeds)


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("kind", ["UINT2", "INT2", "UINT4", "INT4", "FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2"])
def test_packed_constants(kind: str, raw: bool) -> None:
    """Both ways in which files hold elements that are narrower than a byte, and lengths that fill no last byte."""
    number = getattr(TensorProto, kind)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    bits = int(kind.removeprefix("U").removeprefix("INT").removeprefix("FLOAT")[0])
    for size in (1, 2, 3, 5, 8, 11):
        quantized = (np.arange(size) * 7 + 3) % (1 << bits)
        q = (quantized + limits(dtype)[0]).astype(dtype) if "INT" in kind else quantized.astype(np.uint8).view(dtype)
        proto = helper.make_tensor("x", number, [size], q)
        if raw:
            proto = numpy_helper.from_array(q, "x")
            assert proto.HasField("raw_data")
        graph = helper.make_graph(
            [helper.make_node("DequantizeLinear", ["x", "scale"], ["y"])],
            "graph",
            [],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [proto, numpy_helper.from_array(np.float32(2), "scale")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)])
        found = bittrue.load(model.SerializeToString()).prepare("onnx").run()["y"]
        assert found.tolist() == (2 * q.astype(np.float32)).tolist()


@pytest.mark.parametrize("folder", vectors("dequantizelinear.*"))
def test_vectors_of_the_specification(folder: Any) -> None:
    check_vector(folder)

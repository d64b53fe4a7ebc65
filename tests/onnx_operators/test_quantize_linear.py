"""QuantizeLinear: random one-node models against ONNX Runtime, every version, and the specification's vectors."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.defs
import pytest
from onnx import TensorProto, helper

import bittrue
from bittrue.arithmetic.narrow_float import FORMATS
from support.onnx_models import MICROSOFT, Checks, check, integers, natively, scale, single, zero_point
from support.onnx_narrow import run_memory
from support.onnx_vectors import check_vector, vectors

F32, F16 = np.dtype(np.float32), np.dtype(np.float16)
INTEGERS = [np.dtype(t) for t in (np.uint8, np.int8, np.uint16, np.int16)]
INTEGERS += [np.dtype(getattr(ml_dtypes, t)) for t in ("uint4", "int4", "uint2", "int2")]
FLOATS = [np.dtype(getattr(ml_dtypes, f"float8_{t}")) for t in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")]
_SCHEMA_NAMES = {"float32": "float"}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3e9, -3e9, 2.0**31, -(2.0**31), 1e38, -1e38]


def limits(dtype: np.dtype) -> tuple[int, int]:
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def places(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[tuple[int, ...], dict[str, int]]:
    """Shape of the scale and attributes: per tensor, per axis or blocked; sometimes they do not fit."""
    axis = int(rng.integers(-len(shape), len(shape))) if shape else 0
    # The runtime crashes on blocks of an empty tensor.
    kind = rng.integers(3 if 0 not in shape else 2) if shape else 0
    if kind == 0:
        return ((), (1,))[rng.integers(2)], {} if rng.random() < 0.7 else {"axis": axis}
    size = shape[axis]
    if kind == 1:
        return (size + int(rng.random() < 0.03),), {"axis": axis}
    block = int(rng.integers(1, size + 3))
    wanted = list(shape)
    wanted[axis] = -(-size // block) + int(rng.random() < 0.03)
    return tuple(wanted), {"axis": axis, "block_size": block}


def numbers(rng: np.random.Generator, scales: np.ndarray, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
    """Multiples of half a scale, one unit in the last place beside them, anything, and special values."""
    step = np.resize(scales.astype(np.float32), shape) if scales.size else np.ones(shape, np.float32)
    halves = np.float32(rng.integers(2 * low - 6, 2 * high + 6, shape)) / np.float32(2) * step
    beside = np.nextafter(halves, np.where(rng.random(shape) < 0.5, np.inf, -np.inf).astype(np.float32))
    smooth = (rng.standard_normal(shape) * (high - low)).astype(np.float32) * step
    drawn = np.choose(rng.integers(3, size=shape), [halves, beside, smooth])
    special = np.where(rng.random(shape) < 0.5, drawn, rng.choice(np.float32(SPECIAL), shape))
    return np.asarray(special if rng.random() < 0.3 else drawn, np.float32)


def model(rng: np.random.Generator, target: np.dtype, real: np.dtype, **more: Any) -> tuple[bytes, list[np.ndarray]]:
    shape = tuple(int(v) for v in rng.integers(0 if rng.random() < 0.03 else 1, 8, rng.integers(0, 5)))
    scale_shape, attributes = places(rng, shape)
    integer = target in INTEGERS
    low, high = limits(target) if integer else (-500, 500)
    scales = scale(rng, scale_shape).astype(real)
    if rng.random() < 0.05:
        scales = np.asarray(rng.choice(np.array([0, -1, np.inf, np.nan, 1e-40], real), scale_shape))
    with np.errstate(over="ignore"):
        x = numbers(rng, scales, low, high, shape).astype(real)
    points = rng.choice([low, high, 0, (low + high + 1) // 2, int(rng.integers(low, high + 1))], scale_shape)
    zero = (
        np.asarray(points).astype(target) if integer else np.asarray(rng.choice([0, 0, 2], scale_shape)).astype(target)
    )
    kind = helper.np_dtype_to_tensor_dtype(target)
    inputs: dict[str, np.ndarray | None] = {"x": x, "scale": scales, "zero": zero}
    if rng.random() < 0.2:
        inputs["zero"] = None
        if target != np.uint8 and "domain" not in more and more.get("opset", 21) >= 21:
            attributes["output_dtype"] = int(kind)
    if not integer:
        attributes["saturate"] = int(rng.integers(2))
    if more.get("domain") == MICROSOFT or more.get("opset", 21) < 21:
        attributes.pop("block_size", None)
    if more.get("opset", 21) < 13:
        attributes.pop("axis", None)
    if more.get("opset", 21) < 21 and inputs["zero"] is None:
        kind = TensorProto.UINT8
    if more.get("opset", 21) >= 23 and rng.random() < 0.3:
        attributes["precision"] = int(rng.choice([TensorProto.FLOAT, TensorProto.FLOAT16]))
    # Zero points of narrow types cannot be fed.
    plain = target in INTEGERS[:4]
    constants = ["zero"] if not plain or rng.random() < 0.8 else []
    constants += ["scale"] if rng.random() < 0.8 else []
    return single("QuantizeLinear", inputs, [kind], attributes, constants=constants, **more)


def test_random_models_of_integers(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        target = INTEGERS[rng.integers(8)]
        opset = 25 if target in INTEGERS[6:] else int(rng.choice([21, 23, 24, 25]))
        content, feeds = model(rng, target, F32 if rng.random() < 0.6 else F16, opset=opset)
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))
    assert set(checks.outcomes) == {"equal", "refused"}


def test_random_models_of_older_versions(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=50)
    for rng in checks:
        opset = int(rng.choice([10, 13, 19]))
        content, feeds = model(rng, INTEGERS[rng.integers(2)], F16 if opset == 19 else F32, opset=opset)
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))
    assert set(checks.outcomes) == {"equal", "refused"}


def test_random_models_of_floats(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        target = FLOATS[rng.integers(4)]
        content, feeds = model(rng, target, F32 if rng.random() < 0.6 else F16, opset=int(rng.choice([21, 25])))
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))
    assert "equal" in checks.outcomes


def test_random_models_of_the_contributed_operator(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        target = INTEGERS[rng.integers(6)]
        content, feeds = model(rng, target, F32 if rng.random() < 0.6 else F16, domain=MICROSOFT)
        checks.add(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f))
    assert "equal" in checks.outcomes


@pytest.mark.parametrize("target", ["uint8", "int8", "uint16", "int16", "uint4", "int4", "uint2", "int2"])
def test_ties_and_their_neighbours_at_every_zero_point(target: str) -> None:
    """x is a multiple of half a scale, or one unit in the last place beside it; the ends of the type are among them."""
    dtype = next(t for t in INTEGERS if t.name == target)
    low, high = limits(dtype)
    rng = np.random.default_rng(5)
    points = range(low, high + 1) if high - low < 256 else [low, low + 1, -1, 0, 1, high - 1, high]
    for zero in (p for p in points if low <= p <= high):
        step = scale(rng)
        wholes = np.array([*range(-9, 10), low - zero - 1, low - zero, high - zero, high - zero + 1], np.float32)
        ties = ((wholes[:, None] + np.float32([0, 0.5])) * step).reshape(-1)
        x = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, -np.float32(np.inf))])
        inputs = {"x": x, "scale": step, "zero": np.array(zero).astype(dtype)}
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        content, feeds = single("QuantizeLinear", inputs, [kind], constants=["scale", "zero"], opset=25)
        assert check(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f)) == "equal"


@pytest.mark.parametrize("target", [t.name for t in FLOATS])
@pytest.mark.parametrize("saturate", [0, 1])
def test_both_sides_of_every_tie_of_8_bit_floats(target: str, saturate: int) -> None:
    """All numbers of the type, what lies between neighbours and beyond the largest one, in f32 and f16."""
    dtype = next(t for t in FLOATS if t.name == target)
    quantized = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    finite = np.unique(quantized[np.isfinite(quantized)])
    largest = np.float32(FORMATS[bittrue.graph.data_type(target).name].maximum)
    beyond = largest * np.linspace(1, 1.3, 301, dtype=np.float32)
    ties = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, beyond, -beyond, np.float32(SPECIAL)])
    ties = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, -np.float32(np.inf))])
    for real in (F32, F16):
        with np.errstate(over="ignore"):
            x = ties.astype(real)
        inputs = {"x": x, "scale": np.ones((), real), "zero": np.zeros((), dtype)}
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        content, feeds = single(
            "QuantizeLinear", inputs, [kind], {"saturate": saturate}, constants=["scale", "zero"], opset=19
        )
        assert check(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f)) == "equal"


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("opset", range(10, 27))
def test_every_opset_and_type(opset: int) -> None:
    """What ONNX Runtime accepts and refuses: all types of x, scale and output."""
    outcomes = []
    reals = [F32, F16, np.dtype(ml_dtypes.bfloat16), np.dtype(np.int32), np.dtype(ml_dtypes.float8_e8m0fnu)]
    for x_type in reals[:4]:
        for scale_type in reals:
            for target in (*INTEGERS, *FLOATS, np.dtype(ml_dtypes.float4_e2m1fn)):
                kind = helper.np_dtype_to_tensor_dtype(target)
                inputs = {"x": np.ones(3).astype(x_type), "scale": np.ones(()).astype(scale_type), "zero": None}
                inputs["zero"] = np.zeros(()).astype(target)
                if x_type.kind == "V":
                    continue  # cannot be fed
                content, feeds = single("QuantizeLinear", inputs, [kind], constants=["scale", "zero"], opset=opset)
                outcomes.append(
                    check(content, feeds, expected=lambda c=content, f=feeds: run_memory(c, f), native=False)
                )
    assert outcomes.count("equal") == sum([2, 10 if opset > 18 else 0, 8 if opset > 20 else 0, 4 if opset > 24 else 0])


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 24, 25, 28])
@pytest.mark.parametrize(
    ("name", "value", "since"), [("axis", 0, 13), ("saturate", 1, 19), ("block_size", 0, 21), ("precision", 1, 23)]
)
def test_attributes_come_with_versions(opset: int, name: str, value: int, since: int) -> None:
    inputs = {"x": np.ones(3, np.float32), "scale": np.float32(0.5)}
    content, feeds = single("QuantizeLinear", inputs, [TensorProto.UINT8], {name: value}, opset=opset)
    if opset < since:
        with pytest.raises(bittrue.UnsupportedError, match=f"'{name}' is not known"):
            bittrue.load(content)
        return
    assert bittrue.load(content).graph.nodes[0].version == opset
    assert bittrue.load(content).prepare("onnx").run(*feeds)["y0"].tolist() == [2, 2, 2]
    if opset == 28:
        with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR-VERSION"):
            bittrue.load(content).prepare("onnxruntime")


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 24, 25, 28])
def test_types_are_those_of_the_schema(op_type: str, opset: int) -> None:
    """All combinations of types that some version has: read where the schema allows them, refused by name elsewhere."""
    schema = onnx.defs.get_schema(op_type, opset)
    narrow = [np.dtype(getattr(ml_dtypes, t)) for t in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")]
    reals = [F32, F16, np.dtype(ml_dtypes.bfloat16), np.dtype(np.int32), np.dtype(ml_dtypes.float8_e8m0fnu)]
    stored = [*INTEGERS, *FLOATS, *narrow, np.dtype(np.int32)]
    quantizes = op_type == "QuantizeLinear"
    read = 0
    for x, scale_type, zero in itertools.product(*((reals, reals, stored) if quantizes else (stored, reals, stored))):
        types = [x, scale_type, zero, zero if quantizes else scale_type]
        bound: dict[str, str] = {}
        allowed = True
        for formal, dtype in zip([*schema.inputs, schema.outputs[0]], types, strict=True):
            name = f"tensor({_SCHEMA_NAMES.get(dtype.name) or dtype.name.replace('_', '').removesuffix('fnu')})"
            name = name.replace("e2m1fn", "e2m1").replace("e2m3fn", "e2m3").replace("e3m2fn", "e3m2")
            allowed &= name in formal.types and bound.setdefault(formal.type_str, name) == name
        inputs = {"x": np.ones(2).astype(x), "scale": np.ones(()).astype(scale_type), "zero": np.ones(()).astype(zero)}
        kind = int(helper.np_dtype_to_tensor_dtype(types[3]))
        content, _ = single(op_type, inputs, [kind], constants=list(inputs), opset=opset)
        if allowed:
            bittrue.load(content)
            read += 1
        else:
            with pytest.raises(bittrue.InvalidModelError, match="BT-ONNX-TYPE"):
                bittrue.load(content)
    assert read >= (4 if quantizes else 3)


def test_a_block_larger_than_memory() -> None:
    inputs = {"x": np.float32([[1, 2, 3]]), "scale": np.float32([[0.5]])}
    content, feeds = single("QuantizeLinear", inputs, [TensorProto.UINT8], {"block_size": 1 << 50}, constants=["scale"])
    for numerics in ("onnx", "onnxruntime"):
        assert bittrue.load(content).prepare(numerics).run(*feeds)["y0"].tolist() == [[2, 4, 6]]


def test_plans_keep_scales_of_every_kind(tmp_path: Path) -> None:
    """Blocked ones, integers, and those that come late."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    blocked = {"x": x, "scale": np.full((3, 2), 0.5, np.float32), "zero": np.full((3, 2), 3, np.int8)}
    whole = {"x": x, "scale": np.int32(2), "zero": np.zeros((), ml_dtypes.float8_e5m2)}
    for inputs, attributes, constants in (
        (blocked, {"block_size": 2}, ["scale", "zero"]),
        (blocked, {"block_size": 2}, []),
        (whole, {}, ["scale", "zero"]),
    ):
        kind = helper.np_dtype_to_tensor_dtype(inputs["zero"].dtype)
        content, feeds = single("QuantizeLinear", inputs, [kind], attributes, constants=constants, opset=25)
        session = bittrue.load(content).prepare("onnx")
        session.plan.save(tmp_path / "plan")
        again = bittrue.load_plan(tmp_path / "plan")
        assert again.run(*feeds)["y0"].tobytes() == session.run(*feeds)["y0"].tobytes()


def test_output_dtype_and_zero_point_agree() -> None:
    inputs = {"x": np.ones(2, np.float32), "scale": np.float32(1), "zero": np.int8(0)}
    content, _ = single("QuantizeLinear", inputs, [TensorProto.INT8], {"output_dtype": int(TensorProto.UINT8)})
    with pytest.raises(bittrue.InvalidModelError, match="output_dtype is u8, the zero point is s8"):
        bittrue.load(content)


@pytest.mark.parametrize("folder", vectors("quantizelinear.*"))
def test_vectors_of_the_specification(folder: Any) -> None:
    check_vector(folder)


@pytest.mark.parametrize("target", [np.uint8, np.int8, np.uint16, np.int16])
def test_scales_of_this_run_are_native(target: type[np.generic]) -> None:
    """Scales and zero points that only running tells: one, one per slice of each axis, and in blocks; both ways."""
    rng = np.random.default_rng(np.dtype(target).itemsize)
    shape = (6, 40, 9)
    whole = (((), {}), ((6,), {"axis": 0}), ((40,), {"axis": 1}), ((9,), {"axis": 2}))
    for places_of, attributes in (*whole, ((6, 8, 9), {"axis": 1, "block_size": 5})):
        scales, zero = scale(rng, places_of), zero_point(rng, target, places_of)
        real = (rng.standard_normal(shape) * 100).astype(np.float32)
        quantized = integers(rng, shape, target)
        ways = [("DequantizeLinear", quantized, np.float32), ("QuantizeLinear", real, target)]
        for operator, x, kind in ways:
            for known in ([], ["zero"], ["scale"]):
                inputs: dict[str, np.ndarray | None] = {"x": x, "scale": scales, "zero": zero}
                kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(kind))]
                natively(*single(operator, inputs, kinds, attributes, constants=known))


@pytest.mark.parametrize("target", [np.uint8, np.int8, np.uint16, np.int16])
def test_halves_are_quantized_natively(target: type[np.generic]) -> None:
    """Among them numbers whose quotients fit no 32 bits, in a stretch of usual ones."""
    rng = np.random.default_rng(np.dtype(target).itemsize)
    x = (rng.standard_normal((3, 50, 9)) * 100).astype(np.float16)
    x[1, 7] = np.resize(np.float16([np.nan, np.inf, -np.inf, 65504, -65504, -0.0]), 9)
    for places_of, attributes in (
        ((), {}),
        ((50,), {"axis": 1}),
        ((9,), {"axis": 2}),
        ((3, 50, 3), {"axis": 2, "block_size": 4}),
    ):
        scales, zero = scale(rng, places_of).astype(np.float16), zero_point(rng, target, places_of)
        scales.reshape(-1)[0] = np.float16(6e-8)
        kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(target))]
        inputs: dict[str, np.ndarray | None] = {"x": x, "scale": scales, "zero": zero}
        natively(*single("QuantizeLinear", inputs, kinds, attributes, constants=["scale", "zero"]))

"""quantize and dequantize of arrays: against ONNX Runtime, and the specification's formula in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import bittrue
from bittrue.graph import data_type
from bittrue.quantization import named_type
from support.narrow_oracle import SHAPES, code_of, sign_bit, to_precision
from support.onnx_models import single
from support.onnx_narrow import run_memory

F32 = np.float32
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint4", "int4", "uint2", "int2")
FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
NARROWER = ("float6_e2m3", "float6_e3m2", "float4_e2m1")
KINDS = dict(zip((*INTEGERS, *FLOATS), (2, 3, 4, 5, 21, 22, 25, 26, 17, 18, 19, 20), strict=True))
LOADED = {name: getattr(ml_dtypes, name) for name in ("uint4", "int4", "uint2", "int2", "bfloat16", "float8_e8m0fnu")}


def drawn(rng: np.random.Generator, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, int]]:
    """x, scales, zero points, and where the scales belong."""
    shape = tuple(int(v) for v in rng.integers(1, 7, 3))
    axis, kind, block = int(rng.integers(3)), rng.integers(3), int(rng.integers(1, 5))
    places: dict[str, int] = {}
    scale_shape: tuple[int, ...] = ()
    if kind:
        blocked = tuple(-(-v // block) if i == axis else v for i, v in enumerate(shape))
        scale_shape, places = ((shape[axis],), {"axis": axis}) if kind == 1 else (blocked, {"axis": axis})
        places |= {"block_size": block} if kind == 2 else {}
    scales = np.exp2(rng.integers(-4, 3, scale_shape)).astype(F32)
    x = (rng.integers(-300, 300, shape) / 2).astype(F32) * F32(0.5)
    target = named_type(dtype)
    points = (
        rng.integers(target.minimum, target.maximum + 1, scale_shape) if target.is_integer else np.zeros(scale_shape)
    )
    return x, scales, np.asarray(points, np.int64 if target.is_integer else F32), places


@pytest.mark.parametrize("dtype", KINDS)
def test_arrays_as_onnx_runtime(dtype: str) -> None:
    rng = np.random.default_rng(KINDS[dtype])
    numpy_type = LOADED.get(dtype, data_type(dtype).numpy)
    for number in range(25):
        x, scales, points, places = drawn(rng, dtype)
        if number % 3 == 0:
            x, scales = x.astype(np.float16), scales.astype(np.float16)
        saturate = bool(rng.integers(2))
        ours = bittrue.quantize(x, scales, points, dtype, saturate=saturate, numerics="onnxruntime", **places)
        given = {"x": x, "scale": scales, "zero": points.astype(numpy_type)}
        attributes: dict[str, Any] = {**places, **({"saturate": int(saturate)} if dtype in FLOATS else {})}
        content, feeds = single(
            "QuantizeLinear", given, [KINDS[dtype]], attributes, constants=["scale", "zero"], opset=25
        )
        theirs = run_memory(content, feeds)["y0"]
        assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes())
        real = bittrue.dequantize(ours, scales, points, dtype=dtype, numerics="onnxruntime", **places)
        given = {"x": ours.astype(numpy_type), "scale": scales, "zero": points.astype(numpy_type)}
        kind = 1 if scales.dtype == F32 else 10
        content, feeds = single("DequantizeLinear", given, [kind], places, constants=["x", "scale", "zero"], opset=25)
        theirs = run_memory(content, feeds)["y0"]
        assert (real.dtype, real.tobytes()) == (theirs.dtype, theirs.tobytes())


def expected(value: Fraction, zero_point: Fraction, dtype: str, saturate: bool) -> int:
    """The code (or the integer) of a quotient by the specification."""
    target = named_type(dtype)
    if target.is_integer:
        return int(min(max(round(value) + zero_point, target.minimum), target.maximum))
    code = code_of(target.name, value)
    kind, top = SHAPES[target.name][3], sign_bit(target.name)
    negative = top if value < 0 else 0
    if code is not None:
        return code | negative if code or kind != "negative zero" else 0
    largest = {"both": top - 1 - (top >> SHAPES[target.name][0]), "nan": top - 2}.get(kind, top - 1)
    if saturate or dtype in NARROWER:
        return largest | negative
    return largest + 1 if kind == "negative zero" else (largest + 1) | negative


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *NARROWER])
@pytest.mark.parametrize("scale_type", ["float32", "float16", "bfloat16", "float8_e8m0fnu", "int32"])
def test_quantization_by_the_specification(dtype: str, scale_type: str) -> None:
    rng = np.random.default_rng([KINDS.get(dtype, 0), len(scale_type)])
    zero = 1 if dtype in INTEGERS else 0
    for x_type in ("float32", "float16", "bfloat16", "int32"):
        x = np.concatenate([rng.integers(-600, 600, 30) / 4, rng.standard_normal(15) * 500]).astype(F32)
        x = x.astype(LOADED.get(x_type, x_type))
        for number in range(4):
            scale = np.exp2(rng.integers(-3, 4)) if scale_type == "float8_e8m0fnu" else rng.uniform(0.1, 9)
            scale = np.ceil(scale) if scale_type == "int32" else scale
            scale = np.asarray(scale).astype(LOADED.get(scale_type, scale_type))
            asked = [None, "float32", "float16", "bfloat16"][number]
            found = bittrue.quantize(x, scale, zero, dtype, precision=asked, saturate=number < 2, numerics="onnx")
            by_scale = {"float8_e8m0fnu": "float32" if x_type == "int32" else x_type, "int32": "float64"}
            precision = named_type(asked or by_scale.get(scale_type, scale_type)).name
            quantized = found if dtype in INTEGERS else found.view(np.uint8)
            divisor = to_precision(Fraction(float(scale)), precision)
            for value, code in zip(x, quantized, strict=True):
                real = to_precision(to_precision(Fraction(float(value)), precision) / divisor, precision)
                assert int(code) == expected(real, Fraction(zero), dtype, number < 2), (value, scale, precision)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *NARROWER, "int32"])
@pytest.mark.parametrize("scale_type", ["float32", "float16", "bfloat16", "float8_e8m0fnu"])
def test_dequantization_by_the_specification(dtype: str, scale_type: str) -> None:
    rng = np.random.default_rng([KINDS.get(dtype, 0), len(scale_type)])
    source = named_type(dtype)
    if source.is_integer:
        q = rng.integers(source.minimum, source.maximum + 1, 100).astype(source.numpy)
    else:
        q = np.arange(1 << 8 if dtype in FLOATS else 2 * sign_bit(source.name)).astype(np.uint8).view(source.numpy)
    # The specification gives int32 no zero point; floats take any.
    zero_point = 0 if dtype == "int32" else source.maximum if source.is_integer else 1.5
    for output in ("float32", "float16", "bfloat16"):
        scale = np.exp2(rng.integers(-5, 5)) if scale_type == "float8_e8m0fnu" else rng.uniform(0.001, 2)
        scale = np.asarray(scale).astype(LOADED.get(scale_type, scale_type))
        found = bittrue.dequantize(q, scale, zero_point, dtype=dtype, output_dtype=output, numerics="onnx")
        assert named_type(found.dtype).title == output
        for stored, real in zip(q, found, strict=True):
            if not math.isfinite(float(stored)):
                assert not math.isfinite(float(real))
                continue
            product = (Fraction(float(stored)) - Fraction(zero_point)) * Fraction(float(scale))
            wanted = to_precision(product, named_type(output).name)
            assert (math.inf if wanted is None else wanted) == (
                abs(float(real)) if wanted is None else Fraction(float(real))
            )


def test_precision_and_saturation_beside_onnx_runtime() -> None:
    """`precision` is the specification's; ONNX Runtime does not read it."""
    x = F32([2049, 1000.3])
    assert bittrue.quantize(x, F32(1), 0, "int16", precision="float16", numerics="onnx").tolist() == [2048, 1000]
    assert bittrue.quantize(x, F32(1), 0, "int16", precision="float16", numerics="onnxruntime").tolist() == [2049, 1000]
    both = [
        bittrue.quantize(F32([1e10]), F32(1), 0, "int2", numerics=name).tolist() for name in ("onnx", "onnxruntime")
    ]
    assert both == [[1], [-2]]
    eight = [
        bittrue.quantize(F32([485]), F32(1), 0, "float8_e4m3fn", saturate=False, numerics=name).astype(F32).tolist()
        for name in ("onnx", "onnxruntime")
    ]
    assert np.isnan(eight[0][0])
    assert eight[1] == [448]


def test_special_numbers_by_the_specification() -> None:
    x = F32([np.nan, np.inf, -np.inf, 3e38, -0.0])
    assert bittrue.quantize(x, 1e-30, 3, "int8", numerics="onnx").tolist() == [-128, 127, -128, 127, 3]
    assert bittrue.quantize(F32([0, 1, -1]), 0.0, 3, "int8", numerics="onnx").tolist() == [-128, 127, -128]
    quantized = bittrue.quantize(x, 1.0, 0, "float8_e5m2", numerics="onnx").view(np.uint8).tolist()
    assert quantized == [0x7E, 0x7B, 0xFB, 0x7B, 0x80]
    moved = bittrue.quantize(F32([1, 3]), 1.0, 0.5, "float4_e2m1", numerics="onnx")
    assert moved.astype(F32).tolist() == [1.5, 4]


@pytest.mark.parametrize(
    ("arguments", "options", "code"),
    [
        (([1.0], [1, 2], 0, "int8"), {"numerics": "onnx"}, "BT-QUANT-AXIS"),
        (([1.0], [1, 2], 0, "int8"), {"numerics": "onnx", "axis": 0}, "BT-QUANT-AXIS"),
        (([1.0], 1, 300, "int8"), {"numerics": "onnx"}, "BT-QUANT-ZERO-POINT"),
        (([1.0], 1, 0.3, "float8_e5m2"), {"numerics": "onnx"}, "BT-QUANT-ZERO-POINT"),
        (([1.0], 1, 0, "float4_e2m1"), {"numerics": "onnxruntime"}, "BT-OPERATOR"),
        ((np.int32([1]), 1, 0, "int8"), {"numerics": "onnxruntime"}, "BT-OPERATOR"),
        (([1.0], 1, 0, "int8"), {"numerics": "onnx", "precision": "int8"}, "BT-DTYPE"),
        ((["a"], 1, 0, "int8"), {"numerics": "onnx"}, "BT-DTYPE"),
        (([1.0], 1, 0, "int8"), {"block_size": 2}, "BT-QUANTIZE"),
        (([1.0], 1, 0, "float8_e5m2"), {}, "BT-DTYPE"),
        ((["a"], 1, 0, "int8"), {}, "BT-DTYPE"),
        (([1.0], "a", 0, "int8"), {}, "BT-DTYPE"),
        (([[1.0], [1.0, 2.0]], 1, 0, "int8"), {}, "BT-SHAPE"),
        (([1.0], [[1], [1, 2]], 0, "int8"), {"numerics": "onnx"}, "BT-SHAPE"),
    ],
)
def test_what_is_refused(arguments: tuple, options: dict, code: str) -> None:
    with pytest.raises(bittrue.InputError, match=code):
        bittrue.quantize(*arguments, **options)


def test_stored_numbers_that_are_refused() -> None:
    with pytest.raises(bittrue.InputError, match="BT-QUANT-ZERO-POINT"):
        bittrue.dequantize([9], 1.0, dtype="int4", numerics="onnx")
    with pytest.raises(bittrue.InputError, match="BT-QUANT-OPERAND"):
        bittrue.dequantize(np.int32([9]), 1.0, 5, numerics="onnx")
    with pytest.raises(bittrue.InputError, match="gives float32 alone"):
        bittrue.dequantize(np.int8([9]), 1.0, output_dtype="float16")
    with pytest.raises(bittrue.InputError, match="expected float8"):
        bittrue.dequantize(np.ones(2), 1.0, dtype="float8_e5m2", numerics="onnx")

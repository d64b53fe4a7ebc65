"""QuantizeLinear and DequantizeLinear under `onnx` against the ONNX project's reference evaluator.

Left out are the places where its results depend on the processor or leave the text: quotients that are infinite or
beyond 32 bits (it converts them to s32 unchecked), scales and numbers of different types without `precision` (NumPy's
promotion), products that it rounds twice (16-bit integers to float16).
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from onnx_operators.test_dequantize_linear import values
from onnx_operators.test_quantize_linear import F16, F32, FLOATS, INTEGERS, limits, places
from support.onnx_models import Checks, scale, single

# NumPy broadcasts scales that fit no shape of the specification.
SHAPES = ("BT-QUANT-BLOCK", "BT-QUANT-AXIS")
BF16 = np.dtype(ml_dtypes.bfloat16)
NARROWER = [np.dtype(getattr(ml_dtypes, t)) for t in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")]


def evaluate(content: bytes, feeds: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The evaluator's results in our arrays."""
    model = onnx.load_from_string(content)
    names = [value.name for value in model.graph.input]
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(model).run(None, dict(zip(names, feeds, strict=True)))
    found = {}
    for value, result in zip(model.graph.output, results, strict=True):
        array = np.asarray(result)
        if re.fullmatch("u?int[24]", array.dtype.name):
            array = array.astype(np.uint8 if array.dtype.name[0] == "u" else np.int8)
        found[value.name] = array
    return found


def test_quantization(request: pytest.FixtureRequest) -> None:
    checks, total = Checks(request), 0
    for rng in checks:
        total += 1
        target = [*INTEGERS, *FLOATS, *NARROWER][rng.integers(15)]
        real = [F32, F16, BF16][rng.integers(3)]
        shape = tuple(int(v) for v in rng.integers(1, 8, rng.integers(1, 4)))
        scale_shape, attributes = places(rng, shape)
        scales = scale(rng, scale_shape)
        low, high = limits(target) if target in INTEGERS else (-500, 500)
        x = np.asarray(rng.integers(2 * low - 9, 2 * high + 9, shape) / 2 * np.resize(scales, shape), F32)
        integer = target in INTEGERS
        zero = np.asarray(rng.integers(low, high + 1, scale_shape) if integer else np.zeros(scale_shape)).astype(target)
        if not integer:
            attributes["saturate"] = int(rng.integers(2))
        if rng.random() < 0.3:
            attributes["precision"] = int(rng.choice([TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16]))
        half = real == F16 or attributes.get("precision") == TensorProto.FLOAT16
        with np.errstate(over="ignore", divide="ignore"):
            if half and np.isinf(abs(x).max().astype(F16) / scales.min().astype(F16)):
                continue
        with np.errstate(over="ignore"):
            inputs = {"x": x.astype(real), "scale": scales.astype(real), "zero": zero}
        kind = int(helper.np_dtype_to_tensor_dtype(target))
        constants = ["scale", "zero"] if real != BF16 else list(inputs)
        content, feeds = single("QuantizeLinear", inputs, [kind], attributes, constants=constants, opset=28)
        try:
            theirs = evaluate(content, feeds)
        except Exception:
            # Shapes that do not fit: its errors are NumPy's.
            continue
        answer = lambda found=theirs: found  # noqa: E731
        checks.add(content, feeds, numerics="onnx", expected=answer, may_refuse=SHAPES)
    assert checks.outcomes.count("equal") > total / 2


def test_dequantization(request: pytest.FixtureRequest) -> None:
    checks, total = Checks(request), 0
    for rng in checks:
        total += 1
        source = [*INTEGERS[:2], *INTEGERS[4:], *FLOATS, *NARROWER][rng.integers(13)]
        real = [F32, F16, BF16][rng.integers(3)]
        shape = tuple(int(v) for v in rng.integers(1, 8, rng.integers(1, 4)))
        scale_shape, attributes = places(rng, shape)
        if source in INTEGERS:
            q, zero = values(rng, source, shape), values(rng, source, scale_shape)
        else:
            bits = 256 if source in FLOATS else 2 ** (4 if "float4" in source.name else 6)
            q, zero = rng.integers(0, bits, shape).astype(np.uint8).view(source), np.zeros(scale_shape, source)
            # It gives NaN the sign that its conversions leave.
            q = np.where(np.isnan(q.astype(F32)), np.zeros((), source), q)
        inputs = {"x": q, "scale": scale(rng, scale_shape).astype(real), "zero": zero}
        kind = int(helper.np_dtype_to_tensor_dtype(real))
        content, feeds = single("DequantizeLinear", inputs, [kind], attributes, constants=list(inputs), opset=28)
        try:
            theirs = evaluate(content, feeds)
        except Exception:
            # Shapes that do not fit: its errors are NumPy's.
            continue
        answer = lambda found=theirs: found  # noqa: E731
        checks.add(content, feeds, numerics="onnx", expected=answer, may_refuse=SHAPES)
    assert checks.outcomes.count("equal") > total / 2

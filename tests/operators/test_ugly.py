"""Extreme parameters, one case for each answer that was once wrong; and the helper that draws them everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import bittrue
from support import ugly
from support.build import T, single
from support.differential import check
from support.elementwise import refusal
from support.unary import unary

LEAST, GREATEST = ugly.INT32
BYTES = {"s8": np.arange(-128, 128).astype(np.int8), "u8": np.arange(256).astype(np.uint8)}


@pytest.mark.parametrize("operator", ["TANH", "LOGISTIC", "GELU", "PRELU", "DEQUANTIZE", "RELU", "LEAKY_RELU"])
@pytest.mark.parametrize(("dtype", "zero_point"), [("u8", LEAST), ("s8", LEAST), ("s8", GREATEST)])
def test_differences_that_overflow_have_no_result(operator: str, dtype: str, zero_point: int) -> None:
    source = T(dtype, (256,), 0.5, zero_point)
    inputs = [source, T(dtype, (256,), 0.5, 3)] if operator == "PRELU" else [source]
    scale = 1 / 256 if operator == "LOGISTIC" else 0.5
    output = T("f32", ()) if operator == "DEQUANTIZE" else T(dtype, (), scale, 3)
    options = {"GELU": ("GeluOptions", {"approximate": False}), "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.25})}
    content = single(operator, options.get(operator), inputs, [output], version=1 if len(inputs) > 1 else 2)
    assert refusal(content, *[BYTES[dtype] for _ in inputs]) == "BT-QUANT-OVERFLOW"


def test_products_of_differences_that_overflow_have_no_result() -> None:
    tensors = [T("u8", (256,), 0.5, GREATEST), T("u8", (256,), 0.5, GREATEST)]
    content = single("PRELU", None, tensors, [T("u8", (), 0.5)])
    assert refusal(content, BYTES["u8"], BYTES["u8"]) == "BT-QUANT-OVERFLOW"
    x, w, bias = T("u8", (1, 4), 0.5, GREATEST), T("u8", (1, 4), 0.5), T("s32", (1,), 0.25, data=np.zeros(1))
    content = single("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [x, w, bias], [T("s16", (), 0.5)], version=4)
    assert refusal(content, np.zeros((1, 4), np.uint8), np.zeros((1, 4), np.uint8)) == "BT-QUANT-OVERFLOW"


@pytest.mark.numerics("litert")
def test_svdf_of_no_batches() -> None:
    time, state = np.ones((2, 3), np.int16), T("s16", (0, 6), 0.01, variable=True)
    inputs = [T("s8", (0, 4), 0.5), T("s8", (2, 4), 0.5, data=np.ones((2, 4))), T("s16", (2, 3), 0.01, data=time)]
    options = ("SVDFOptions", {"rank": 1, "fusedActivationFunction": 1})
    content = single("SVDF", options, [*inputs, None, state], [T("s8", (0, 2), 0.5)], version=3)
    assert check(content, [[np.zeros((0, 4), np.int8)]]) == "refused"


@pytest.mark.parametrize("zero_point", [-129, 128, 1000, LEAST + 128, GREATEST - 128])
@pytest.mark.parametrize("operator", ["TANH", "RELU", "DEQUANTIZE", "EXP"])
@pytest.mark.numerics("litert")
def test_zero_points_outside_of_the_type(operator: str, zero_point: int) -> None:
    output = T("f32", ()) if operator == "DEQUANTIZE" else T("s8", (), 0.5, 3)
    content = unary(operator, T("s8", (256,), 1e-9, zero_point), output, version=2 if operator != "RELU" else 1)
    assert check(content, [[BYTES["s8"]]]) == "equal"


@pytest.mark.parametrize("zero_point", [-32769, -32768, -500, 300, 32767, 32768])
@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.numerics("litert")
def test_hard_swish_keeps_16_bits(dtype: str, zero_point: int) -> None:
    content = unary("HARD_SWISH", T(dtype, (256,), 0.0625, zero_point), T(dtype, (), 0.125, 3))
    assert check(content, [[BYTES[dtype]]]) == ("equal" if -32768 <= zero_point <= 32767 else "refused")


@pytest.mark.parametrize("operator", ["TANH", "GELU"])
def test_tables_of_unsigned_bytes_that_leave_32_bits(operator: str) -> None:
    """The kernel's conversion gives 0 there; with a sign it saturates."""
    options = ("GeluOptions", {"approximate": True}) if operator == "GELU" else None
    content = unary(operator, T("u8", (256,), 0.0625), T("u8", (), 1e-12), options, 2 if options else 1)
    assert refusal(content, BYTES["u8"]) == "BT-TABLE"
    content = unary(operator, T("s8", (256,), 0.0625), T("s8", (), 1e-12), options, 2)
    assert check(content, [[BYTES["s8"]]], numerics="litert") == "equal"


def test_interpolated_tables_of_an_infinite_range() -> None:
    content = unary("EXP", T("s16", (4,), 3e38), T("s16", (), 1.0), version=2)
    assert refusal(content, np.zeros(4, np.int16)) == "BT-TABLE"


def test_inverse_root_of_subnormal_scales() -> None:
    content = unary("RSQRT", T("s8", (4,), 1e-45), T("s8", (), 1e-45), version=2)
    assert refusal(content, np.zeros(4, np.int8)) == "BT-MULTIPLIER"


def test_several_scales() -> None:
    """DEQUANTIZE has none for 16-bit floats, and both kernels go past the end of tensors without elements."""
    halves = unary("DEQUANTIZE", T("f16", (2,), [0.5, 0.25]), T("f32", ()), version=3)
    assert refusal(halves, np.zeros(2, np.float16)) == "BT-QUANT-PER-AXIS"
    nothing = unary("DEQUANTIZE", T("s8", (2, 0), [0.5, 0.25]), T("f32", ()), version=5)
    assert refusal(nothing, np.zeros((2, 0), np.int8)) == "BT-SHAPE-EMPTY"
    nothing = unary("QUANTIZE", T("f32", (2, 0)), T("s8", (2, 0), [0.5, 0.25]), version=3)
    assert refusal(nothing, np.zeros((2, 0), np.float32)) == "BT-SHAPE-EMPTY"


@pytest.mark.parametrize("dtype", ["s8", "s16"])
def test_sums_of_signed_integers_are_inexact(dtype: str) -> None:
    """The kernel takes them for unsigned bytes; the plan says so before anything runs."""
    axes = T("s32", (1,), data=np.int32([0]))
    content = single("SUM", ("ReducerOptions", {"keepDims": False}), [T(dtype, (4,), 0.5), axes], [T(dtype, (), 0.5)])
    (step,) = bittrue.load(content).prepare().plan.steps
    assert step.inexact


@pytest.mark.parametrize("zero_point", ugly.WIDE_ZERO_POINTS)
def test_zero_points_beyond_32_bits(zero_point: int) -> None:
    content = unary("RELU", T("s8", (4,), 0.5, zero_point), T("s8", (), 0.5))
    with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-ZERO-POINT"):
        bittrue.load(content)


def test_a_scalar_in_place_of_a_volume() -> None:
    options = ("Conv3DOptions", {"strideD": 1, "strideH": 1, "strideW": 1})
    content = single("CONV_3D", options, [T("f32", ()), T("f32", (1, 1, 1, 1, 1))], [T("f32", ())])
    assert refusal(content, np.float32(0), np.zeros((1, 1, 1, 1, 1), np.float32)) == "BT-SHAPE-RANK"


def test_names_that_are_no_text() -> None:
    """The runtime computes whatever tensors are called, and so do we."""
    content = unary("RELU", T("f32", (3,)), T("f32", ()))
    model = schema.ModelT.InitFromPackedBuf(content)
    for name in ugly.NAMES:
        model.subgraphs[0].tensors[0].name = name
        model.subgraphs[0].tensors[1].name = name + b"1"
        assert check(ugly.written(model), [[np.float32([-1, 0, 2])]], numerics="litert") == "equal"


def test_a_seed_is_a_model() -> None:
    """The same seed gives the same file again, and a few hundred of them every kind of change."""
    content = unary("RELU", T("s8", (2, 3), 0.5, 3), T("s8", (2, 3), 0.5, 3))
    changed = [ugly.uglier(content, seed) for seed in range(300)]
    assert changed == [ugly.uglier(content, seed) for seed in range(300)]
    graphs = []
    for one in changed:
        try:
            graphs.append(bittrue.load(one).graph)
        except bittrue.BittrueError:
            continue
    sources = [graph.tensors[0] for graph in graphs]
    points = {int(t.quantization.zero_points[0]) for t in sources if t.quantization is not None}
    assert {LEAST, GREATEST, -129, 128} <= points
    assert {0, 1, 2, 8} <= {len(t.shape) for t in sources}
    assert any(0 in t.shape for t in sources)
    assert any(t.quantization is None for t in sources)

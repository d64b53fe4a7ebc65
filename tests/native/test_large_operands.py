"""Element-wise, pooling and reducing kernels at sizes where they cut work into blocks and share it among threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bittrue
from support.build import T, chain, single
from support.differential import random_values
from support.native import check_native, needs_native
from support.unary import reals

pytestmark = needs_native

SCALES = {"s8": (0.05, 3), "u8": (0.04, 120), "s16": (0.001, 0)}


def tensor(dtype: str, shape: tuple[int, ...], factor: float = 1.0) -> T:
    scale, zero_point = SCALES.get(dtype, (None, 0))
    return T(dtype, shape, None if scale is None else scale * factor, zero_point)


def floats(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """With one kind of NaN, this processor's: which of two payloads survives a sum is up to NumPy's vector loop."""
    values = reals(seed, shape)
    with np.errstate(invalid="ignore"):
        arising = np.float32(np.inf) - np.float32(np.inf)
    return np.where(np.isnan(values), arising, values)


def same_natively(content: bytes, seed: int = 0) -> None:
    """Every instruction set and several numbers of threads give the reference's tensors, with nothing left to it."""
    session = bittrue.load(content).prepare(executor="reference")
    rng = np.random.default_rng(seed)
    feed = [
        floats(seed, port.shape) if port.dtype == np.float32 else random_values(rng, port.dtype, port.shape)
        for port in session.inputs
    ]
    check_native(session, [feed], session.trace(*feed), threads=(1, 3))
    assert not bittrue.Session(session.plan, executor="native").missing


PAIRS = (
    ((1, 61, 67, 24), (1, 61, 67, 24)),
    ((1, 61, 67, 24), (24,)),
    ((3, 41, 57, 3), (3,)),
    ((1, 61, 67, 24), ()),
    ((1, 61, 67, 24), (1, 61, 1, 24)),
    ((2, 1, 67, 24), (1, 61, 67, 1)),
    ((50021,), (1,)),
)


@pytest.mark.parametrize("dtype", ["s8", "u8", "s16"])
@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize(("operator", "options"), [("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")])
def test_binary(operator: str, options: str, shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    inputs = [tensor(dtype, shapes[0]), tensor(dtype, shapes[1], 0.7)]
    same_natively(single(operator, (options, {"fusedActivationFunction": 1}), inputs, [tensor(dtype, ())], version=2))


@pytest.mark.parametrize("dtype", ["s32", "s64", "f32"])
def test_plain_sum(dtype: str) -> None:
    inputs = [tensor(dtype, (1, 61, 67, 24)), tensor(dtype, (61, 1, 24))]
    same_natively(single("ADD", ("AddOptions", {}), inputs, [tensor(dtype, ())], version=2))


@pytest.mark.parametrize("operator", ["MAXIMUM", "LESS", "SQUARED_DIFFERENCE"])
def test_other_pairs(operator: str) -> None:
    tables = {
        "MAXIMUM": "MaximumMinimumOptions",
        "LESS": "LessOptions",
        "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
    }
    inputs = [tensor("s8", (1, 61, 67, 24)), tensor("s8", (67, 1))]
    output = T("bool", ()) if operator == "LESS" else tensor("s8", ())
    same_natively(single(operator, (tables[operator], {}), inputs, [output], version=2))


@pytest.mark.parametrize(
    ("operator", "source", "target", "options", "version"),
    [
        ("QUANTIZE", "s8", "u8", None, 2),
        ("QUANTIZE", "f32", "s8", None, 2),
        ("QUANTIZE", "s16", "s8", None, 2),
        ("QUANTIZE", "s8", "s16", None, 2),
        ("DEQUANTIZE", "u8", "f32", None, 2),
        ("DEQUANTIZE", "s16", "f32", None, 3),
        ("RELU6", "s8", "s8", None, 2),
        ("RELU6", "f32", "f32", None, 1),
        ("LEAKY_RELU", "s16", "s16", ("LeakyReluOptions", {"alpha": 0.3}), 2),
        ("TANH", "u8", "u8", None, 2),
        ("TANH", "s16", "s16", None, 3),
        ("CAST", "s8", "f32", ("CastOptions", {}), 1),
        ("CAST", "f32", "s16", ("CastOptions", {}), 6),
    ],
)
def test_unary(operator: str, source: str, target: str, options: Any, version: int) -> None:
    x, y = tensor(source, (3, 61, 67, 5)), tensor(target, (), 1.3)
    if operator == "TANH":
        y.scale, y.zero_point = (2**-15, 0) if target == "s16" else (1 / 128, 128)
    same_natively(single(operator, options, [x], [y], version=version))


@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "f32"])
@pytest.mark.parametrize("channels", [1, 24, 3000])
@pytest.mark.parametrize("taps", [(3, 3, 1), (2, 3, 2), (9, 13, 1)], ids=str)
@pytest.mark.parametrize("operator", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pools(operator: str, taps: tuple[int, int, int], channels: int, dtype: str) -> None:
    height, width, stride = taps
    shape = (2, 17, 23, channels) if channels < 3000 else (1, 9, 5, channels)
    fields = {"filterHeight": height, "filterWidth": width, "strideH": stride, "strideW": stride, "padding": 0}
    same_natively(single(operator, ("Pool2DOptions", fields), [tensor(dtype, shape)], [tensor(dtype, ())], version=3))


@pytest.mark.parametrize("axes", [(1, 2), (3,), (0,), (0, 2), (1, 3), (0, 1, 2, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["s8", "s16", "s32", "f32"])
@pytest.mark.parametrize("operator", ["MEAN", "SUM", "REDUCE_MAX"])
def test_reductions(operator: str, dtype: str, axes: tuple[int, ...]) -> None:
    x, y = tensor(dtype, (3, 71, 17, 70)), tensor(dtype, ())
    along = T("s32", (len(axes),), data=np.array(axes, np.int32))
    same_natively(single(operator, ("ReducerOptions", {"keepDims": True}), [x, along], [y], version=2))


@pytest.mark.parametrize("length", [1, 10, 255, 256, 511, 1001])
@pytest.mark.parametrize(("source", "target"), [("s8", "s8"), ("u8", "u8"), ("s8", "s16"), ("s16", "s16")])
def test_softmax_rows(source: str, target: str, length: int) -> None:
    x = tensor(source, (37, length))
    y = {"s8": T("s8", (), 1 / 256, -128), "u8": T("u8", (), 1 / 256), "s16": T("s16", (), 1 / 32768)}[target]
    same_natively(single("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), [x], [y], version=3))


@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_log_softmax_and_length(dtype: str) -> None:
    zero_points = {"s8": (127, 0), "u8": (255, 128)}[dtype]
    x = tensor(dtype, (41, 300))
    logarithms, parts = T(dtype, (), 1 / 16, zero_points[0]), T(dtype, (), 1 / 128, zero_points[1])
    same_natively(single("LOG_SOFTMAX", ("LogSoftmaxOptions", {}), [x], [logarithms], version=2))
    same_natively(single("L2_NORMALIZATION", ("L2NormOptions", {}), [x], [parts], version=2))


@pytest.mark.parametrize("dtype", ["s8", "s16", "f32"])
def test_parts_of_a_concatenation(dtype: str) -> None:
    """Pools and sums may write straight into the wider tensor that they become a part of."""
    x = tensor(dtype, (2, 19, 23, 12))
    fields = {"filterHeight": 3, "filterWidth": 3, "strideH": 1, "strideW": 1, "padding": 0}
    parts = [tensor(dtype, (2, 19, 23, 12)) for _ in range(3)]
    whole = tensor(dtype, (2, 19, 23, 36))
    same_natively(
        chain(
            [
                ("AVERAGE_POOL_2D", ("Pool2DOptions", fields), [x], [parts[0]], 3),
                ("MAX_POOL_2D", ("Pool2DOptions", fields), [x], [parts[1]], 3),
                ("ADD", ("AddOptions", {}), [x, x], [parts[2]], 2),
                ("CONCATENATION", ("ConcatenationOptions", {"axis": 3}), parts, [whole], 3),
            ]
        )
    )


@pytest.mark.parametrize("shape", [(1, 1), (7, 65), (64, 64), (65, 130), (130, 63), (200, 9)], ids=str)
def test_constant_matrix(shape: tuple[int, int]) -> None:
    """Its columns are turned into rows by tiles of 64 x 64."""
    weights = np.random.default_rng(0).integers(-128, 128, shape, np.int8)
    inputs = [tensor("s8", (3, shape[0])), T("s8", shape, 0.02, data=weights)]
    same_natively(single("BATCH_MATMUL", ("BatchMatMulOptions", {}), inputs, [T("s8", (), 4.0)], version=2))

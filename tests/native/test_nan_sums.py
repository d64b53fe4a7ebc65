"""Sums in which NaNs of several bits meet: every executor and instruction set keeps the reference's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

import bittrue
from support import onnx_models
from support.build import T, single
from support.native import check_native
from support.strategies import seeds

NANS = np.array([0x7FC00000, 0xFFC00000, 0x7FC12345, 0xFFF00001, 0x7F800000, 0xFF800000], np.uint32).view(np.float32)


def reals(seed: int, *shape: int) -> np.ndarray:
    """Normal numbers, and a NaN or an infinity in about a fiftieth of the places."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape).astype(np.float32)
    return np.where(rng.random(shape) < 0.02, rng.choice(NANS, shape), values).astype(np.float32)


def model(operator: str, seed: int, constant_nan: bool) -> bytes:
    def weights(*shape: int) -> T:
        values = reals(seed, *shape)
        return T("f32", shape, data=values if constant_nan else np.nan_to_num(values, nan=1, posinf=2, neginf=-2))

    if operator == "BATCH_MATMUL":
        return single(operator, ("BatchMatMulOptions", {}), [T("f32", (2, 9, 70)), weights(2, 70, 30)], [T("f32", ())])
    if operator == "FULLY_CONNECTED":
        options = ("FullyConnectedOptions", {})
        return single(operator, options, [T("f32", (9, 70)), weights(30, 70), None], [T("f32", ())])
    if operator == "CONV_2D":
        options = ("Conv2DOptions", {"strideH": 1, "strideW": 1})
        return single(operator, options, [T("f32", (1, 9, 9, 8)), weights(20, 3, 3, 8), weights(20)], [T("f32", ())])
    if operator == "TRANSPOSE_CONV":
        options = ("TransposeConvOptions", {"strideH": 2, "strideW": 2})
        shape = T("s32", (4,), data=np.array([1, 10, 10, 20]))
        return single(operator, options, [shape, weights(20, 3, 3, 8), T("f32", (1, 5, 5, 8))], [T("f32", ())])
    state = T("f32", (2, 30), variable=True)
    inputs = [T("f32", (2, 40)), weights(6, 40), weights(6, 5), None, state]
    return single("SVDF", ("SVDFOptions", {"rank": 1}), inputs, [T("f32", ())])


@pytest.mark.parametrize("constant_nan", [False, True])
@pytest.mark.parametrize("operator", ["BATCH_MATMUL", "FULLY_CONNECTED", "CONV_2D", "TRANSPOSE_CONV", "SVDF"])
def test_native_keeps_the_reference_s_nans(operator: str, constant_nan: bool) -> None:
    met = 0
    for seed in range(6):
        session = bittrue.load(model(operator, seed, constant_nan)).prepare(executor="reference")
        feeds = [[reals(10 * seed + i, *session.inputs[0].shape)] for i in range(2)]
        values = {}
        for feed in feeds:
            values = session.trace(*feed)
        met += sum(int(np.isnan(value).sum()) for value in values.values())
        check_native(session, feeds, values)
    assert met


@pytest.mark.parametrize("numerics", ["litert", "litert-optimized", "xnnpack"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((23, 17), (0,)), ((8, 9), (0, 1)), ((5, 40), (1,)), ((3, 4, 5, 6), (1, 2))]
)
def test_means_keep_the_reference_s_nans(numerics: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    options = ("ReducerOptions", {"keepDims": True})
    content = single("MEAN", options, [T("f32", shape), T("s32", (len(axes),), data=np.int32(axes))], [T("f32", ())])
    session = bittrue.load(content).prepare(numerics, executor="reference")
    rng = np.random.default_rng(0)
    for seed in range(4):
        x = np.where(rng.random(shape) < 0.4, rng.choice(NANS, shape), reals(seed, *shape)).astype(np.float32)
        check_native(session, [[x]], session.trace(x))


@given(st.integers(1, 20), seeds)
def test_normalized_rows_keep_the_reference_s_nans(length: int, seed: int) -> None:
    """NaN and infinities in rows that meet NaN among the scales."""
    rng = np.random.default_rng(seed)
    inputs = {"x": rng.standard_normal((4, length)).astype(np.float32)}
    inputs |= {name: rng.standard_normal(length).astype(np.float32) for name in ("scale", "bias")}
    for value in inputs.values():
        value.reshape(-1)[rng.integers(0, value.size, 2)] = rng.choice([np.nan, -np.nan, np.inf])
    content, feed, *_ = onnx_models.single("LayerNormalization", inputs, [int(TensorProto.FLOAT)], {}, opset=17)
    session = bittrue.load(content).prepare("onnxruntime", executor="reference")
    check_native(session, [list(feed)], session.trace(*feed))

"""L2_NORMALIZATION against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for, only_output
from support.strategies import scales, seeds, shapes, zero_points


def model(x: T, out_scale: float = 1 / 128, out_zero_point: int | None = None, activation: int = 0) -> bytes:
    if out_zero_point is None:
        out_zero_point = 128 if x.dtype == "u8" else 0
    y = T(x.dtype, (), None if x.dtype == "f32" else out_scale, out_zero_point)
    options = ("L2NormOptions", {"fusedActivationFunction": activation})
    return single("L2_NORMALIZATION", options, [x], [y], version=2)


@st.composite
def normalization(draw: st.DrawFn) -> tuple[bytes, list[list[np.ndarray]]]:
    dtype = draw(st.sampled_from(["s8", "u8", "f32"]))
    shape = draw(shapes())
    shape = (*shape[:-1], draw(st.one_of(st.integers(1, 5), st.integers(1, 300))))
    if draw(st.integers(0, 19)) == 0:
        shape = draw(st.sampled_from([(), (0,), (3, 0), (0, 3)]))
    x = T(dtype, shape)
    wrong = {}
    if dtype != "f32":
        x.scale, x.zero_point = draw(scales()), draw(zero_points(dtype))
        if draw(st.integers(0, 9)) == 0:
            wrong = draw(st.sampled_from([{"out_scale": 1 / 127}, {"out_zero_point": 1}, {"activation": 1}]))
    content = model(x, **wrong)
    seed = draw(seeds)
    if dtype != "f32" and draw(st.booleans()):
        # Small distances to the zero point: short rows, zero rows and many ties.
        rng = np.random.default_rng(seed)
        low, high = (-128, 127) if dtype == "s8" else (0, 255)
        width = draw(st.sampled_from([0, 1, 2, 10]))
        near = np.clip(x.zero_point + rng.integers(-width, width, shape, endpoint=True), low, high)
        return content, [[near.astype(np.int8 if dtype == "s8" else np.uint8)]]
    return content, feeds_for(content, seed)


@given(normalization())
def test_l2_normalization(case: tuple[bytes, list[list[np.ndarray]]]) -> None:
    check(*case)


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("depth", [33024, 33030, 40000, 70000])
def test_sums_of_squares_beyond_32_bits(dtype: str, depth: int) -> None:
    low = -128 if dtype == "s8" else 0
    content = model(T(dtype, (1, depth), 1.0, low))
    x = np.full((1, depth), low + 255, np.int8 if dtype == "s8" else np.uint8)
    assert check(content, [[x]]) == "equal"


def test_special_binary32_values() -> None:
    values = np.float32([0.0, -0.0, 1e-7, -1e-7, 1e20, -1e20, 1e-30, np.inf, 1.0])
    x = np.random.default_rng(1).choice(values, (400, 3)).astype(np.float32)
    assert check(model(T("f32", x.shape)), [[x]]) == "equal"
    zeros = np.float32([[0.0, -0.0], [1e-7, 0]])
    assert only_output(model(T("f32", zeros.shape)), zeros).tolist() == [
        [0, 0],
        [np.float32(1e-7) / np.float32(1e-6), 0],
    ]


def test_rows_by_hand() -> None:
    """A row (3, 4) has length 5; its parts are 0.6 and 0.8, in 1/128: 76.8 and 102.4. 1.0 saturates."""
    x = np.int8([[3, 4], [1, 0], [-1, 0], [0, 0]])
    assert only_output(model(T("s8", x.shape, 1.0)), x).tolist() == [[77, 102], [127, 0], [-128, 0], [0, 0]]


def test_refused() -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-OUTPUT"):
        bittrue.load(model(T("s8", (1, 4), 1.0), out_scale=0.01)).prepare()
    with pytest.raises(bittrue.InvalidModelError, match="BT-ACTIVATION"):
        bittrue.load(model(T("f32", (1, 4)), activation=1)).prepare()

"""prelu against the real runtime."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for
from support.runtimes import RUNTIMES
from support.strategies import scales, seeded, seeds, shapes, zero_points
from support.unary import reals


@st.composite
def operands(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """An input's shape and alpha's: leading axes missing, some dimensions 1, now and then too large for the input."""
    shape = draw(shapes(0, 5))
    alpha = tuple(1 if draw(st.booleans()) else size for size in shape)
    if shape and draw(st.integers(0, 9)) == 0:
        return (1, *shape[1:]), alpha
    return shape, alpha[draw(st.integers(0, len(alpha))) :]


@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "u8", "s16"])
def test_quantized(dtype: str, data: st.DataObject) -> None:
    shape, alpha_shape = data.draw(operands())
    low, high = (1e-5, 1e-3) if dtype == "s16" else (1e-3, 0.5)
    alpha_dtype = "s8" if dtype == "s16" else dtype
    x = T(dtype, shape, data.draw(scales(low, high)), data.draw(zero_points(dtype)))
    if dtype == "s16":
        x.zero_point = data.draw(st.sampled_from([0, 0, 1, -32768]))
    alpha = T(alpha_dtype, alpha_shape, data.draw(scales(1e-3, 1.0)), data.draw(zero_points(alpha_dtype)))
    if data.draw(st.booleans()):
        alpha.data = seeded(alpha_dtype, alpha_shape, data.draw(seeds))
    y = T(dtype, (), data.draw(scales(low, high)), data.draw(zero_points(dtype)))
    content = single("PRELU", None, [x, alpha], [y])
    check(content, feeds_for(content, data.draw(seeds)))


@given(shapes_=operands(), seed=seeds)
def test_real(shapes_: tuple[tuple[int, ...], tuple[int, ...]], seed: int) -> None:
    shape, alpha_shape = shapes_
    content = single("PRELU", None, [T("f32", shape), T("f32", alpha_shape)], [T("f32", ())])
    x, alpha = reals(seed, shape), reals(seed + 1, alpha_shape)
    check(content, [[x, np.where(np.isnan(alpha), np.float32(0.5), alpha).reshape(alpha_shape)]])


def test_values_by_hand() -> None:
    """-2 * 0.25 = -0.5, a tie away from zero; -4 * -0.5 = 2."""
    alpha = T("s8", (2,), 0.25, data=np.int8([1, -2]))
    content = single("PRELU", None, [T("s8", (2, 2), 1.0), alpha], [T("s8", (), 1.0)])
    result = bittrue.load(content).prepare().run(np.int8([[-2, -4], [5, 7]]))
    assert result["t2"].tolist() == [[-1, 2], [5, 7]]


def test_alpha_of_16_bits_is_refused() -> None:
    """The runtime takes its bytes for alphas of 8 bits."""
    alpha = T("s16", (2,), 0.25, data=np.int16([0x0201, 0x0403]))
    content = single("PRELU", None, [T("s16", (2, 2), 1.0), alpha], [T("s16", (), 0.25)])
    feeds = [[np.int16([[-2, -4], [-5, -7]])]]
    assert RUNTIMES["litert"].run(content, feeds, [2]).values[2].tolist() == [[-2, -8], [-5, -14]]
    assert check(content, feeds, may_refuse=("BT-UNDEFINED",)) == "refused"


def test_alpha_larger_than_the_input_is_refused() -> None:
    content = single("PRELU", None, [T("f32", (1,)), T("f32", (2,))], [T("f32", ())])
    with pytest.raises(bittrue.InvalidModelError, match="alpha"):
        bittrue.load(content).prepare()


@pytest.mark.numerics("litert")
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.skipif(platform.machine() == "aarch64", reason="of two NaNs that meet either one's payload may stay there")
def test_of_two_nans_the_inputs_stays(constant: bool) -> None:
    kinds = np.uint32([0x7FC00001, 0xFFC00002, 0x7F800003, 0x3F800000, 0xBF800000, 0x7F800000, 0x80000000])
    x, alpha = (np.tile(side.reshape(-1), 3).view(np.float32) for side in np.meshgrid(kinds, kinds + np.uint32(8)))
    slopes = T("f32", alpha.shape, data=alpha) if constant else T("f32", alpha.shape)
    content = single("PRELU", None, [T("f32", (1, *x.shape)), slopes], [T("f32", (1, *x.shape))])
    assert check(content, [[x[None], alpha][: 1 if constant else 2]]) == "equal"

"""leaky_relu against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bittrue
from support.build import T
from support.differential import check, feeds_for
from support.strategies import f32, scales, seeds, shapes, zero_points
from support.unary import reals, unary

ALPHAS = st.one_of(st.sampled_from([0.0, -0.0, 0.5, -0.5, 0.01, 1.0, -1.0, 2.0, f32(0.2)]), st.floats(-3, 3, width=32))


def model(x: T, y: T, alpha: float) -> bytes:
    return unary("LEAKY_RELU", x, y, ("LeakyReluOptions", {"alpha": alpha}), 2)


@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "u8", "s16"])
def test_quantized(dtype: str, data: st.DataObject) -> None:
    low, high = (1e-5, 1e-3) if dtype == "s16" else (1e-3, 0.5)
    x = T(dtype, data.draw(shapes(0)), data.draw(scales(low, high)), data.draw(zero_points(dtype)))
    y = T(dtype, (), data.draw(scales(low, high)), data.draw(zero_points(dtype) | st.integers(-2, 2)))
    content = model(x, y, data.draw(ALPHAS))
    check(content, feeds_for(content, data.draw(seeds)))


@given(shape=shapes(0), alpha=ALPHAS, seed=seeds)
@example(shape=(5,), alpha=-0.5, seed=5515)
def test_real(shape: tuple[int, ...], alpha: float, seed: int) -> None:
    check(model(T("f32", shape), T("f32", ()), alpha), [[reals(seed, shape)]])


@given(data=st.data())
@settings(max_examples=10)
def test_every_input_of_16_bits(data: st.DataObject) -> None:
    """All 65536 inputs meet enough near-ties to show the last bit of the multiplier."""
    x, y = data.draw(scales(1e-4, 1e-3)), data.draw(scales(1e-4, 1e-3))
    values = np.arange(-32768, 32768, dtype=np.int16)
    assert check(model(T("s16", (65536,), x), T("s16", (), y), 0.3), [[values]]) == "equal"


@pytest.mark.parametrize("alpha", [-0.5, -0.25, -0.3])
def test_negative_slopes_of_16_bits(alpha: float) -> None:
    """Ties show whether the sign enters before or after rounding."""
    values = np.arange(-32768, 32768, dtype=np.int16)
    assert check(model(T("s16", (65536,), 2**-10), T("s16", (), 2**-10), alpha), [[values]]) == "equal"


@pytest.mark.parametrize("alpha", [0.0130, -0.0130, 0.0131, -0.0131])
def test_where_the_delegate_takes_a_slope(alpha: float) -> None:
    """From 2^-8 on, input scale times alpha over output scale; its multipliers have 8 binary places."""
    values = np.arange(-128, 128, dtype=np.int8)
    assert check(model(T("s8", (256,), 0.3), T("s8", (), 1.0), alpha), [[values]]) == "equal"


def test_a_slope_that_is_nan_stays() -> None:
    """In a product of two NaNs, too; its sign and payload are the result's."""
    x = np.uint32([0x7FC00001, 0xFFC00002, 0x3F800000, 0xBF800000, 0, 0x80000000] * 5).view(np.float32)
    for bits in (0x7FC00005, 0xFFC00007):
        alpha = np.uint32(bits).view(np.float32).item()
        content = model(T("f32", x.shape), T("f32", x.shape), alpha)
        assert check(content, [[x]]) == "equal"


def test_values_by_hand() -> None:
    """Alpha -0.25: -2 becomes 0.5, a tie away from zero, and the sign follows the rounding."""
    session = bittrue.load(model(T("s8", (5,), 1.0), T("s8", (), 1.0), -0.25)).prepare()
    assert session.run(np.int8([-2, -1, -8, 3, 127]))["t1"].tolist() == [1, 0, 2, 3, 127]


@pytest.mark.parametrize("alpha", [float("nan"), float("inf")])
def test_alpha_without_a_multiplier_is_refused(alpha: float) -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-MULTIPLIER"):
        bittrue.load(model(T("s8", (1,), 1.0), T("s8", (), 1.0), alpha)).prepare()

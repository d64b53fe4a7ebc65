"""hard_swish against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T
from support.differential import check
from support.strategies import scales, seeds, shapes, zero_points
from support.unary import reals, unary


def every(dtype: str) -> np.ndarray:
    return np.arange(256).astype(np.uint8).view(np.int8 if dtype == "s8" else np.uint8)


@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_every_input_of_8_bits(dtype: str, data: st.DataObject) -> None:
    """Input scales up to 2^24 give multipliers with large exponents; small output scales are refused by both. A left
    shift by 31 bits and more is undefined in the kernel and refused here.
    """
    wide = st.booleans()
    x = T(dtype, (256,), data.draw(scales(1e-9, 2.0**24) if data.draw(wide) else scales(1e-3, 0.5)))
    x.zero_point = data.draw(zero_points(dtype))
    y = T(dtype, (), data.draw(scales(1e-9, 2.0**24) if data.draw(wide) else scales(1e-3, 0.5)))
    y.zero_point = data.draw(zero_points(dtype))
    check(unary("HARD_SWISH", x, y), [[every(dtype)]], may_refuse=("BT-MULTIPLIER",))


@given(shape=shapes(0), seed=seeds)
def test_real(shape: tuple[int, ...], seed: int) -> None:
    check(unary("HARD_SWISH", T("f32", shape), T("f32", ())), [[reals(seed, shape, 0.01)]])


def test_values_by_hand() -> None:
    """From 3 on the function is x, up to -3 it is 0, and 1 * 4/6 is 10.67 sixteenths."""
    session = bittrue.load(unary("HARD_SWISH", T("s8", (4,), 1 / 16), T("s8", (), 1 / 16))).prepare()
    assert session.run(np.int8([-48, 16, 48, 127]))["t1"].tolist() == [0, 11, 48, 127]


@pytest.mark.parametrize("scales_", [(1.0, 1e-3), (2.0**33, 2.0**33)])
def test_scales_without_a_multiplier_are_refused(scales_: tuple[float, float]) -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-MULTIPLIER"):
        bittrue.load(unary("HARD_SWISH", T("s8", (1,), scales_[0]), T("s8", (), scales_[1]))).prepare()

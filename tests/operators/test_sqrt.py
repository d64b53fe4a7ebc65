"""sqrt and rsqrt against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T
from support.differential import check, random_values
from support.strategies import scales, seeds, shapes, zero_points
from support.unary import reals, unary


@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "s16"])
@pytest.mark.parametrize("operator", ["SQRT", "RSQRT"])
def test_quantized(operator: str, dtype: str, data: st.DataObject) -> None:
    """Most inputs are at or above the zero point; one value below it makes both sides refuse the run."""
    shape, zero_point = data.draw(shapes(0, 3, 9)), data.draw(zero_points(dtype))
    x = T(dtype, shape, data.draw(scales(1e-5, 10.0)), zero_point)
    y = T(dtype, (), data.draw(scales(1e-5, 10.0)), data.draw(zero_points(dtype)))
    values = random_values(
        np.random.default_rng(data.draw(seeds)), np.dtype(np.int8 if dtype == "s8" else np.int16), shape
    )
    if data.draw(st.integers(0, 9)):
        values = np.maximum(values, zero_point).astype(values.dtype)
    check(unary(operator, x, y, version=2), [[values]])


@given(st.data())
@pytest.mark.parametrize("operator", ["SQRT", "RSQRT"])
def test_every_input(operator: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["s8", "s8", "s8", "s16"]))
    zero_point = -128 if dtype == "s8" else 0
    values = np.arange(-128, 128, dtype=np.int8) if dtype == "s8" else np.arange(32768).astype(np.int16)
    x = T(dtype, values.shape, data.draw(scales(1e-5, 10.0)), zero_point)
    y = T(dtype, (), data.draw(scales(1e-5, 10.0)), data.draw(zero_points(dtype)))
    check(unary(operator, x, y, version=2), [[values]])


@given(operator=st.sampled_from(["SQRT", "RSQRT"]), shape=shapes(0), seed=seeds)
def test_real(operator: str, shape: tuple[int, ...], seed: int) -> None:
    check(unary(operator, T("f32", shape), T("f32", ())), [[reals(seed, shape)]])


def test_values_by_hand() -> None:
    """The root of 7 is 5.29 steps of 0.5, the fraction is dropped; 1 / sqrt(4) is 2 of 0.25, 1 / 0 the maximum."""
    session = bittrue.load(unary("SQRT", T("s8", (3,), 1.0), T("s8", (), 0.5))).prepare()
    assert session.run(np.int8([0, 7, 100]))["t1"].tolist() == [0, 5, 20]
    session = bittrue.load(unary("RSQRT", T("s8", (3,), 1.0), T("s8", (), 0.25))).prepare()
    assert session.run(np.int8([0, 1, 4]))["t1"].tolist() == [127, 4, 2]


@pytest.mark.parametrize(("operator", "dtype"), [("SQRT", "s8"), ("SQRT", "s16"), ("RSQRT", "s8"), ("RSQRT", "s16")])
def test_negative_input_is_a_run_error(operator: str, dtype: str) -> None:
    session = bittrue.load(unary(operator, T(dtype, (1,), 1.0), T(dtype, (), 1.0))).prepare()
    with pytest.raises(bittrue.RunError, match="BT-RUN-NEGATIVE"):
        session.run(np.array([-1], np.int8 if dtype == "s8" else np.int16))


def test_rsqrt_with_a_huge_output_scale_is_refused() -> None:
    """The kernel would shift a 32-bit number right by more than 31."""
    with pytest.raises(bittrue.InvalidModelError, match="BT-MULTIPLIER"):
        bittrue.load(unary("RSQRT", T("s8", (1,), 1.0), T("s8", (), 1e4))).prepare()

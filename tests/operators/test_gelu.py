"""gelu against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T
from support.differential import check
from support.strategies import scales, seeds, shapes, zero_points
from support.unary import reals, unary


def model(x: T, y: T, approximate: bool) -> bytes:
    return unary("GELU", x, y, ("GeluOptions", {"approximate": approximate}), 2)


@given(st.data())
@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_every_input_of_8_bits(dtype: str, approximate: bool, data: st.DataObject) -> None:
    values = np.arange(256).astype(np.uint8).view(np.int8 if dtype == "s8" else np.uint8)
    x = T(dtype, (256,), data.draw(scales(1e-4, 1.0)), data.draw(zero_points(dtype)))
    y = T(dtype, (), data.draw(scales(1e-4, 1.0)), data.draw(zero_points(dtype)))
    assert check(model(x, y, approximate), [[values]]) == "equal"


@given(st.data())
@settings(max_examples=25)
@pytest.mark.parametrize("approximate", [False, True])
def test_every_input_of_16_bits(approximate: bool, data: st.DataObject) -> None:
    """Zero points are free here, but only the ends of the ranges move with them."""
    free = st.sampled_from([0, 0, 0, 1, -100, 32767])
    x = T("s16", (65536,), data.draw(scales(1e-6, 1e-2)), data.draw(free))
    y = T("s16", (), data.draw(scales(1e-6, 1e-2)), data.draw(free))
    values = np.arange(-32768, 32768).astype(np.int16)
    assert check(model(x, y, approximate), [[values]]) == "equal"


@given(shape=shapes(0), seed=seeds, step=st.sampled_from([0.001, 0.01, 0.05]))
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("approximate", [False, True])
def test_real(approximate: bool, dtype: str, shape: tuple[int, ...], seed: int, step: float) -> None:
    """Groups of four elements and the rest behind them have exponentials of their own."""
    check(model(T(dtype, shape), T(dtype, ()), approximate), [[reals(seed, shape, step, NUMPY[dtype])]])


@pytest.mark.parametrize("approximate", [False, True])
def test_every_number_of_binary16(approximate: bool) -> None:
    x = np.arange(65536).astype(np.uint16).view(np.float16)
    x = x[~np.isnan(x)]
    assert check(model(T("f16", x.shape), T("f16", ()), approximate), [[x]]) == "equal"


@pytest.mark.parametrize("approximate", [False, True])
def test_many_real_numbers(approximate: bool) -> None:
    x = np.linspace(-16, 16, 70001).astype(np.float32)
    assert check(model(T("f32", x.shape), T("f32", ()), approximate), [[x]]) == "equal"


def test_values_by_hand() -> None:
    """gelu(1) = 0.8413, gelu(-1) = -0.1587, in steps of 1/16."""
    session = bittrue.load(model(T("s8", (4,), 1.0), T("s8", (), 1 / 16), False)).prepare()
    assert session.run(np.int8([0, 1, -1, 127]))["t1"].tolist() == [0, 13, -3, 127]

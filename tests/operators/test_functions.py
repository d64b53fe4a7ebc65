"""exp, log, elu, sin and cos against the real runtime."""

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

EVERY = {"s8": np.arange(-128, 128).astype(np.int8), "s16": np.arange(-32768, 32768).astype(np.int16)}


@given(st.data())
@pytest.mark.parametrize("operator", ["EXP", "LOG"])
def test_every_input_of_8_bits(operator: str, data: st.DataObject) -> None:
    """Input scales from nearly nothing to overflowing exponentials."""
    x = T("s8", (256,), data.draw(scales(1e-6, 2.0)), data.draw(zero_points("s8")))
    y = T("s8", (), data.draw(scales(1e-4, 10.0)), data.draw(zero_points("s8")))
    assert check(unary(operator, x, y, version=2), [[EVERY["s8"]]]) == "equal"


@given(st.data())
@settings(max_examples=25)
@pytest.mark.parametrize("operator", ["EXP", "LOG"])
def test_every_input_of_16_bits(operator: str, data: st.DataObject) -> None:
    x = T("s16", (65536,), data.draw(scales(1e-7, 1e-2)), data.draw(st.sampled_from([0] * 9 + [1])))
    y = T("s16", (), data.draw(scales(1e-6, 10.0)), 0)
    check(unary(operator, x, y, version=2), [[EVERY["s16"]]])


@given(shape=shapes(0), seed=seeds, step=st.sampled_from([0.01, 1.0, 1e4]))
@pytest.mark.parametrize(
    ("operator", "dtype"), [("EXP", "f32"), ("LOG", "f32"), *((o, d) for o in ("SIN", "COS") for d in ("f32", "f16"))]
)
def test_real(operator: str, dtype: str, shape: tuple[int, ...], seed: int, step: float) -> None:
    check(unary(operator, T(dtype, shape), T(dtype, ())), [[reals(seed, shape, step, NUMPY[dtype])]])


@pytest.mark.numerics("litert-optimized")
@given(data=st.data())
def test_elu_of_8_bits(data: st.DataObject) -> None:
    x = T("s8", (256,), data.draw(scales(1e-4, 2.0)), data.draw(zero_points("s8")))
    y = T("s8", (), data.draw(scales(1e-4, 2.0)), data.draw(zero_points("s8")))
    content = unary("ELU", x, y)
    assert check(content, [[EVERY["s8"]]], numerics="litert-optimized") == "equal"


@pytest.mark.numerics("litert-optimized")
@given(shape=shapes(0), seed=seeds, step=st.sampled_from([0.01, 1.0]))
def test_elu_of_real_numbers(shape: tuple[int, ...], seed: int, step: float) -> None:
    content = unary("ELU", T("f32", shape), T("f32", ()))
    assert check(content, [[reals(seed, shape, step)]], numerics="litert-optimized") == "equal"


@pytest.mark.numerics("litert")
def test_elu_is_refused_by_name() -> None:
    content = unary("ELU", T("f32", (2,)), T("f32", ()))
    assert check(content, [[np.zeros(2, np.float32)]]) == "refused"
    with pytest.raises(bittrue.UnsupportedError, match="register"):
        bittrue.load(content).prepare()


def test_values_by_hand() -> None:
    """exp(0) = 1 and exp(1) = 2.72; the logarithm of what has none is the smallest output."""
    session = bittrue.load(unary("EXP", T("s8", (3,), 1.0), T("s8", (), 0.25), version=2)).prepare()
    assert session.run(np.int8([0, 1, 127]))["t1"].tolist() == [4, 11, 127]
    session = bittrue.load(unary("LOG", T("s8", (3,), 1.0), T("s8", (), 0.25), version=2)).prepare()
    assert session.run(np.int8([1, 0, -5]))["t1"].tolist() == [0, -128, -128]

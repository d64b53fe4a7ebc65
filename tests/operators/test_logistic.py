"""logistic and tanh against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T
from support.differential import check, feeds_for
from support.strategies import f32, scales, seeds, shapes, zero_points
from support.unary import reals, unary

EVERY_S16 = np.arange(-32768, 32768, dtype=np.int16)


def every(dtype: str) -> np.ndarray:
    return np.arange(256).astype(np.uint8).view(np.int8 if dtype == "s8" else np.uint8)


@given(st.data())
@pytest.mark.parametrize("operator", ["LOGISTIC", "TANH"])
def test_8_bits(operator: str, data: st.DataObject) -> None:
    """All 256 inputs. LOGISTIC demands the output scale 1/256, and a few other scales check that both sides refuse."""
    dtype = data.draw(st.sampled_from(["s8", "u8"]))
    fixed = st.sampled_from([1 / 256] * 6 + [1 / 128, f32(0.004)])
    output = data.draw(fixed if operator == "LOGISTIC" else scales(1e-3, 0.1))
    x = T(dtype, (256,), data.draw(scales(1e-3, 2.0)), data.draw(zero_points(dtype)))
    y = T(dtype, (), output, data.draw(zero_points(dtype)))
    content = unary(operator, x, y)
    assert check(content, [[every(dtype)]]) == "equal" or operator == "LOGISTIC"


@given(shape=shapes(0), seed=seeds)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("operator", ["LOGISTIC", "TANH"])
def test_real(operator: str, dtype: str, shape: tuple[int, ...], seed: int) -> None:
    check(unary(operator, T(dtype, shape), T(dtype, ())), [[reals(seed, shape, 0.05, NUMPY[dtype])]])


@given(st.data())
@pytest.mark.parametrize("operator", ["LOGISTIC", "TANH"])
def test_16_bits(operator: str, data: st.DataObject) -> None:
    """Powers of two have a path of their own, and scales within 0.07 % of one take it."""
    near = st.builds(
        lambda n, off: f32(2.0**n * (1 + off)), st.integers(-14, -9), st.sampled_from([0, 5e-4, -5e-4, 8e-4])
    )
    scale = data.draw(st.one_of(scales(1e-6, 5.0), near))
    output = data.draw(st.sampled_from([2**-15] * 8 + [f32(2**-15 * 1.0005), 2**-14]))
    x = T("s16", data.draw(shapes(0, 3, 9)), scale, data.draw(st.sampled_from([0] * 9 + [1])))
    content = unary(operator, x, T("s16", (), output, 0))
    check(content, feeds_for(content, data.draw(seeds)))


@pytest.mark.parametrize("operator", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, f32(0.0007), f32(1.00069 * 2**-12), 1e-7, 5.3])
def test_every_input_of_16_bits(operator: str, scale: float) -> None:
    content = unary(operator, T("s16", (65536,), scale), T("s16", (), 2.0**-15))
    assert check(content, [[EVERY_S16]]) == "equal"


def test_values_by_hand() -> None:
    """logistic(0) = 128/256; tanh(0) = 0; the ends saturate."""
    session = bittrue.load(unary("LOGISTIC", T("s8", (3,), 0.5), T("s8", (), 1 / 256, -128))).prepare()
    assert session.run(np.int8([0, -128, 127]))["t1"].tolist() == [0, -128, 127]
    session = bittrue.load(unary("TANH", T("s8", (3,), 0.5), T("s8", (), 1 / 128))).prepare()
    assert session.run(np.int8([0, -128, 127]))["t1"].tolist() == [0, -128, 127]


@pytest.mark.parametrize("scale", [6.0, 1e-14])
def test_argument_that_leaves_the_register_is_refused(scale: float) -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-MULTIPLIER"):
        bittrue.load(unary("TANH", T("s16", (1,), scale), T("s16", (), 2.0**-15))).prepare()

"""logistic and tanh against the real runtime."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import bittrue
from bittrue.arithmetic import tables
from support.build import NUMPY, T
from support.differential import assert_same, check, feeds_for
from support.oracle import oracle
from support.strategies import f32, scales, seeds, shapes, zero_points
from support.unary import unary

EVERY_S16 = np.arange(-32768, 32768, dtype=np.int16)


def every(dtype: str) -> np.ndarray:
    return np.arange(256).astype(np.uint8).view(np.int8 if dtype == "s8" else np.uint8)


def table_of_this_machine(x: T, y: T) -> np.ndarray:
    """The results for every input with the C library's tanhf, which need not be rounded correctly."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.tanhf.argtypes, library.tanhf.restype = [ctypes.c_float], ctypes.c_float
    function = np.vectorize(library.tanhf, otypes=[np.float32])
    low, high = (-128, 127) if x.dtype == "s8" else (0, 255)
    table = tables.table_256(function, x.scale, x.zero_point, y.scale, y.zero_point, low, high)
    return table[every(x.dtype).astype(np.intp) - low].astype(NUMPY[y.dtype])


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
    try:
        check(content, [[every(dtype)]])
    except AssertionError:
        # The recorded limit of TANH, and nothing else: this machine's tanhf gives the runtime's table.
        if operator != "TANH":
            raise
        assert_same("tanhf", table_of_this_machine(x, y), oracle().run(content, [[every(dtype)]], [1]).values[1])
        event("explained by tanhf of this machine")


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

"""pow against the real runtime."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.build import T, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, constants, nans, outputs_of, refusal, special_floats
from support.strategies import seeds

Case = tuple[bytes, list[list[np.ndarray]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shapes = draw(broadcast_shapes())
    if draw(st.booleans()):
        shapes = (shapes[0], draw(st.sampled_from([(), (1,), (1, 1)])))
    rng = np.random.default_rng(draw(seeds))
    largest = draw(st.sampled_from([3, 12, 60000, 2**31 - 1]))
    base = rng.integers(-largest - 1, largest, shapes[0], np.int32, endpoint=True)
    powers = rng.integers(
        -1 if draw(st.integers(0, 19)) == 0 else 0, draw(st.sampled_from([4, 40, 2**31 - 1])), shapes[1]
    )
    values = [np.asarray(base, np.int32), np.asarray(powers, np.int32)]
    return binary("POW", None, {}, [T("s32", shape) for shape in shapes], T("s32", ()), values, draw(constants))


@given(cases())
def test_pow(case: Case) -> None:
    # A single exponent above 0 never reaches the loop that cannot broadcast rank 9; bittrue refuses it all the same.
    check(*case, may_refuse={"BT-SHAPE-RANK"})


def test_literal() -> None:
    model = single("POW", None, [T("s32", (6,)), T("s32", (6,))], [T("s32", (6,))])
    feeds = np.int32([2, -2, 0, 2, -2, 3]), np.int32([30, 31, 0, 31, 33, 20])
    lowest = -(2**31)
    assert outputs_of(model, *feeds) == [2**30, lowest, 1, lowest, lowest, lowest]
    # One exponent for all: repeated 32-bit multiplication, which wraps. 3^20 = 3486784401.
    model = single("POW", None, [T("s32", (2,)), T("s32", (1,))], [T("s32", (2,))])
    assert outputs_of(model, np.int32([2, 3]), np.int32([20])) == [2**20, 3486784401 - 2**32]


def test_refusals() -> None:
    model = single("POW", None, [T("s32", (1,)), T("s32", (1,))], [T("s32", (1,))])
    assert refusal(model, np.int32([2]), np.int32([-1])) == "BT-POW-EXPONENT"


@st.composite
def real_cases(draw: st.DrawFn) -> Case:
    """Whole and other exponents; one exponent for all, near integers and at them."""
    shapes = draw(broadcast_shapes())
    rng = np.random.default_rng(draw(seeds))
    nan = draw(nans)
    base = special_floats(rng, shapes[0], nan[0])
    powers = special_floats(rng, shapes[1], nan[1])
    powers = np.where(rng.random(shapes[1]) < 0.5, np.rint(np.clip(powers, -9, 9)), powers).astype(np.float32)
    if draw(st.booleans()):
        shapes = (shapes[0], draw(st.sampled_from([(), (1,), (1, 1)])))
        near = [0.5, 1, 2, 3, 7, 9, 1.000005, 2.00002, 2.99999, -2, 0, 31, 1e10, np.inf, np.nan, 0.999995]
        powers = np.full(shapes[1], draw(st.sampled_from(near)), np.float32)
    if np.isnan(powers).any():
        base = np.where(np.isnan(base), np.float32(2), base)
    values = [np.asarray(base, np.float32).reshape(shapes[0]), np.asarray(powers, np.float32).reshape(shapes[1])]
    return binary("POW", None, {}, [T("f32", shape) for shape in shapes], T("f32", ()), values, draw(constants))


@given(real_cases())
def test_real(case: Case) -> None:
    check(*case, may_refuse={"BT-SHAPE-RANK"})

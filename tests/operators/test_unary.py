"""NEG, SQUARE, FLOOR, ZEROS_LIKE and RANK against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T
from support.differential import check, feeds_for
from support.oracle import oracle
from support.strategies import seeds, shapes
from support.unary import reals, unary

TYPES = {
    "NEG": ["s8", "s16", "s32", "s64", "f32", "f16", "bf16"],
    "SQUARE": ["f32"],
    "FLOOR": ["f32", "f16", "bf16"],
    "ZEROS_LIKE": ["s32", "s64", "f32"],
}


@given(st.data())
@pytest.mark.parametrize("operator", TYPES)
def test_every_type(operator: str, data: st.DataObject) -> None:
    dtype, shape, seed = data.draw(st.sampled_from(TYPES[operator])), data.draw(shapes(0)), data.draw(seeds)
    scale = 0.5 if dtype in ("s8", "s16") else None
    content = unary(operator, T(dtype, shape, scale, 0), T(dtype, (), scale, 0))
    real = dtype in ("f32", "f16", "bf16")
    check(content, [[reals(seed, shape, dtype=NUMPY[dtype])]] if real else feeds_for(content, seed))


@given(dtype=st.sampled_from(["s8", "u8", "s16", "s32", "s64", "f32", "bool"]), shape=shapes(0, 6, 3), seed=seeds)
def test_rank(dtype: str, shape: tuple[int, ...], seed: int) -> None:
    content = unary("RANK", T(dtype, shape), T("s32", ()))
    check(content, feeds_for(content, seed))


def test_values_by_hand() -> None:
    """Negation ignores the zero point, and -128 has no opposite."""
    session = bittrue.load(unary("NEG", T("s8", (3,), 0.5, 7), T("s8", (), 0.5, 7))).prepare()
    assert session.run(np.int8([5, 0, -128]))["t1"].tolist() == [-5, 0, -128]
    session = bittrue.load(unary("FLOOR", T("f32", (3,)), T("f32", ()))).prepare()
    assert session.run(np.float32([-0.5, 2.0, 2.9]))["t1"].tolist() == [-1.0, 2.0, 2.0]
    session = bittrue.load(unary("RANK", T("s8", (2, 1, 3)), T("s32", ()))).prepare()
    assert int(session.run(np.zeros((2, 1, 3), np.int8))["t1"]) == 3


@pytest.mark.parametrize(
    ("operator", "dtype"), [("NEG", "u8"), ("SQUARE", "s8"), ("FLOOR", "s32"), ("ZEROS_LIKE", "s8")]
)
def test_types_that_both_sides_refuse(operator: str, dtype: str) -> None:
    content = unary(operator, T(dtype, (2,), 0.5), T(dtype, (), 0.5))
    assert oracle().run(content, feeds_for(content, 0), [1]).refused
    with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR"):
        bittrue.load(content).prepare()


@given(shape=shapes(0), seed=seeds)
@pytest.mark.numerics("litert-optimized", "xnnpack")
@pytest.mark.parametrize("operator", ["CEIL", "ROUND"])
@pytest.mark.parametrize("declared", [True, False])
def test_other_directions(operator: str, declared: bool, shape: tuple[int, ...], seed: int) -> None:
    """With a declared shape the delegate takes them."""
    content = unary(operator, T("f32", shape), T("f32", shape if declared else ()))
    check(content, [[reals(seed, shape)]])


@pytest.mark.parametrize("operator", ["CEIL", "ROUND"])
def test_operators_that_the_runtime_does_not_register(operator: str) -> None:
    content = unary(operator, T("f32", (2,)), T("f32", ()))
    assert oracle().run(content, feeds_for(content, 0), [1]).refused
    with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR"):
        bittrue.load(content).prepare()

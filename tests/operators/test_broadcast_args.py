"""broadcast_args against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.differential import check
from support.elementwise import outputs_of
from support.selection import Case, given_as, refused_by_both
from support.strategies import seeds


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s32", "s64"]))
    full = draw(st.lists(st.integers(-1, 5), min_size=0, max_size=4))
    rng = np.random.default_rng(draw(seeds))
    shapes = [np.where(rng.random(len(full)) < 0.3, 1, full)[draw(st.integers(0, len(full))) :] for _ in range(2)]
    if dtype == "s64" and draw(st.integers(0, 4)) == 0:
        shapes[0] = shapes[0].astype(np.int64) + (1 << 32)
    return given_as("BROADCAST_ARGS", None, [(dtype, shape) for shape in shapes], [dtype], draw(st.integers(0, 3)))


@given(cases())
def test_broadcast_args(case: Case) -> None:
    check(*case)


def test_literal() -> None:
    content, (feed,) = given_as("BROADCAST_ARGS", None, [("s32", np.array([2, 1])), ("s32", np.array([3]))], ["s32"])
    assert outputs_of(content, *feed) == [2, 3]


@pytest.mark.parametrize("constants", [0, 3])
def test_refusals(constants: int) -> None:
    case = given_as("BROADCAST_ARGS", None, [("s32", np.array([2])), ("s32", np.array([3]))], ["s32"], constants)
    refused_by_both(case, "BT-SHAPE-BROADCAST")
    matrix = given_as("BROADCAST_ARGS", None, [("s32", np.array([[2]])), ("s32", np.array([3]))], ["s32"], constants)
    with pytest.raises(bittrue.InvalidModelError, match="rank 1"):
        bittrue.load(matrix[0]).prepare()

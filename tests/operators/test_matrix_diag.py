"""matrix_set_diag, with and without matrices, against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.elementwise import outputs_of, plain_values
from support.movement import sizes
from support.selection import Case, given_as, refused, refused_by_both
from support.strategies import seeds

TYPES = st.sampled_from(["s8", "u8", "s16", "s32", "u32", "s64", "f32"])


@st.composite
def cases(draw: st.DrawFn, set_diagonal: bool) -> Case:
    dtype, shape = draw(TYPES), draw(sizes(2 if set_diagonal else 1, 4))
    rng = np.random.default_rng(draw(seeds))
    operands = [(dtype, plain_values(rng, dtype, shape, 0x7F812345))]
    if set_diagonal:
        length = min(shape[-2:]) + (draw(st.integers(0, 4)) == 0)
        operands.append((dtype, plain_values(rng, dtype, (*shape[:-2], length), 0x7F812345)))
    return given_as("MATRIX_SET_DIAG" if set_diagonal else "MATRIX_DIAG", None, operands, [dtype])


@given(cases(False))
def test_matrix_diag(case: Case) -> None:
    check(*case)


@given(cases(True))
def test_matrix_set_diag(case: Case) -> None:
    check(*case)


def test_literal() -> None:
    content, (feed,) = given_as("MATRIX_DIAG", None, [("s8", np.array([1, 2]))], ["s8"])
    assert outputs_of(content, *feed) == [[1, 0], [0, 2]]
    operands = [("s8", np.full((2, 3), 7)), ("s8", np.array([1, 2]))]
    content, (feed,) = given_as("MATRIX_SET_DIAG", None, operands, ["s8"])
    assert outputs_of(content, *feed) == [[1, 7, 7], [7, 2, 7]]


def test_refusals() -> None:
    refused_by_both(given_as("MATRIX_DIAG", None, [("s8", np.array(1))], ["s8"]), "BT-SHAPE-RANK")
    vector = [("s8", np.array([1])), ("s8", np.array([1]))]
    refused_by_both(given_as("MATRIX_SET_DIAG", None, vector, ["s8"]), "BT-SHAPE-RANK")
    # The runtime reads beyond the diagonal.
    short = [("s8", np.ones((2, 2))), ("s8", np.array([1]))]
    refused(given_as("MATRIX_SET_DIAG", None, short, ["s8"]), "BT-DIAGONAL")


@pytest.mark.parametrize("dtype", ["bool", "f16", "f64"])
def test_types_that_the_runtime_moves_as_binary32(dtype: str) -> None:
    with pytest.raises(bittrue.UnsupportedError, match="as if they were binary32"):
        bittrue.load(single("MATRIX_DIAG", None, [T(dtype, (2,))], [T(dtype, ())])).prepare()

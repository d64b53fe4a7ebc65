"""dynamic_update_slice against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import NUMPY
from support.differential import check, random_values
from support.elementwise import outputs_of
from support.movement import EVERY, sizes
from support.selection import Case, given_as, refused_by_both
from support.strategies import seeds

TYPES = st.sampled_from(("s4", *EVERY, "c128"))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype, shape = draw(TYPES), draw(sizes(0, 5))
    rng = np.random.default_rng(draw(seeds))
    box = tuple(int(rng.integers(0 if draw(st.integers(0, 9)) == 0 else min(1, e), e + 1)) for e in shape)
    corner = rng.integers(-2, 5, len(shape))
    index = draw(st.sampled_from(["s32", "s64"]))
    if index == "s64" and draw(st.integers(0, 4)) == 0:
        corner = corner + (rng.integers(-2, 3, len(shape)) << 33)
    values = []
    for found in (shape, box):
        if dtype == "s4":
            values.append(rng.integers(-8, 8, found))
        else:
            values.append(random_values(rng, np.dtype(NUMPY[dtype]), found))
    operands = [(dtype, values[0]), (dtype, values[1]), (index, corner)]
    return given_as("DYNAMIC_UPDATE_SLICE", None, operands, [dtype], draw(st.sampled_from([0, 2, 4, 5])), version=6)


@given(cases())
def test_dynamic_update_slice(case: Case) -> None:
    check(*case)


def literal(corner: object = (1, 1), update: object = ((5,), (6,))) -> Case:
    operands = [("s8", np.arange(6).reshape(2, 3)), ("s8", np.array(update)), ("s32", np.array(corner))]
    return given_as("DYNAMIC_UPDATE_SLICE", None, operands, ["s8"])


def test_literal() -> None:
    content, (feed,) = literal()
    # The corner moves up by one row, so that both rows of the update fit.
    assert outputs_of(content, *feed) == [[0, 5, 2], [3, 6, 5]]


@pytest.mark.parametrize(
    "changes", [{"corner": [1]}, {"corner": [[1, 1]]}, {"update": [[1], [2], [3]]}, {"update": [1, 2]}]
)
def test_refusals(changes: dict[str, object]) -> None:
    refused_by_both(literal(**changes), "BT-UPDATE-SLICE")


def test_at_most_eight_axes() -> None:
    shape = (1,) * 8 + (2,)
    operands = [("s8", np.ones(shape)), ("s8", np.ones((1,) * 9)), ("s32", np.zeros(9))]
    refused_by_both(given_as("DYNAMIC_UPDATE_SLICE", None, operands, ["s8"]), "BT-SHAPE-RANK")

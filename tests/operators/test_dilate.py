"""DILATE and STABLEHLO_PAD against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import NUMPY
from support.differential import check, random_values
from support.elementwise import outputs_of
from support.movement import EVERY, sizes
from support.selection import Case, given_as, refused, refused_by_both
from support.strategies import seeds

TYPES = st.sampled_from((*EVERY, "c128"))


@st.composite
def dilate(draw: st.DrawFn) -> Case:
    dtype, shape = draw(TYPES), draw(sizes(1, 5, 3).filter(lambda found: 0 not in found))
    rng = np.random.default_rng(draw(seeds))
    factors = [draw(st.integers(1, 3)) for _ in shape]
    single = draw(st.sampled_from([(), (1,)]))
    x, value = (random_values(rng, np.dtype(NUMPY[dtype]), found) for found in (shape, single))
    operands = [(dtype, x), ("s32", np.array(factors)), (dtype, value)]
    return given_as("DILATE", None, operands, [dtype], 2 | draw(st.sampled_from([0, 4])))


@given(dilate())
def test_dilate(case: Case) -> None:
    check(*case)


def padding(x: object, value: object, low: object, high: object, inner: object, dtype: str = "s8") -> Case:
    fields = {
        "edgePaddingLow": np.array(low, np.int64),
        "edgePaddingHigh": np.array(high, np.int64),
        "interiorPadding": np.array(inner, np.int64),
    }
    operands = [(dtype, np.asarray(x)), (dtype, np.asarray(value))]
    return given_as("STABLEHLO_PAD", ("StablehloPadOptions", fields), operands, [dtype])


@st.composite
def stablehlo_pad(draw: st.DrawFn) -> Case:
    dtype, shape = draw(TYPES), draw(sizes(1, 4))
    rng = np.random.default_rng(draw(seeds))
    low, high = ([draw(st.integers(-4, 4)) for _ in shape] for _ in range(2))
    inner = [draw(st.integers(0, 2)) for _ in shape]
    x, value = (random_values(rng, np.dtype(NUMPY[dtype]), found) for found in (shape, ()))
    return padding(x, value, low, high, inner, dtype)


@given(stablehlo_pad())
def test_stablehlo_pad(case: Case) -> None:
    check(*case)


def test_literal() -> None:
    operands = [("s8", np.array([1, 2])), ("s32", np.array([3])), ("s8", np.array(7))]
    content, (feed,) = given_as("DILATE", None, operands, ["s8"], 6)
    assert outputs_of(content, *feed) == [1, 7, 7, 2]
    content, (feed, *_) = padding([1, 2, 3], 0, [-1], [1], [2])
    assert outputs_of(content, *feed) == [0, 0, 2, 0, 0, 3, 0]


@pytest.mark.parametrize("factors", [[0], [1, 1], [[2]]])
def test_refusals_of_dilate(factors: object) -> None:
    operands = [("s8", np.array([1, 2])), ("s32", np.array(factors)), ("s8", np.array(7))]
    case = given_as("DILATE", None, operands, ["s8"], 6)
    refused_by_both(case, "BT-SHAPE-RANK" if factors == [[2]] else "BT-DILATE")


def test_refusals_of_stablehlo_pad() -> None:
    refused_by_both(padding([1, 2], 0, [0], [0], [-1]), "BT-PAD")
    refused_by_both(padding(1, 0, [], [], []), "BT-SHAPE-RANK")
    # The runtime takes the numbers that are missing from wherever.
    refused(padding([[1, 2]], 0, [0], [0], [0]), "BT-PAD")

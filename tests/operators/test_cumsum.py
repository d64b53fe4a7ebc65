"""cumsum against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.differential import check
from support.elementwise import outputs_of, plain_values
from support.movement import sizes
from support.selection import Case, given_as, refused_by_both
from support.strategies import seeds


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s32", "s64", "f32"]))
    shape = draw(sizes(1, 4, draw(st.sampled_from([4, 4, 9]))))
    rng = np.random.default_rng(draw(seeds))
    x = plain_values(rng, dtype, shape)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    options = {"exclusive": draw(st.booleans()), "reverse": draw(st.booleans())}
    axes = np.full(draw(st.sampled_from([(), (1,)])), axis)
    return given_as("CUMSUM", ("CumsumOptions", options), [(dtype, x), ("s32", axes)], [dtype], 2)


@given(cases())
def test_cumsum(case: Case) -> None:
    check(*case)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [(0, 0, [1, 3, 6]), (1, 0, [0, 1, 3]), (0, 1, [6, 5, 3]), (1, 1, [5, 3, 0])],
)
def test_literal(exclusive: int, reverse: int, expected: list[int]) -> None:
    options = ("CumsumOptions", {"exclusive": bool(exclusive), "reverse": bool(reverse)})
    content, (feed,) = given_as("CUMSUM", options, [("s32", np.array([1, 2, 3])), ("s32", np.array(0))], ["s32"], 2)
    assert outputs_of(content, *feed) == expected


def test_sums_begin_at_plus_zero_and_integers_wrap() -> None:
    content, _ = given_as("CUMSUM", None, [("f32", np.zeros(2)), ("s32", np.array(0))], ["f32"], 2)
    check(content, [[np.float32([-0.0, -0.0])]])
    assert not np.signbit(np.float32(outputs_of(content, np.float32([-0.0, -0.0])))).any()
    content, _ = given_as("CUMSUM", None, [("s32", np.zeros(2)), ("s32", np.array(0))], ["s32"], 2)
    assert outputs_of(content, np.int32([2**31 - 1, 1])) == [2**31 - 1, -(2**31)]


@pytest.mark.parametrize(
    ("shape", "axes", "code"),
    [((2, 2), 2, "BT-SHAPE-AXIS"), ((2, 2), [0, 1], "BT-CUMSUM"), ((), 0, "BT-SHAPE-RANK")],
)
def test_refusals(shape: tuple[int, ...], axes: object, code: str) -> None:
    refused_by_both(given_as("CUMSUM", None, [("s32", np.ones(shape)), ("s32", np.array(axes))], ["s32"], 2), code)

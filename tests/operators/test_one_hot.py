"""one_hot against the real runtime."""

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

TYPES = st.sampled_from(["s8", "u8", "s32", "s64", "f32", "bool"])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype, index = draw(TYPES), draw(st.sampled_from(["s32", "s64"]))
    shape, depth = draw(sizes(0, 3)), draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(seeds))
    indices = rng.integers(-1, depth + 2, shape)
    if index == "s64" and draw(st.booleans()):
        indices = indices + (rng.integers(-2, 3, shape) << 32)
    single = draw(st.sampled_from([(), (1,), (1, 1)]))
    on, off = (plain_values(rng, dtype, single, 0x7F812345) for _ in range(2))
    axis = draw(st.integers(-1, len(shape)))
    # Whatever the depth's type, its low 32 bits are read.
    kind, count = draw(st.sampled_from([("s32", depth), ("s64", depth), ("s64", depth + (3 << 32))]))
    operands = [(index, indices), (kind, np.full(draw(st.sampled_from([(), (1,)])), count)), (dtype, on), (dtype, off)]
    constants = 2 | draw(st.sampled_from([0, 12, 13, 4]))
    return given_as("ONE_HOT", ("OneHotOptions", {"axis": axis}), operands, [dtype], constants)


@given(cases())
def test_one_hot(case: Case) -> None:
    check(*case)


def literal(axis: int = -1, depth: object = 3, on: object = 5) -> Case:
    operands = [("s32", np.array([2, 0, 7])), ("s32", np.array(depth)), ("s8", np.array(on)), ("s8", np.array(-1))]
    return given_as("ONE_HOT", ("OneHotOptions", {"axis": axis}), operands, ["s8"], 14)


def test_literal() -> None:
    content, (feed,) = literal()
    assert outputs_of(content, *feed) == [[-1, -1, 5], [5, -1, -1], [-1, -1, -1]]
    content, (feed,) = literal(axis=0)
    assert outputs_of(content, *feed) == [[-1, 5, -1], [-1, -1, -1], [5, -1, -1]]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"axis": 2}, "BT-SHAPE-AXIS"),
        ({"axis": -2}, "BT-SHAPE-AXIS"),
        ({"depth": -1}, "BT-SHAPE-NEGATIVE"),
        ({"depth": [1, 2]}, "BT-ONE-HOT"),
        ({"on": [1, 2]}, "BT-ONE-HOT"),
    ],
)
def test_refusals(changes: dict[str, object], code: str) -> None:
    refused_by_both(literal(**changes), code)  # type: ignore[arg-type]

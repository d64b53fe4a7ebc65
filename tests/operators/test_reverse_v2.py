"""reverse_v2 against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import COMMON, constant, feeds, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeds


@st.composite
def reverse(draw: st.DrawFn) -> tuple[bytes, np.ndarray | None]:
    dtype, shape = draw(st.sampled_from((*COMMON, "f16", "bf16", "bool"))), draw(sizes(1, 5))
    first = draw(st.integers(0, len(shape) - 1))
    axes = draw(st.permutations(range(first, draw(st.integers(first + 1, len(shape))))))
    axes = [axis - len(shape) if draw(st.booleans()) else axis for axis in axes]
    if draw(st.integers(0, 9)) == 0:
        axes[0] = draw(st.integers(-6, 6))
    fixed = draw(st.booleans())
    index = constant(axes) if fixed else T("s32", (len(axes),))
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, (), draw(parameters(dtype)))
    return single("REVERSE_V2", None, [x, index], [y], version=3), None if fixed else np.int32(axes)


@given(reverse(), seeds)
def test_reverse(case: tuple[bytes, np.ndarray | None], seed: int) -> None:
    content, axes = case
    (inputs,) = feeds(content, seed)
    if axes is not None:
        inputs[1] = axes
    check(content, [inputs])


def test_one_axis() -> None:
    content = single("REVERSE_V2", None, [T("s8", (2, 2)), constant([1])], [T("s8", (), name="y")])
    assert bittrue.load(content).prepare().run(np.int8([[1, 2], [3, 4]]))["y"].tolist() == [[2, 1], [4, 3]]


@pytest.mark.parametrize("axes", [[0, 2], [3], [0, 0], [0, 1, 2, 2], []])
def test_errors(axes: list[int]) -> None:
    content = single("REVERSE_V2", None, [T("s8", (2, 2, 2)), constant(axes, shape=(len(axes),))], [T("s8", ())])
    with pytest.raises(bittrue.InvalidModelError, match="BT-REVERSE"):
        bittrue.load(content).prepare()
    assert not runs_in_runtime(content, [np.zeros((2, 2, 2), np.int8)])


def test_axes_given_at_run_time_are_checked_then() -> None:
    content = single("REVERSE_V2", None, [T("s8", (2, 2, 2)), T("s32", (2,))], [T("s8", ())])
    session = bittrue.load(content).prepare()
    with pytest.raises(bittrue.RunError, match="BT-REVERSE"):
        session.run(np.zeros((2, 2, 2), np.int8), np.int32([0, 2]))

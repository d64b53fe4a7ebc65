"""slice against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import EVERY, constant, feeds, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeds


@st.composite
def slices(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(st.sampled_from((*EVERY, "s4"))), draw(sizes(0, 6, 4))
    begin, size, result = [], [], []
    for dimension in shape:
        start = draw(st.integers(0, dimension))
        length = draw(st.integers(0, dimension - start))
        if draw(st.integers(0, 3)) == 0:
            length = dimension - start
        result.append(length)
        begin.append(start)
        size.append(-1 if length == dimension - start and draw(st.booleans()) else length)
    if shape and draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(shape) - 1))
        begin[at] += draw(st.integers(-5, 5))
        size[at] += draw(st.integers(-2, 5))
    if draw(st.integers(0, 15)) == 0:
        begin.append(0)
        size.append(1)
    kind = draw(st.sampled_from(["s32", "s64"]))
    if result and draw(st.integers(0, 15)) == 0:
        result[0] = draw(st.integers(1, 4))
    declared = result if draw(st.booleans()) else ()
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, declared, draw(parameters(dtype)))
    count = (len(begin),)
    return single("SLICE", None, [x, constant(begin, kind, count), constant(size, kind, count)], [y], version=6)


@given(slices(), seeds)
def test_slice(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_a_size_of_minus_one_reaches_to_the_end() -> None:
    content = single("SLICE", None, [T("s8", (2, 3)), constant([1, 1]), constant([-1, -1])], [T("s8", (), name="y")])
    assert bittrue.load(content).prepare().run(np.int8([[1, 2, 3], [4, 5, 6]]))["y"].tolist() == [[5, 6]]


@pytest.mark.parametrize(
    ("begin", "size", "declared", "code"),
    [
        ([0, 0], [3, 1], (), "BT-SLICE"),
        ([0, 0], [-2, 1], (), "BT-SLICE"),
        ([0, 0], [1], (), "BT-SLICE"),
        ([-1, 0], [1, 1], (), "BT-SLICE"),
        ([0], [1], (), "BT-SLICE"),
        ([0, 0], [2, 3], (1, 3), "BT-SLICE-SHAPE"),
    ],
)
def test_errors(begin: list[int], size: list[int], declared: tuple[int, ...], code: str) -> None:
    content = single("SLICE", None, [T("s8", (2, 3)), constant(begin), constant(size)], [T("s8", declared)])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, [np.zeros((2, 3), np.int8)])


def test_resized_input_without_declared_shape() -> None:
    content = single("SLICE", None, [T("s8", (1, 3)), constant([0, 1]), constant([-1, 2])], [T("s8", ())])
    assert check(content, [[np.arange(12, dtype=np.int8).reshape(4, 3)]]) == "equal"

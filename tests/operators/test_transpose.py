"""transpose against the real runtime."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from bittrue.graph.types import data_type
from support.build import T, single
from support.differential import check
from support.movement import EVERY, constant, feeds, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeds


@st.composite
def transpose(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(st.sampled_from((*EVERY, "s4"))), draw(sizes(1, 6, 3))
    order = draw(st.permutations(range(len(shape))))
    order = [axis - len(shape) if draw(st.booleans()) else axis for axis in order]
    if draw(st.integers(0, 15)) == 0:
        order[draw(st.integers(0, len(order) - 1))] = draw(st.sampled_from([-len(shape) - 1, len(shape)]))
    if draw(st.integers(0, 20)) == 0:
        order.append(0)
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, (), draw(parameters(dtype)))
    return single("TRANSPOSE", None, [x, constant(order)], [y], version=4)


@given(transpose(), seeds)
def test_transpose(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_rows_become_columns() -> None:
    content = single("TRANSPOSE", None, [T("s8", (2, 3)), constant([1, 0])], [T("s8", (), name="y")])
    values = bittrue.load(content).prepare().run(np.int8([[1, 2, 3], [4, 5, 6]]))
    assert values["y"].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert values["y"].flags.c_contiguous


@pytest.mark.parametrize("dtype", ["u8", "s16", "f32", "s64"])
def test_squares_and_what_is_left_of_them(dtype: str) -> None:
    for rows, columns in itertools.product((8, 9, 15, 16, 17, 31, 64, 67, 80), repeat=2):
        content = single("TRANSPOSE", None, [T(dtype, (rows, columns)), constant([1, 0])], [T(dtype, (), name="y")])
        x = (np.arange(rows * columns) * 7 % 251).reshape(rows, columns).astype(data_type(dtype).numpy)
        assert np.array_equal(bittrue.load(content).prepare().run(x)["y"], x.T), (rows, columns)


@pytest.mark.parametrize(
    ("shape", "order", "code", "runtime_refuses"),
    [
        ((2, 3), [0, 2], "BT-SHAPE-AXIS", True),
        ((2, 3), [0, 1, 2], "BT-TRANSPOSE", True),
        ((1,) * 9, list(range(9)), "BT-SHAPE-RANK", True),
        # Recorded limits: the kernel reads the wrong elements.
        ((2, 3), [1, 1], "BT-TRANSPOSE", False),
        ((), [], "BT-SHAPE-RANK", False),
    ],
)
def test_errors(shape: tuple[int, ...], order: list[int], code: str, runtime_refuses: bool) -> None:
    content = single("TRANSPOSE", None, [T("s8", shape), constant(order, shape=(len(order),))], [T("s8", ())])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    if runtime_refuses:
        assert not runs_in_runtime(content, feeds(content, 0)[0])

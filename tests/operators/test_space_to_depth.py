"""space_to_depth and depth_to_space against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import feeds, parameters, runs_in_runtime, tensor
from support.strategies import seeds

TYPES = st.sampled_from(["s8", "u8", "s32", "s64", "f32"])


@st.composite
def exchange(draw: st.DrawFn, operator: str) -> bytes:
    dtype = draw(TYPES)
    block = draw(st.sampled_from([1, 2, 2, 3, 4, 0, -1])) if draw(st.integers(0, 4)) == 0 else draw(st.integers(1, 4))
    small = [draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 3)) for _ in range(4)]
    shape = list(small)
    if operator == "SPACE_TO_DEPTH":
        shape[1:3] = [small[1] * max(block, 1), small[2] * max(block, 1)]
    else:
        shape[3] *= max(block, 1) ** 2
    if draw(st.integers(0, 15)) == 0:
        shape[draw(st.integers(0, 3))] += 1
    if draw(st.integers(0, 20)) == 0:
        shape = shape[1:]
    options = ("SpaceToDepthOptions" if operator == "SPACE_TO_DEPTH" else "DepthToSpaceOptions", {"blockSize": block})
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, (), draw(parameters(dtype)))
    return single(operator, options, [x], [y])


@given(exchange("SPACE_TO_DEPTH"), seeds)
def test_space_to_depth(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(exchange("DEPTH_TO_SPACE"), seeds)
def test_depth_to_space(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_a_square_becomes_channels() -> None:
    options = ("SpaceToDepthOptions", {"blockSize": 2})
    content = single("SPACE_TO_DEPTH", options, [T("s8", (1, 2, 2, 1))], [T("s8", (), name="y")])
    values = bittrue.load(content).prepare().run(np.int8([[[[1], [2]], [[3], [4]]]]))
    assert values["y"].tolist() == [[[[1, 2, 3, 4]]]]


@pytest.mark.parametrize(
    ("operator", "table", "shape", "block", "code"),
    [
        ("SPACE_TO_DEPTH", "SpaceToDepthOptions", (1, 3, 2, 1), 2, "BT-BLOCK-SIZE"),
        ("SPACE_TO_DEPTH", "SpaceToDepthOptions", (1, 2, 2), 2, "BT-SHAPE-RANK"),
        ("DEPTH_TO_SPACE", "DepthToSpaceOptions", (1, 1, 1, 6), 2, "BT-BLOCK-SIZE"),
        ("DEPTH_TO_SPACE", "DepthToSpaceOptions", (1, 1, 1, 4), 0, "BT-BLOCK-SIZE"),
    ],
)
def test_errors(operator: str, table: str, shape: tuple[int, ...], block: int, code: str) -> None:
    content = single(operator, (table, {"blockSize": block}), [T("s8", shape)], [T("s8", ())])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, [np.zeros(shape, np.int8)])

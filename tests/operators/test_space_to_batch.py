"""space_to_batch and batch_to_space against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import EVERY, constant, feeds, nearly, parameters, runs_in_runtime, tensor
from support.strategies import seeds

TYPES = st.sampled_from((*EVERY, "s8", "u8", "s16"))


@st.composite
def blocks(draw: st.DrawFn, operator: str) -> bytes:
    dtype = draw(TYPES)
    axes = draw(st.integers(1, 2))
    block = [draw(st.integers(1, 3)) for _ in range(axes)]
    batch, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    spatial, pairs = [], []
    for size in block:
        if operator == "SPACE_TO_BATCH_ND":
            # Negative paddings cut off; the kernel does not forbid them.
            before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
            if draw(st.integers(0, 5)) == 0:
                before, after = before - 3, after - 2
            spatial.append(max(0, draw(st.integers(1, 4)) * size - before - after))
            pairs.append((before, after))
        else:
            spatial.append(draw(st.integers(1, 4)))
            pairs.append((draw(st.integers(0, 2)), draw(st.integers(0, 2))))
    shape = [batch if operator == "SPACE_TO_BATCH_ND" else batch * int(np.prod(block)), *spatial, depth]
    if draw(st.integers(0, 12)) == 0:
        shape[draw(st.integers(0, len(shape) - 1))] = draw(st.integers(0, 5))
    if draw(st.integers(0, 20)) == 0:
        block[0] = draw(st.integers(-2, 5))
    if draw(st.integers(0, 20)) == 0:
        pairs[0] = (draw(st.integers(-9, 9)), 0)
    if draw(st.integers(0, 20)) == 0:
        shape.append(1)
    common = draw(parameters(dtype))
    inputs = [tensor(dtype, shape, common), constant(block), constant(pairs)]
    return single(operator, None, inputs, [tensor(dtype, (), draw(nearly(dtype, common)))], version=3)


@given(blocks("SPACE_TO_BATCH_ND"), seeds)
def test_space_to_batch(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(blocks("BATCH_TO_SPACE_ND"), seeds)
def test_batch_to_space(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_padding_is_the_zero_point() -> None:
    x, y = T("s8", (1, 2, 1), 0.5, -9), T("s8", (), 0.5, -9, name="y")
    content = single("SPACE_TO_BATCH_ND", None, [x, constant([2]), constant([[1, 1]])], [y], version=3)
    values = bittrue.load(content).prepare().run(np.int8([[[1], [2]]]))
    assert values["y"].tolist() == [[[-9], [2]], [[1], [-9]]]


@pytest.mark.parametrize(
    ("operator", "shape", "block", "pairs", "code"),
    [
        ("SPACE_TO_BATCH_ND", (1, 3, 1), [2], [[0, 0]], "BT-BLOCK-SHAPE"),
        ("SPACE_TO_BATCH_ND", (1, 2, 1), [0], [[0, 0]], "BT-BLOCK-SHAPE"),
        ("SPACE_TO_BATCH_ND", (1, 2, 1), [2], [[-4, 0]], "BT-BLOCK-SHAPE"),
        ("SPACE_TO_BATCH_ND", (1, 2), [2], [[0, 0]], "BT-SHAPE-RANK"),
        ("BATCH_TO_SPACE_ND", (3, 2, 1), [2], [[0, 0]], "BT-BLOCK-SHAPE"),
        ("BATCH_TO_SPACE_ND", (2, 2, 1), [2], [[-1, 0]], "BT-BLOCK-SHAPE"),
        ("BATCH_TO_SPACE_ND", (2, 2, 1), [2], [[3, 3]], "BT-SHAPE-NEGATIVE"),
        ("BATCH_TO_SPACE_ND", (2, 2, 1), [2, 1], [[0, 0]], "BT-BLOCK-SHAPE"),
    ],
)
def test_errors(operator: str, shape: tuple[int, ...], block: list[int], pairs: list[list[int]], code: str) -> None:
    content = single(operator, None, [T("s32", shape), constant(block), constant(pairs)], [T("s32", ())])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, feeds(content, 0)[0])

"""tile, broadcast_to and fill against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import EVERY, constant, feeds, nearly, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeded, seeds

TYPES = st.sampled_from(EVERY)
SIZES = st.sampled_from(["s32", "s64"])


@st.composite
def tile(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(TYPES), draw(sizes(0, 5, 3))
    lowest = -1 if draw(st.integers(0, 20)) == 0 else 0
    multiples = [draw(st.sampled_from([1, 1, 2, 3, lowest])) for _ in shape]
    if draw(st.integers(0, 20)) == 0:
        multiples.append(1)
    x, y = tensor(dtype, shape, draw(parameters(dtype))), tensor(dtype, (), draw(parameters(dtype)))
    return single("TILE", None, [x, constant(multiples, draw(SIZES), (len(multiples),))], [y], version=2)


@st.composite
def broadcast_to(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(st.sampled_from((*EVERY, "c128"))), draw(sizes(0, 4, 3))
    target = [*draw(sizes(0, 2, 3)), *shape]
    kept = [1 if draw(st.booleans()) else size for size in shape]
    if target and draw(st.integers(0, 15)) == 0:
        target[draw(st.integers(0, len(target) - 1))] = draw(st.sampled_from([2, -1]))
    if target and draw(st.integers(0, 20)) == 0:
        target = target[1:]
    x, y = tensor(dtype, kept, draw(parameters(dtype))), tensor(dtype, (), draw(parameters(dtype)))
    return single("BROADCAST_TO", None, [x, constant(target, draw(SIZES), (len(target),))], [y], version=3)


@st.composite
def fill(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(TYPES), list(draw(sizes(0, 5)))
    if shape and draw(st.integers(0, 20)) == 0:
        shape[0] = -1
    common = draw(parameters(dtype))
    size = (1,) if draw(st.integers(0, 20)) == 0 else ()
    data = seeded(dtype, size, draw(seeds)) if draw(st.booleans()) else None
    inputs = [constant(shape, draw(SIZES), (len(shape),)), tensor(dtype, size, common, data)]
    return single("FILL", None, inputs, [tensor(dtype, (), draw(nearly(dtype, common)))], version=4)


@given(tile(), seeds)
def test_tile(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(broadcast_to(), seeds)
def test_broadcast_to(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(fill(), seeds)
def test_fill(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_repeated() -> None:
    content = single("TILE", None, [T("s8", (1, 2)), constant([2, 2])], [T("s8", (), name="y")])
    assert bittrue.load(content).prepare().run(np.int8([[1, 2]]))["y"].tolist() == [[1, 2, 1, 2]] * 2
    content = single("BROADCAST_TO", None, [T("s8", (2, 1)), constant([2, 2])], [T("s8", (), name="y")], version=2)
    assert bittrue.load(content).prepare().run(np.int8([[1], [2]]))["y"].tolist() == [[1, 1], [2, 2]]
    content = single("FILL", None, [constant([2, 2]), T("s8", ())], [T("s8", (), name="y")])
    result = bittrue.load(content).prepare().run(np.int8(7))["y"]
    assert result.tolist() == [[7, 7], [7, 7]]
    assert result.flags.writeable


@pytest.mark.parametrize(
    ("operator", "inputs", "code", "runtime_refuses"),
    [
        ("TILE", [T("s8", (2,)), constant([1, 1])], "BT-TILE", True),
        ("TILE", [T("s8", (2,)), constant([-1])], "BT-TILE", True),
        ("BROADCAST_TO", [T("s8", (2, 3)), constant([3])], "BT-SHAPE-BROADCAST", True),
        ("BROADCAST_TO", [T("s8", (2,)), constant([3])], "BT-SHAPE-BROADCAST", True),
        ("BROADCAST_TO", [T("s8", (1,)), constant([-3])], "BT-SHAPE-NEGATIVE", True),
        ("FILL", [constant([-1]), T("s8", ())], "BT-SHAPE-NEGATIVE", True),
        ("FILL", [constant([2]), T("s8", (1,))], "BT-SHAPE-RANK", True),
        ("FILL", [constant([2]), T("s8", (), 0.5, 1)], "BT-QUANT-SAME", True),
        ("TILE", [T("s8", (2, 2)), constant([2**30, 2**30])], "BT-SHAPE-LARGE", True),
        ("TILE", [T("s8", (1, 1)), constant([2**30, 2**30])], "BT-MEMORY", False),
        ("TILE", [T("s8", (0, 1, 1)), constant([1, 2**30, 2**30])], "BT-SHAPE-LARGE", False),
        ("BROADCAST_TO", [T("s8", (1,)), constant([2**40], "s64")], "BT-SHAPE-LARGE", False),
        ("BROADCAST_TO", [T("s8", (1,)), constant([2**31 - 1] * 2)], "BT-MEMORY", False),
        ("FILL", [constant([2**20] * 3, "s64"), T("s8", ())], "BT-MEMORY", False),
        ("FILL", [constant([1] * 33), T("s8", ())], "BT-SHAPE-RANK", False),
    ],
)
def test_errors(operator: str, inputs: list[T], code: str, runtime_refuses: bool) -> None:
    content = single(operator, None, inputs, [T("s8", ())], version=2)
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    if runtime_refuses:
        assert not runs_in_runtime(content, feeds(content, 0)[0])

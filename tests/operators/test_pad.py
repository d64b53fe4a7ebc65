"""PAD, PADV2 and MIRROR_PAD against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import COMMON, EVERY, constant, feeds, nearly, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeded, seeds


@st.composite
def pad(draw: st.DrawFn) -> bytes:
    dtype = draw(st.sampled_from(("s8", "u8", "s16", *COMMON, "f16", "bf16", "bool")))
    shape = draw(sizes(0, 5, 3))
    lowest = -1 if draw(st.integers(0, 15)) == 0 else 0
    paddings = draw(st.lists(st.tuples(*[st.integers(lowest, 3)] * 2), min_size=len(shape), max_size=len(shape)))
    if len(shape) == 4 and draw(st.booleans()):
        paddings[0] = paddings[3] = (0, 0)
    rows = constant(paddings, draw(st.sampled_from(["s32", "s32", "s64", "s8", "s16"])), (len(paddings), 2))
    common = draw(parameters(dtype))
    inputs = [tensor(dtype, shape, draw(nearly(dtype, common))), rows]
    if draw(st.booleans()):
        size = draw(st.sampled_from([(), (1,), (1, 1), (2,)] if draw(st.integers(0, 4)) == 0 else [()]))
        data = seeded(dtype, size, draw(seeds)) if draw(st.booleans()) else None
        inputs.append(tensor(dtype, size, draw(nearly(dtype, common)), data))
    operator = draw(st.sampled_from(["PAD", "PADV2"]))
    return single(operator, None, inputs, [tensor(dtype, (), common)], version=4)


@st.composite
def mirror_pad(draw: st.DrawFn) -> bytes:
    dtype = draw(st.sampled_from((*EVERY, "s8", "u8", "s16")))
    shape = draw(sizes(0, 4))
    mode = draw(st.integers(0, 1))
    reach = [max(0, size - (mode == 0)) + (draw(st.integers(0, 20)) == 0) for size in shape]
    paddings = [(draw(st.integers(0, limit)), draw(st.integers(0, limit))) for limit in reach]
    rows = constant(paddings, draw(st.sampled_from(["s32", "s64"])), (len(paddings), 2))
    common = draw(parameters(dtype))
    x, y = tensor(dtype, shape, common), tensor(dtype, (), draw(nearly(dtype, common)))
    return single("MIRROR_PAD", ("MirrorPadOptions", {"mode": mode}), [x, rows], [y], version=2)


@given(pad(), seeds)
def test_pad(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(mirror_pad(), seeds)
def test_mirror_pad(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_pad_fills_with_the_zero_point_of_the_output() -> None:
    x, y = T("s8", (2,), 0.5, 3), T("s8", (), 0.25, -7, name="y")
    content = single("PAD", None, [x, constant([[1, 2]])], [y], version=2)
    assert bittrue.load(content).prepare().run(np.int8([1, 2]))["y"].tolist() == [-7, 1, 2, -7, -7]


def test_mirror_pad_modes() -> None:
    for mode, expected in ((0, [3, 2, 1, 2, 3, 2, 1]), (1, [2, 1, 1, 2, 3, 3, 2])):
        options = ("MirrorPadOptions", {"mode": mode})
        content = single("MIRROR_PAD", options, [T("s32", (3,)), constant([[2, 2]])], [T("s32", (), name="y")])
        assert bittrue.load(content).prepare().run(np.int32([1, 2, 3]))["y"].tolist() == expected


@pytest.mark.parametrize(
    ("operator", "inputs", "code"),
    [
        ("PAD", [T("s8", (2,), 0.5, 3), constant([[-1, 0]])], "BT-PAD"),
        ("PAD", [T("s8", (2, 1), 0.5, 3), constant([[1, 0]])], "BT-PAD"),
        ("PAD", [T("s8", (1, 1, 1, 1, 1, 1)), constant([[1, 0]] * 6)], "BT-SHAPE-RANK"),
        ("PADV2", [T("s8", (2,), 0.5, 3), constant([[1, 0]]), T("s8", (), 0.5, 4)], "BT-QUANT-SAME"),
        ("PADV2", [T("s8", (2,), 0.5, 3), constant([[1, 0]]), T("s8", (2,), 0.5, 3)], "BT-PAD"),
        ("MIRROR_PAD", [T("s8", (2,), 0.5, 3), constant([[2, 0]])], "BT-PAD"),
        ("MIRROR_PAD", [T("s8", (2,), 0.25, 3), constant([[1, 0]])], "BT-QUANT-SAME"),
    ],
)
def test_errors(operator: str, inputs: list[T], code: str) -> None:
    content = single(operator, None, inputs, [T("s8", (), 0.5, 3)], version=2)
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, feeds(content, 0)[0])


@pytest.mark.parametrize("amount", [2**31 - 9, 2**24])
def test_a_huge_border_is_refused_before_it_is_allocated(amount: int) -> None:
    content = single("PAD", None, [T("s64", (1, 1)), constant([[amount, 0]] * 2)], [T("s64", ())])
    with pytest.raises(bittrue.ResourceError, match="BT-MEMORY"):
        bittrue.load(content).prepare()

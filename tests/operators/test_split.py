"""SPLIT, SPLIT_V and UNPACK against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import COMMON, constant, feeds, nearly, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeds


def _axis(draw: st.DrawFn, axis: int, rank: int) -> int:
    if draw(st.integers(0, 20)) == 0:
        return draw(st.sampled_from([-rank - 1, rank]))
    return axis - rank if draw(st.booleans()) else axis


@st.composite
def split(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(st.sampled_from(COMMON)), list(draw(sizes(1, 4)))
    axis, count = draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 4))
    shape[axis] = count * draw(st.integers(0, 3)) + (draw(st.integers(0, 15)) == 0)
    x = tensor(dtype, shape, draw(parameters(dtype)))
    outputs = [tensor(dtype, (), draw(parameters(dtype))) for _ in range(count)]
    options = ("SplitOptions", {"numSplits": count + (draw(st.integers(0, 20)) == 0)})
    place = constant(_axis(draw, axis, len(shape)), shape=draw(st.sampled_from([(), (1,)])))
    return single("SPLIT", options, [place, x], outputs, version=4)


@st.composite
def split_v(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(st.sampled_from(COMMON)), list(draw(sizes(1, 4)))
    axis, parts = draw(st.integers(0, len(shape) - 1)), draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    shape[axis] = sum(parts)
    if draw(st.booleans()):
        parts[draw(st.integers(0, len(parts) - 1))] = -1
    if draw(st.integers(0, 15)) == 0:
        parts[0] = draw(st.integers(-3, 9))
    x = tensor(dtype, shape, draw(parameters(dtype)))
    outputs = [tensor(dtype, (), draw(parameters(dtype))) for _ in parts]
    options = ("SplitVOptions", {"numSplits": len(parts)})
    place = constant(_axis(draw, axis, len(shape)), shape=draw(st.sampled_from([(), (1,)])))
    kind = draw(st.sampled_from(["s32", "s64"]))
    return single("SPLIT_V", options, [x, constant(parts, kind), place], outputs, version=2)


@st.composite
def unpack(draw: st.DrawFn) -> bytes:
    dtype = draw(st.sampled_from(["s8", "u8", "s16", "s32", "f16", "bf16", "f32", "bool"]))
    shape = draw(sizes(1, 4))
    axis = draw(st.integers(0, len(shape) - 1))
    common = draw(parameters(dtype))
    outputs = [tensor(dtype, (), draw(nearly(dtype, common)) if i == 0 else common) for i in range(shape[axis] or 1)]
    options = ("UnpackOptions", {"num": len(outputs), "axis": _axis(draw, axis, len(shape))})
    return single("UNPACK", options, [tensor(dtype, shape, common)], outputs, version=4)


@given(split(), seeds)
def test_split(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(split_v(), seeds)
def test_split_v(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(unpack(), seeds)
def test_unpack(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_parts() -> None:
    outputs = [T("s8", (), name="a"), T("s8", (), name="b")]
    options = ("SplitVOptions", {"numSplits": 2})
    content = single("SPLIT_V", options, [T("s8", (4,)), constant([1, -1]), constant([0])], outputs)
    values = bittrue.load(content).prepare().run(np.int8([1, 2, 3, 4]))
    assert [values["a"].tolist(), values["b"].tolist()] == [[1], [2, 3, 4]]
    content = single("UNPACK", ("UnpackOptions", {"num": 2, "axis": -1}), [T("s8", (2, 2))], outputs)
    values = bittrue.load(content).prepare().run(np.int8([[1, 2], [3, 4]]))
    assert [values["a"].tolist(), values["b"].tolist()] == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("operator", "options", "inputs", "code"),
    [
        ("SPLIT", ("SplitOptions", {"numSplits": 2}), [constant([0]), T("s8", (3,))], "BT-SPLIT"),
        ("SPLIT", ("SplitOptions", {"numSplits": 3}), [constant([0]), T("s8", (3,))], "BT-SPLIT"),
        ("SPLIT", ("SplitOptions", {"numSplits": 2}), [constant([1]), T("s8", (4,))], "BT-SHAPE-AXIS"),
        ("SPLIT_V", ("SplitVOptions", {"numSplits": 2}), [T("s8", (3,)), constant([1, 1]), constant([0])], "BT-SPLIT"),
        (
            "SPLIT_V",
            ("SplitVOptions", {"numSplits": 2}),
            [T("s8", (3,)), constant([-1, -1]), constant([0])],
            "BT-SPLIT",
        ),
        ("SPLIT_V", ("SplitVOptions", {"numSplits": 2}), [T("s8", (3,)), constant([4, -1]), constant([0])], "BT-SPLIT"),
        ("SPLIT_V", ("SplitVOptions", {"numSplits": 2}), [T("s8", (3,)), constant([-2, 5]), constant([0])], "BT-SPLIT"),
        ("UNPACK", ("UnpackOptions", {"num": 2}), [T("s8", (3,))], "BT-SPLIT"),
        ("UNPACK", ("UnpackOptions", {"num": 2}), [T("s8", (2,), 0.5, 1)], "BT-QUANT-SAME"),
        ("UNPACK", ("UnpackOptions", {"num": 2}), [T("s8", (2, 0))], "BT-SPLIT"),
    ],
)
def test_errors(operator: str, options: object, inputs: list[T], code: str) -> None:
    content = single(operator, options, inputs, [T("s8", ()), T("s8", ())])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, feeds(content, 0)[0])

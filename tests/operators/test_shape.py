"""shape against the real runtime, and chains of shape arithmetic that must be known at plan time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, chain, single
from support.differential import check
from support.movement import EVERY, constant, feeds, runs_in_runtime, sizes, tensor
from support.strategies import seeds

TYPE_NUMBERS = {"f32": 0, "s32": 2, "s64": 4}


@given(st.sampled_from(EVERY), sizes(0, 6), st.sampled_from(["s32", "s64"]), seeds)
def test_shape(dtype: str, shape: tuple[int, ...], out: str, seed: int) -> None:
    options = ("ShapeOptions", {"outType": TYPE_NUMBERS[out]})
    content = single("SHAPE", options, [tensor(dtype, shape)], [T(out, ())])
    if shape:  # the interpreter cannot hand out results without elements that it computed while preparing
        check(content, feeds(content, seed))


def flatten(dtype: str = "s8", shape: tuple[int, ...] = (1, 4, 2, 3), size: int = 24) -> tuple[bytes, T]:
    """What a converter makes of a flatten layer: the batch size read from the tensor, the rest fixed."""
    x, y = T(dtype, shape, 0.5, 3, name="x"), T(dtype, (), 0.5, 3, name="y")
    sizes_, batch, target = T("s32", (len(shape),)), T("s32", ()), T("s32", (2,))
    options = ("StridedSliceOptions", {"shrinkAxisMask": 1})
    nodes = [
        ("SHAPE", ("ShapeOptions", {"outType": 2}), [x], [sizes_]),
        ("STRIDED_SLICE", options, [sizes_, constant([0]), constant([1]), constant([1])], [batch]),
        ("PACK", ("PackOptions", {"valuesCount": 2}), [batch, constant(size, shape=())], [target]),
        ("RESHAPE", None, [x, target], [y]),
    ]
    return chain(nodes), y


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_flatten_follows_a_resized_batch(batch: int) -> None:
    content, _ = flatten()
    x = np.arange(batch * 24, dtype=np.int8).reshape(batch, 4, 2, 3)
    assert check(content, [[x]]) == "equal"
    session = bittrue.load(content).prepare(shapes={"x": x.shape})
    assert [step.operator for step in session.plan.steps] == ["reshape"]
    assert session.run(x)["y"].shape == (batch, 24)


@given(st.integers(1, 4), st.integers(1, 3), seeds)
def test_folded_chains(batch: int, channels: int, seed: int) -> None:
    """Shape arithmetic through gather, concatenation, slice, unpack, tile and broadcast_to."""
    x, y, z = T("u8", (batch, 2, 3, channels), 0.5, 3), T("u8", (), 0.5, 3), T("u8", (), 0.5, 3)
    shape, ends, middle, target = T("s32", (4,)), T("s32", (2,)), T("s32", ()), T("s32", ())
    parts = [T("s32", ()) for _ in range(4)]
    wide = T("s32", ())
    nodes = [
        ("SHAPE", ("ShapeOptions", {"outType": 2}), [x], [shape]),
        ("GATHER", None, [shape, constant([0, 3])], [ends]),
        ("SLICE", None, [shape, constant([1]), constant([2])], [middle]),
        ("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), [middle, ends], [target]),
        ("RESHAPE", None, [x, target], [y]),
        ("UNPACK", ("UnpackOptions", {"num": 4}), [shape], parts),
        ("PACK", ("PackOptions", {"valuesCount": 5}), [constant(2, shape=()), *parts], [wide]),
        ("BROADCAST_TO", None, [x, wide], [z], 2),
    ]
    content = chain(nodes)
    check(content, feeds(content, seed))
    assert {s.operator for s in bittrue.load(content).prepare().plan.steps} == {"reshape", "broadcast_to"}


def test_a_saved_plan_needs_no_graph(tmp_path: Path) -> None:
    content, _ = flatten()
    session = bittrue.load(content).prepare(shapes={"x": (2, 4, 2, 3)})
    session.plan.save(tmp_path / "flatten.plan")
    x = np.arange(48, dtype=np.int8).reshape(2, 4, 2, 3)
    loaded = bittrue.load_plan(tmp_path / "flatten.plan").run(x)
    assert np.array_equal(loaded["y"], session.run(x)["y"])


@pytest.mark.parametrize("attribute", ["f32", "s64"])
def test_the_declared_type_must_be_the_computed_one(attribute: str) -> None:
    options = ("ShapeOptions", {"outType": TYPE_NUMBERS[attribute]})
    content = single("SHAPE", options, [T("s8", (2, 3))], [T("s32", ())])
    with pytest.raises(bittrue.InvalidModelError, match="BT-SHAPE-TYPE"):
        bittrue.load(content).prepare()
    if attribute == "f32":
        assert not runs_in_runtime(content, [np.zeros((2, 3), np.int8)])

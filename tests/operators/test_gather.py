"""gather and gather_nd against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, only_output
from support.movement import COMMON, constant, feeds, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeded, seeds

TYPES = (*COMMON, "f16", "bf16", "bool")
POSITIONS = st.sampled_from(["s32", "s32", "s64", "s16"])


@st.composite
def gather(draw: st.DrawFn) -> tuple[bytes, np.ndarray | None]:
    """A model, and the positions when they are an input of it."""
    dtype, shape = draw(st.sampled_from((*TYPES, "s4"))), draw(sizes(1, 4))
    if dtype == "s4" and draw(st.booleans()):
        shape = (*shape, 2)
    axis = draw(st.integers(0, len(shape) - 1))
    batch = draw(st.integers(0, axis))
    count = (*shape[:batch], *draw(sizes(0, 2, 3)))
    rng = np.random.default_rng(draw(seeds))
    wild = draw(st.integers(0, 9)) == 0
    positions = rng.integers(-1 if wild else 0, max(1, shape[axis] + wild), count)
    written = [axis - len(shape) if draw(st.booleans()) else axis, batch]
    if batch and draw(st.booleans()):
        written[1] = batch - len(count)
    if draw(st.integers(0, 20)) == 0:
        written[draw(st.integers(0, 1))] = draw(st.integers(-5, 5))
    kind, fixed = draw(POSITIONS), draw(st.booleans())
    data = seeded(dtype, shape, draw(seeds)) if draw(st.integers(0, 5)) == 0 and not fixed else None
    x = tensor(dtype, shape, draw(parameters(dtype)), data)
    index = T(kind, count, data=positions if fixed else None)
    options = ("GatherOptions", {"axis": written[0], "batchDims": written[1]})
    content = single("GATHER", options, [x, index], [tensor(dtype, (), draw(parameters(dtype)))], version=5)
    return content, None if fixed else positions


@st.composite
def gather_nd(draw: st.DrawFn) -> tuple[bytes, np.ndarray | None]:
    dtype, shape = draw(st.sampled_from(TYPES)), draw(sizes(0 if draw(st.integers(0, 20)) == 0 else 1, 4))
    depth = draw(st.integers(0, len(shape)))
    count = (*draw(sizes(0, 2, 3)), depth)
    rng = np.random.default_rng(draw(seeds))
    wild = draw(st.integers(0, 9)) == 0
    columns = [rng.integers(-1 if wild else 0, max(1, size + wild), count[:-1]) for size in shape[:depth]]
    positions = np.stack(columns, axis=-1) if depth else np.zeros(count, np.int64)
    fixed = draw(st.booleans())
    index = T(draw(POSITIONS), count, data=positions if fixed else None)
    x = tensor(dtype, shape, draw(parameters(dtype)))
    return single("GATHER_ND", None, [x, index], [tensor(dtype, ())], version=4), None if fixed else positions


def with_positions(content: bytes, seed: int, positions: np.ndarray | None) -> list[list[np.ndarray]]:
    (inputs,) = feeds(content, seed)
    if positions is not None:
        inputs[-1] = positions.astype(inputs[-1].dtype)
    return [inputs]


@given(gather(), seeds)
def test_gather(case: tuple[bytes, np.ndarray | None], seed: int) -> None:
    content, positions = case
    check(content, with_positions(content, seed, positions), may_refuse=["BT-SHAPE-HALF-BYTES"])


def test_half_bytes() -> None:
    for width, ok in ((3, False), (4, True)):
        content = single("GATHER", None, [T("s4", (2, width)), constant([1])], [T("s4", ())], version=5)
        if ok:
            assert only_output(content, np.arange(8, dtype=np.int8).reshape(2, 4) - 4).tolist() == [[0, 1, 2, 3]]
        else:
            with pytest.raises(bittrue.InvalidModelError, match="whole bytes"):
                bittrue.load(content).prepare()


@given(gather_nd(), seeds)
def test_gather_nd(case: tuple[bytes, np.ndarray | None], seed: int) -> None:
    content, positions = case
    check(content, with_positions(content, seed, positions))


def test_batch_axes_keep_their_own_positions() -> None:
    options = ("GatherOptions", {"axis": 1, "batchDims": 1})
    y = T("s8", (), name="y")
    content = single("GATHER", options, [T("s8", (2, 3)), constant([[2, 0], [1, 1]])], [y])
    values = bittrue.load(content).prepare().run(np.int8([[1, 2, 3], [4, 5, 6]]))
    assert values["y"].tolist() == [[3, 1], [5, 5]]


def test_coordinates_pick_elements() -> None:
    y = T("s8", (), name="y")
    content = single("GATHER_ND", None, [T("s8", (2, 3)), constant([[0, 2], [1, 0]])], [y])
    values = bittrue.load(content).prepare().run(np.int8([[1, 2, 3], [4, 5, 6]]))
    assert values["y"].tolist() == [3, 4]


@pytest.mark.parametrize("operator", ["GATHER", "GATHER_ND"])
@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_outside_is_an_error_of_the_run(operator: str, position: int) -> None:
    content = single(operator, None, [T("s8", (3,)), T("s32", (1,))], [T("s8", ())])
    inputs = [np.int8([1, 2, 3]), np.int32([position])]
    session = bittrue.load(content).prepare()
    with pytest.raises(bittrue.RunError, match="BT-GATHER-POSITION"):
        session.run(*inputs)
    assert not runs_in_runtime(content, inputs)


def test_no_position_is_too_large_where_nothing_is_read() -> None:
    content = single("GATHER", ("GatherOptions", {"axis": 1}), [T("s8", (0, 3)), T("s32", (1,))], [T("s8", ())])
    assert check(content, [[np.zeros((0, 3), np.int8), np.int32([5])]]) == "equal"


@pytest.mark.parametrize(
    ("operator", "options", "inputs", "code"),
    [
        ("GATHER", ("GatherOptions", {"axis": 2}), [T("s8", (2, 3)), constant([0])], "BT-SHAPE-AXIS"),
        ("GATHER", ("GatherOptions", {"batchDims": 1}), [T("s8", (2, 3)), constant([0])], "BT-GATHER"),
        ("GATHER", ("GatherOptions", {"axis": 1, "batchDims": 1}), [T("s8", (2, 3)), constant([0])], "BT-GATHER"),
        ("GATHER_ND", None, [T("s8", (2,)), constant([[0, 0]])], "BT-GATHER"),
        ("GATHER_ND", None, [T("s8", (0,)), constant([[0]])], "BT-GATHER"),
        ("GATHER_ND", None, [T("s8", (2,)), constant(0, shape=())], "BT-GATHER"),
    ],
)
def test_errors(operator: str, options: object, inputs: list[T], code: str) -> None:
    content = single(operator, options, inputs, [T("s8", ())])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, feeds(content, 0)[0])

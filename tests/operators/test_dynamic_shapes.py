"""Operands that decide shapes and are only known at run time: every operator that has one, against the real runtime."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from support.build import NUMPY, G, T, chain, several, single
from support.differential import assert_same, check, random_values
from support.graphs import assign, f32, fixed, handle, nested_loops, once, read, resource, s32, staged, starting

EXECUTORS = ["reference", *(["native"] if bittrue.isas() else [])]


@dataclass
class Case:
    """One operator: `operands` by position are given at run time, each value of `values` in turn.

    Values that the runtime refuses are among them. The results are declared like input `source`, with free dimensions.
    """

    operator: str
    options: tuple[str, dict[str, Any]] | None
    inputs: list[T]
    operands: tuple[int, ...]
    values: list[tuple[Any, ...]]
    outputs: int = 1
    version: int = 1
    out: T | None = None
    source: int = 0


def s8(*shape: int) -> T:
    return T("s8", shape, 0.5, 3)


def strided(**masks: int) -> tuple[str, dict[str, Any]]:
    return "StridedSliceOptions", {**dict.fromkeys(("beginMask", "endMask", "shrinkAxisMask"), 0), **masks}


CASES = [
    Case(
        "RESHAPE",
        ("ReshapeOptions", {}),
        [s8(2, 6), s32(2)],
        (1,),
        [([3, 4],), ([-1, 2],), ([5, 5],), ([-1, -1],), ([-3, -4],)],
    ),
    Case("RESHAPE", None, [f32(2, 6), s32(1)], (1,), [([12],), ([-1],), ([11],), ([2**31 - 1],)]),
    Case(
        "EXPAND_DIMS", ("ExpandDimsOptions", {}), [s8(2, 3), s32(1)], (1,), [([0],), ([-1],), ([2],), ([3],), ([-4],)]
    ),
    Case("TILE", ("TileOptions", {}), [s8(2, 3), s32(2)], (1,), [([1, 2],), ([3, 1],), ([0, 2],)]),
    Case(
        "BROADCAST_TO",
        ("BroadcastToOptions", {}),
        [s8(2, 1), s32(3)],
        (1,),
        [([4, 2, 3],), ([1, 2, 1],), ([1, 3, 1],), ([2, 2, 0],)],
        version=2,
    ),
    Case("FILL", ("FillOptions", {}), [s32(2), f32()], (0,), [([2, 3],), ([0, 1],), ([-1, 2],)], source=1),
    Case(
        "RANGE",
        ("RangeOptions", {}),
        [s32(), s32(), s32()],
        (0, 1, 2),
        [(0, 7, 2), (5, -3, -3), (4, 4, 1), (0, 5, -1), (0, 5, 0)],
    ),
    Case("RANGE", ("RangeOptions", {}), [f32(), f32(), f32()], (0, 1, 2), [(0, 1, 0.3), (1, -1, -0.7), (0, 5, -1)]),
    Case(
        "SLICE",
        ("SliceOptions", {}),
        [s8(3, 4), s32(2), s32(2)],
        (1, 2),
        [([0, 1], [2, 2]), ([1, 3], [-1, 1]), ([3, 0], [0, 4]), ([2, 2], [2, 1]), ([-1, 0], [1, 1])],
    ),
    Case(
        "SLICE",
        ("SliceOptions", {}),
        [s8(3, 4), s32(2), fixed(1, 2)],
        (1,),
        [([0, 1],), ([2, 2],), ([2, 3],), ([-1, 0],)],
        out=s8(1, 2),
    ),
    Case(
        "STRIDED_SLICE",
        strided(),
        [s8(3, 4), s32(2), s32(2), s32(2)],
        (1, 2, 3),
        [([0, 0], [2, 4], [1, 2]), ([-1, 3], [0, 0], [-1, -1]), ([0, 0], [0, 9], [1, 3])],
    ),
    Case(
        "STRIDED_SLICE",
        strided(shrinkAxisMask=1, endMask=2),
        [s8(3, 4), s32(2), s32(2), fixed(1, 1)],
        (1, 2),
        [([0, 1], [1, 0]), ([2, 0], [3, 0])],
    ),
    Case(
        "PAD",
        ("PadOptions", {}),
        [s8(2, 3), s32(2, 2)],
        (1,),
        [([[0, 1], [2, 0]],), ([[0, 0], [0, 0]],), ([[0, -1], [0, 0]],)],
    ),
    Case(
        "PADV2",
        ("PadV2Options", {}),
        [s8(2, 3), s32(2, 2), T("s8", (), 0.5, 3, data=np.int8(4))],
        (1,),
        [([[0, 1], [2, 0]],), ([[1, 0], [0, 0]],)],
    ),
    Case(
        "MIRROR_PAD",
        ("MirrorPadOptions", {"mode": 1}),
        [s8(2, 3), s32(2, 2)],
        (1,),
        [([[0, 1], [2, 0]],), ([[3, 0], [0, 0]],)],
    ),
    Case(
        "RESIZE_BILINEAR",
        ("ResizeBilinearOptions", {}),
        [s8(1, 2, 3, 2), s32(2)],
        (1,),
        [([4, 5],), ([1, 1],), ([0, 3],), ([-1, 3],)],
    ),
    Case(
        "RESIZE_NEAREST_NEIGHBOR",
        ("ResizeNearestNeighborOptions", {}),
        [s8(1, 2, 3, 2), s32(2)],
        (1,),
        [([4, 5],), ([1, 1],), ([-1, 3],)],
    ),
    Case(
        "TRANSPOSE",
        ("TransposeOptions", {}),
        [s8(2, 3, 4), s32(3)],
        (1,),
        [([2, 0, 1],), ([0, 2, 1],), ([-1, 0, 1],), ([0, 1, 3],)],
    ),
    Case("REVERSE_V2", ("ReverseV2Options", {}), [s8(2, 3), s32(1)], (1,), [([1],), ([0],), ([-1],), ([2],)]),
    Case(
        "SPLIT",
        ("SplitOptions", {"numSplits": 2}),
        [s32(), f32(2, 4)],
        (0,),
        [(0,), (1,), (-1,), (2,)],
        outputs=2,
        source=1,
    ),
    Case(
        "SPLIT_V",
        ("SplitVOptions", {"numSplits": 2}),
        [f32(2, 4), s32(2), s32()],
        (1, 2),
        [([1, 1], 0), ([1, 3], 1), ([-1, 3], -1), ([2, 3], 1)],
        outputs=2,
    ),
    Case(
        "SPLIT_V",
        ("SplitVOptions", {"numSplits": 2}),
        [f32(2, 4), s32(2), T("s32", (), data=np.int32(1))],
        (1,),
        [([1, 3],), ([-1, 3],), ([2, 3],)],
        outputs=2,
    ),
    Case(
        "SPACE_TO_BATCH_ND",
        ("SpaceToBatchNDOptions", {}),
        [s8(1, 2, 4, 1), s32(2), s32(2, 2)],
        (1, 2),
        [([2, 2], [[0, 0], [0, 0]]), ([1, 3], [[0, 0], [1, 1]]), ([2, 3], [[0, 0], [0, 0]])],
    ),
    Case(
        "BATCH_TO_SPACE_ND",
        ("BatchToSpaceNDOptions", {}),
        [s8(4, 2, 3, 1), s32(2), s32(2, 2)],
        (1, 2),
        [([2, 2], [[0, 0], [0, 0]]), ([1, 4], [[0, 0], [1, 1]]), ([2, 3], [[0, 0], [0, 0]])],
    ),
    Case("MEAN", ("ReducerOptions", {"keepDims": False}), [f32(2, 3), s32(1)], (1,), [([0],), ([1],), ([-1],), ([2],)]),
    Case("MEAN", ("ReducerOptions", {"keepDims": True}), [s8(2, 3), s32(2)], (1,), [([0, 1],), ([1, 1],)]),
    Case("SUM", ("ReducerOptions", {"keepDims": False}), [f32(2, 3), s32(1)], (1,), [([0],), ([1],)]),
    Case("REDUCE_MAX", ("ReducerOptions", {"keepDims": False}), [s8(2, 3), s32(1)], (1,), [([0],), ([-2],)]),
    Case(
        "ARG_MAX",
        ("ArgMaxOptions", {"outputType": 2}),
        [s8(2, 3), s32()],
        (1,),
        [(0,), (1,), (-1,), (2,)],
        out=T("s32", (1,)),
    ),
]


def build(case: Case) -> bytes:
    free = case.inputs[case.source]
    outputs = [
        case.out or T(free.dtype, free.shape, free.scale, free.zero_point, signature=[-1] * len(free.shape) or None)
        for _ in range(case.outputs)
    ]
    nodes: list[tuple] = [(case.operator, case.options, case.inputs, outputs, case.version)]
    # Something follows, whose shape depends on it as well.
    for output in outputs:
        nodes.append(("SHAPE", ("ShapeOptions", {"outType": 2}), [output], [T("s32", (1,), signature=(-1,))]))
    return chain(nodes)


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case.operator}" for i, case in enumerate(CASES)])
def test_operand_at_run_time(case: Case) -> None:
    content = build(case)
    rng = np.random.default_rng(0)
    ran = 0
    for values in case.values:
        given = dict(zip(case.operands, values, strict=True))
        feed = []
        for position, tensor in enumerate(case.inputs):
            if position in given:
                feed.append(np.array(given[position], NUMPY[tensor.dtype]))
            elif tensor.data is None:
                feed.append(random_values(rng, np.dtype(NUMPY[tensor.dtype]), tensor.shape))
        ran += check(content, [feed]) == "equal"
    assert ran


def feeds(count: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(4)
    shapes = ([2, 6], [3, 4], [-1, 1], [12, 1], [1, -1])
    return [
        [(rng.standard_normal((2, 6)) * (rng.random((2, 6)) < 0.6)).astype(np.float32), np.int32(shapes[i % 5])]
        for i in range(count)
    ]


def test_stages() -> None:
    for feed in feeds(5):
        assert check(staged(), [feed]) == "equal"
    assert check(staged(), feeds(8)) == "equal"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_stages_are_shown_and_saved(tmp_path: Path, executor: str) -> None:
    session = bittrue.load(staged()).prepare(executor=executor)
    assert [port.shape for port in session.outputs] == [(-1, -1), (-1,), (-1,), (2, 6)]
    text = str(session.plan)
    assert "later: 7 operators, planned while running, because node 0 (RESHAPE): input 1" in text
    session.plan.save(tmp_path / "staged.plan")
    again = bittrue.load_plan(tmp_path / "staged.plan", executor=executor)
    assert str(again.plan) == text
    for feed in feeds(5):
        seen: list[int] = []
        expected, outputs = session.trace(*feed, progress=seen.append), session.run(*feed)
        assert seen == list(range(len(seen)))
        assert len(seen) == 4
        assert list(outputs) == [port.name for port in session.outputs]
        traced = again.trace(*feed)
        assert list(traced) == list(expected)
        for name, value in traced.items():
            assert_same(name, value, expected[name])
        for name, value in outputs.items():
            assert_same(name, value, expected[name])
        times = session.profile(*feed, rounds=2).steps
        assert [step.position for step in times] == sorted(step.position for step in times)
        assert {"neg", "where", "add"} <= {step.operator for step in times}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("content", [staged(), nested_loops()], ids=["staged", "nested"])
def test_threads_share_a_session(executor: str, content: bytes) -> None:
    session = bittrue.load(content).prepare(executor=executor, threads=2)
    given = feeds(10)
    if len(session.inputs) == 3:
        given = [[np.array(i, np.int32), *(np.full((2, 3), i + k, np.float32) for k in range(2))] for i in range(3)]
    expected = [[value.tobytes() for value in session.run(*feed).values()] for feed in given]
    wrong: list[int] = []

    def work(first: int) -> None:
        for position in [*range(first, len(given)), *range(first)] * 3:
            got = [value.tobytes() for value in session.run(*given[position]).values()]
            if got != expected[position]:
                wrong.append(position)

    workers = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize("executor", EXECUTORS)
def test_more_values_than_plans_are_kept(executor: str) -> None:
    x, shape, y = f32(720), s32(2), T("f32", (720, 1), signature=(-1, -1))
    content = single("RESHAPE", ("ReshapeOptions", {}), [x, shape], [y])
    session = bittrue.load(content).prepare(executor=executor)
    values = np.arange(720, dtype=np.float32)
    for _ in range(2):
        for rows in [n for n in range(1, 721) if 720 % n == 0] * 2:
            (value,) = session.run(values, np.int32([rows, -1])).values()
            assert_same("y", value, values.reshape(rows, -1))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("operator", "options", "inputs", "operand", "value"),
    [
        ("FILL", "FillOptions", [s32(2), f32()], 0, [2**31 - 1, 2**31 - 1]),
        ("FILL", "FillOptions", [s32(2), f32()], 0, [2**20, 2**20]),
        ("TILE", "TileOptions", [s8(2, 3), s32(2)], 1, [2**30, 2**30]),
        ("TILE", "TileOptions", [s8(2, 3), s32(2)], 1, [-(2**31), 1]),
        ("RESHAPE", "ReshapeOptions", [s8(2, 3), s32(2)], 1, [2**31 - 1, -(2**31)]),
        ("PAD", "PadOptions", [s8(2, 3), s32(2, 2)], 1, [[2**31 - 1, 2**31 - 1], [2**31 - 1, 0]]),
        ("BROADCAST_TO", "BroadcastToOptions", [s8(1, 1), s32(2)], 1, [2**31 - 1, 2**31 - 1]),
        ("RESIZE_BILINEAR", "ResizeBilinearOptions", [s8(1, 2, 2, 1), s32(2)], 1, [2**31 - 1, 2**31 - 1]),
        ("SLICE", "SliceOptions", [s8(2, 3), s32(2), fixed(-1, -1)], 1, [2**31 - 1, -(2**31)]),
        ("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions", [s8(1, 2, 2, 1), s32(2), s32(2, 2)], 1, [0, -1]),
        ("REVERSE_V2", "ReverseV2Options", [f32(2, 4), s32(1)], 1, [-(2**31)]),
    ],
)
def test_hostile_values(executor: str, operator: str, options: str, inputs: list[T], operand: int, value: Any) -> None:
    """Absurd sizes are typed errors of the run, at once and whatever executor, and the session goes on."""
    content = single(
        operator,
        (options, {}),
        inputs,
        [T("f32" if operator == "FILL" else inputs[0].dtype, (1, 1))],
        version=2 if "BRO" in operator else 1,
    )
    session = bittrue.load(content).prepare(executor=executor)
    feed = [
        np.array(value, np.int32) if position == operand else np.ones(tensor.shape, NUMPY[tensor.dtype])
        for position, tensor in enumerate(inputs)
        if tensor.data is None
    ]
    for _ in range(2):
        with pytest.raises((bittrue.RunError, bittrue.ResourceError, bittrue.UnsupportedError)) as caught:
            session.run(*feed)
        assert caught.value.place.startswith("node 0")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_memory_limit_holds_for_each_stage(executor: str) -> None:
    content = single("TILE", ("TileOptions", {}), [s8(2, 3), s32(2)], [T("s8", (2, 3), 0.5, 3)])
    session = bittrue.load(content).prepare(executor=executor, memory_limit=10_000)
    (value,) = session.run(np.ones((2, 3), np.int8), np.int32([10, 10])).values()
    assert value.shape == (20, 30)
    with pytest.raises(bittrue.ResourceError, match="BT-MEMORY"):
        session.run(np.ones((2, 3), np.int8), np.int32([100, 100]))


def test_long_chains_that_decide_shapes() -> None:
    """A stage looks at a few steps only; what is further away is run first."""
    for length in (2, 40, 1100):
        x, shape, box = f32(2, 6), s32(2), T("f32", (2, 6), signature=(-1, -1))
        turned = [s32(2) for _ in range(length)]
        nodes: list[Any] = [("RESHAPE", ("ReshapeOptions", {}), [x, shape], [box])]
        nodes += [("NEG", ("NegOptions", {}), [a], [b]) for a, b in pairwise([shape, *turned])]
        nodes.append(("RESHAPE", ("ReshapeOptions", {}), [box, turned[-1]], [T("f32", (2, 6), signature=(-1, -1))]))
        assert check(chain(nodes), [[np.zeros((2, 6), np.float32), np.int32([4, 3])]]) == "equal"


def test_variables_that_decide_shapes() -> None:
    """What a variable holds is known when its step has run."""
    x, shape, box = f32(2, 6), s32(2), T("f32", (2, 6), signature=(-1, -1))
    of, value, y = resource(), s32(2), T("f32", (2, 6), signature=(-1, -1))
    nodes = [
        once(1),
        handle("v", of),
        ("RESHAPE", ("ReshapeOptions", {}), [x, shape], [box]),
        read(of, value),
        ("RESHAPE", ("ReshapeOptions", {}), [box, value], [y]),
        assign(of, shape),
    ]
    content = several(G(nodes, [x, shape], [y]), starting(("v", T("s32", (2,), data=np.int32([12, 1])))))
    feeds = [[np.zeros((2, 6), np.float32), np.int32(size)] for size in ([4, 3], [1, 12], [6, 2])]
    assert check(content, feeds) == "equal"


def test_variable_tensors_do_not_decide_shapes() -> None:
    state = T("s32", (2,), variable=True)
    content = single("RESHAPE", ("ReshapeOptions", {}), [f32(2, 3), state], [f32(2, 3)])
    with pytest.raises(bittrue.UnsupportedError, match="BT-DYNAMIC"):
        bittrue.load(content).prepare()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_state_across_stages(executor: str) -> None:
    """Variable tensors of a later stage last from run to run, and are reset, too."""
    rng = np.random.default_rng(0)

    def weights(rows: int, columns: int) -> T:
        return T("s8", (rows, columns), 0.01, 0, 0, rng.integers(-127, 128, (rows, columns)).astype(np.int8))

    x, shape, box = T("s8", (8,), 0.02, 3), s32(3), T("s8", (1, 2, 4), 0.02, 3, signature=(1, -1, 4))
    inputs: list[T | None] = [box, *(weights(3, 4) for _ in range(4)), *(weights(3, 3) for _ in range(4))]
    inputs += [None, None, None, *(T("s32", (3,), 1e-4, 0, 0, rng.integers(-2000, 2000, 3)) for _ in range(4))]
    inputs += [None, None, T("s8", (1, 3), 2**-7, -9, variable=True), T("s16", (1, 3), 2.0**-12, 0, variable=True)]
    inputs += [None] * 4
    intermediates = [*(T("f32", (0,)) for _ in range(4)), T("s8", (0,), 0.0078, -1)]
    options = ("UnidirectionalSequenceLSTMOptions", {"fusedActivationFunction": 4})
    y = T("s8", (1, 2, 3), 2**-7, -9, signature=(1, -1, 3))
    lstm = ("UNIDIRECTIONAL_SEQUENCE_LSTM", options, inputs, [y], 3, intermediates)
    content = chain([("RESHAPE", ("ReshapeOptions", {}), [x, shape], [box]), lstm])
    feed = [random_values(rng, np.dtype(np.int8), (8,)), np.int32([1, 2, 4])]
    # The runtime takes constant shapes for the sequence only, so a constant one stands for it.
    still = T("s32", (3,), data=np.int32([1, 2, 4]))
    same = chain([("RESHAPE", ("ReshapeOptions", {}), [x, still], [box]), lstm])
    session, plain = (bittrue.load(part).prepare(executor=executor) for part in (content, same))
    session.reset()
    for _ in range(2):
        for _ in range(3):
            expected = next(iter(plain.run(feed[0]).values()))
            assert_same("y", next(iter(session.run(*feed).values())), expected)
            session.profile(*feed, rounds=1)
        session.reset()
        plain.reset()

"""Variable tensors: their first value, what a run leaves in them, and `Session.reset`."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.build import NUMPY, G, T, chain, several, single
from support.differential import assert_same, random_values
from support.oracle import oracle

EXECUTORS = ["reference", *(["native"] if bittrue.isas() else [])]


def only_output(content: bytes) -> tuple[int, str]:
    graph = bittrue.load(content).graph
    (index,) = graph.outputs
    return index, graph.tensors[index].name


def compare(content: bytes, feeds: list[list[np.ndarray] | None], executor: str) -> None:
    """The output after the last feed set; None resets."""
    index, name = only_output(content)
    session = bittrue.load(content).prepare(executor=executor)
    value = None
    for feed in feeds:
        if feed is None:
            session.reset()
        else:
            value = session.run(*feed)[name]
    assert value is not None
    answer = oracle().run(content, feeds, [index])
    assert answer.ran, answer.refused
    assert_same(name, value, answer.values[index])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("dtype", "zero_point"),
    [("s8", -7), ("s8", 100), ("u8", 128), ("u8", 3), ("s16", 0), ("s32", None), ("s64", None), ("f32", None)],
)
def test_first_value(executor: str, dtype: str, zero_point: int | None) -> None:
    """x + state, where nothing writes the state. Only s8 states begin at their zero point."""
    scale = None if zero_point is None else 0.5
    x, y = T(dtype, (2, 3), scale), T(dtype, (2, 3), scale and 2 * scale)
    state = T(dtype, (2, 3), scale, zero_point or 0, variable=True)
    content = single(
        "ADD", ("AddOptions", {"potScaleInt16": False}), [x, state], [y], version=3 if dtype == "s64" else 2
    )
    feed = [random_values(np.random.default_rng(0), np.dtype(NUMPY[dtype]), (2, 3))]
    compare(content, [feed, None, feed], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("zero_point", [300, -300, -129])
def test_first_value_is_one_byte(executor: str, zero_point: int) -> None:
    """Zero points outside of the type lose all but their low byte."""
    state = T("s8", (2, 3), 0.5, zero_point, variable=True)
    x, y = T("s8", (2, 3), 0.5, zero_point), T("s8", (4, 3), 0.5, zero_point)
    content = single("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), [x, state], [y])
    compare(content, [[np.ones((2, 3), np.int8)]], executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_operators_write_variable_tensors(executor: str) -> None:
    """y = state + x; state = -y. What is written is read by the next run, and may be an output."""
    x, y, state = T("f32", (2,)), T("f32", (2,)), T("f32", (2,), variable=True)
    nodes = [("ADD", ("AddOptions", {}), [state, x], [y]), ("NEG", None, [y], [state])]
    feed = [np.float32([1, 2])]
    for outputs in ([y, state], [y]):
        content = several(G(nodes, [x], outputs))
        graph = bittrue.load(content).graph
        session = bittrue.load(content).prepare(executor=executor)
        for runs in range(1, 4):
            traced = session.trace(*feed) if runs == 2 else session.run(*feed)
            answer = oracle().run(content, [feed] * runs, list(graph.outputs))
            for index in graph.outputs:
                assert_same(graph.tensors[index].name, traced[graph.tensors[index].name], answer.values[index])


def test_variable_tensors_keep_their_shape() -> None:
    x, state = T("f32", (2,)), T("f32", (3,), variable=True)
    with pytest.raises(bittrue.UnsupportedError, match="BT-VARIABLE-SHAPE"):
        bittrue.load(several(G([("NEG", None, [x], [state])], [x], [state]))).prepare()


def lstm() -> bytes:
    """A small layer of four gates."""
    rng = np.random.default_rng(5)

    def weights(size: int) -> T:
        return T("s8", (3, size), 0.01, 0, 0, rng.integers(-127, 128, (3, size)).astype(np.int8))

    inputs: list[T | None] = [T("s8", (1, 2, 4), 0.02, 3), *(weights(4) for _ in range(4))]
    inputs += [*(weights(3) for _ in range(4)), None, None, None]
    inputs += [T("s32", (3,), 1e-4, 0, 0, rng.integers(-2000, 2000, 3)) for _ in range(4)]
    inputs += [None, None, T("s8", (1, 3), 2**-7, -9, variable=True), T("s16", (1, 3), 2.0**-12, 0, variable=True)]
    inputs += [None] * 4
    intermediates = [*(T("f32", (0,)) for _ in range(4)), T("s8", (0,), 0.0078, -1)]
    options = {"fusedActivationFunction": 4}
    return single(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        ("UnidirectionalSequenceLSTMOptions", options),
        inputs,
        [T("s8", (1, 2, 3), 2**-7, -9)],
        version=3,
        intermediates=intermediates,
    )


@pytest.mark.parametrize("executor", EXECUTORS)
def test_state_is_kept_and_reset(executor: str) -> None:
    content = lstm()
    rng = np.random.default_rng(3)
    feeds = [[random_values(rng, np.dtype(np.int8), (1, 2, 4))] for _ in range(4)]
    for sequence in (
        feeds,
        [feeds[0], None, feeds[1]],
        [*feeds, None, feeds[0]],
        [feeds[0], feeds[0], None, None, feeds[0]],
    ):
        compare(content, sequence, executor)
    session = bittrue.load(content).prepare(executor=executor)
    first, second = (next(iter(session.run(*feeds[0]).values())) for _ in range(2))
    assert first.tobytes() != second.tobytes(), "the state changes nothing"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_profiles_and_traces(executor: str) -> None:
    """A profile leaves the state as it was; a trace is a run."""
    content = lstm()
    session, other = (bittrue.load(content).prepare(executor=executor) for _ in range(2))
    feed = random_values(np.random.default_rng(1), np.dtype(np.int8), (1, 2, 4))
    session.run(feed)
    other.run(feed)
    session.profile(feed, rounds=2)
    _, name = only_output(content)
    assert_same(name, session.trace(feed)[name], other.run(feed)[name])
    assert_same(name, session.run(feed)[name], other.run(feed)[name])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_nothing_to_reset(executor: str) -> None:
    content = chain([("NEG", None, [T("s32", (3,))], [T("s32", (3,))])])
    session = bittrue.load(content).prepare(executor=executor)
    session.reset()
    (value,) = session.run(np.int32([1, 2, 3])).values()
    assert value.tolist() == [-1, -2, -3]

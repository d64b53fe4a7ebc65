"""var_handle, read_variable, assign_variable and call_once against the real runtime, over several runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, G, T, several
from support.differential import assert_same, check, random_values
from support.graphs import ADD, assign, handle, once, read, resource, starting, stream
from support.oracle import oracle
from support.strategies import seeds

EXECUTORS = ["reference", *(["native"] if bittrue.isas() else [])]


def sums(dtype: str, shape: Sequence[int], first: np.ndarray, declared: Sequence[int] | None = None) -> bytes:
    """state += x; y = state."""
    declared = shape if declared is None else declared
    of, x, before, after = resource(), T(dtype, shape), T(dtype, declared), T(dtype, shape)
    nodes = [once(1), handle("sum", of), read(of, before), (*ADD, [before, x], [after]), assign(of, after)]
    return several(G(nodes, [x], [after]), starting(("sum", T(dtype, shape, data=first))))


@given(st.sampled_from(["f32", "s32"]), st.lists(st.integers(1, 3), max_size=3), seeds, st.integers(1, 4))
def test_sums(dtype: str, shape: list[int], seed: int, runs: int) -> None:
    """With a scalar state, the runtime takes the shape from the variable when it runs, and so does bittrue."""
    rng = np.random.default_rng(seed)
    values = [random_values(rng, np.dtype(NUMPY[dtype]), shape) for _ in range(runs + 1)]
    assert check(sums(dtype, shape, values[0]), [[value] for value in values[1:]]) == "equal"


def test_declared_shapes() -> None:
    """The first elements under the declared shape; none means that of the variable."""
    for declared, shape in (((), (2, 3)), ((3, 2), (2, 3)), ((6,), (2, 3)), ((2, 2), (2, 3))):
        of, before, after = resource(), T("f32", declared), T("f32", declared)
        nodes = [once(1), handle("v", of), read(of, before), ("NEG", None, [before], [after])]
        nodes += [("NEG", None, [x := T("f32", (1,))], [T("f32", (1,))])]
        content = several(G(nodes, [x]), starting(("v", T("f32", shape, data=np.arange(6).reshape(shape)))))
        assert check(content, [[np.ones(1, np.float32)]]) == "equal"


def test_larger_than_the_variable() -> None:
    """The runtime would read past the variable."""
    of, before, x = resource(), T("f32", (7,)), T("f32", (1,))
    nodes = [once(1), handle("v", of), read(of, before), (*ADD, [before, x], [T("f32", (7,))])]
    content = several(G(nodes, [x]), starting(("v", T("f32", (6,), data=np.arange(6)))))
    for executor in EXECUTORS:
        with pytest.raises(bittrue.RunError, match="BT-VARIABLE-SHAPE"):
            bittrue.load(content).prepare(executor=executor).run(np.ones(1, np.float32))


# The delegate of xnnpack fails here, or asks no kernel.
@pytest.mark.numerics("litert", "litert@1.2", "litert-optimized")
def test_unset_and_wrong_types() -> None:
    of, x, y = resource(), T("f32", (2,)), T("f32", (2,))
    unset = several(G([handle("v", of), read(of, y), ("NEG", None, [x], [T("f32", (2,))])], [x]))
    assert check(unset, [[np.ones(2, np.float32)]]) == "refused"
    of, x, y = resource(), T("s32", (2,)), T("f32", (2,))
    wrong = several(G([handle("v", of), assign(of, x), read(of, y)], [x], [y]))
    assert check(wrong, [[np.ones(2, np.int32)]]) == "refused"


# The delegate of xnnpack fails here, or asks no kernel.
@pytest.mark.numerics("litert", "litert@1.2", "litert-optimized")
def test_names_and_containers_tell_variables_apart() -> None:
    """Four variables, written and read through several handles in another order."""
    keys = [("a", ""), ("a", "box"), ("b", ""), ("b", "box")]
    x = T("f32", (2,))
    nodes: list[tuple] = []
    value = x
    for name, container in keys:
        of, following = resource(), T("f32", (2,))
        nodes += [handle(name, of, container), assign(of, value), (*ADD, [value, x], [following])]
        value = following
    results = []
    for name, container in reversed(keys):
        of, found, result = resource(), T("f32", (2,)), T("f32", (2,))
        nodes += [handle(name, of, container), read(of, found), ("NEG", None, [found], [result])]
        results.append(result)
    assert check(several(G(nodes, [x], results)), [[np.float32([1, 10])]]) == "equal"


def test_streaming_buffer() -> None:
    rng = np.random.default_rng(0)
    feeds = [[random_values(rng, np.dtype(np.int8), (1, 2))] for _ in range(5)]
    for count in range(1, 6):
        assert check(stream(), feeds[:count]) == "equal"


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("content", [stream(), sums("f32", (), np.float32(5))], ids=["stream", "scalar"])
def test_reset_forgets_variables(tmp_path: Path, executor: str, content: bytes) -> None:
    session = bittrue.load(content).prepare(executor=executor)
    (port,) = session.inputs
    rng = np.random.default_rng(1)
    feeds = [random_values(rng, port.dtype, port.shape) for _ in range(3)]
    first = [next(iter(session.run(feed).values())) for feed in feeds]
    session.profile(feeds[0], rounds=2)
    assert first[0].tobytes() != next(iter(session.run(feeds[0]).values())).tobytes()
    session.reset()
    session.plan.save(tmp_path / "saved.plan")
    for again in (session, bittrue.load_plan(tmp_path / "saved.plan", executor=executor)):
        for feed, expected in zip(feeds, first, strict=True):
            assert_same("after reset", next(iter(again.run(feed).values())), expected)


def test_the_runtime_resets_variable_tensors_only() -> None:
    """Why `Session.reset` says that it does more."""
    content = stream()
    graph = bittrue.load(content).graph
    feed = [np.int8([[1, 2]])]
    (index,) = graph.outputs
    kept = oracle().run(content, [feed, None, feed], [index]).values[index]
    assert_same("buffer", kept, oracle().run(content, [feed, feed], [index]).values[index])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_are_not_the_state(executor: str) -> None:
    of, x, y = resource(), T("f32", (2,)), T("f32", (2,))
    session = bittrue.load(several(G([handle("v", of), assign(of, x), read(of, y)], [x], [y]))).prepare(
        executor=executor
    )
    given = np.float32([1, 2])
    (result,) = session.run(given).values()
    result[...] = 7
    given[...] = 9
    assert next(iter(session.run(np.float32([3, 4])).values())).tolist() == [3, 4]


def test_in_branches_and_loops() -> None:
    """A branch that only assigns; a loop that counts in a variable, with the handle passed in and as its own."""
    c, of, x, y = T("bool", ()), resource(), T("f32", (2,)), T("f32", (2,))
    chosen = ("IF", ("IfOptions", {"thenSubgraphIndex": 2, "elseSubgraphIndex": 3}), [c, of, x], [])
    main = G([once(1), handle("v", of), chosen, read(of, y)], [c, x], [y])
    in_then, in_else = resource(), resource()
    tx, ex, double = T("f32", (2,)), T("f32", (2,)), T("f32", (2,))
    then = G([(*ADD, [tx, tx], [double]), assign(in_then, double)], [in_then, tx], [])
    other = G([], [in_else, ex], [])
    content = several(main, starting(("v", T("f32", (2,), data=np.float32([5, 6])))), then, other)
    x_value = np.float32([1, 2])
    for sequence in ([True], [False], [False, True, False]):
        assert check(content, [[np.array(c), x_value] for c in sequence]) == "equal"

    i, of, count, same_of, y = T("s32", ()), resource(), T("s32", ()), resource(), T("f32", (2,))
    loop = ("WHILE", ("WhileOptions", {"condSubgraphIndex": 2, "bodySubgraphIndex": 3}), [i, of], [count, same_of])
    main = G([once(1), handle("v", of), loop, read(of, y)], [i], [count, y])
    ci, cof, going_on = T("s32", ()), resource(), T("bool", ())
    limit = T("s32", (), data=np.int32(3))
    condition = G([("LESS", ("LessOptions", {}), [ci, limit], [going_on])], [ci, cof], [going_on])
    bi, bof, before, double, more = T("s32", ()), resource(), T("f32", (2,)), T("f32", (2,)), T("s32", ())
    one = T("s32", (), data=np.int32(1))
    body = G(
        [read(bof, before), (*ADD, [before, before], [double]), assign(bof, double), (*ADD, [bi, one], [more])],
        [bi, bof],
        [more, bof],
    )
    content = several(main, starting(("v", T("f32", (2,), data=np.float32([5, 6])))), condition, body)
    for start in (0, 2, 3):
        feed = [np.array(start, np.int32)]
        assert check(content, [feed, feed]) == "equal"


def test_cutting_a_model_keeps_what_changes_state() -> None:
    """Only y is asked for; the state is still initialised and written."""
    of, x, before, after, rest = resource(), T("f32", (2,)), T("f32", (2,), name="y"), T("f32", (2,)), T("f32", (2,))
    nodes = [once(1), handle("v", of), read(of, before), (*ADD, [before, x], [after]), assign(of, after)]
    nodes.append(("NEG", None, [after], [rest]))
    content = several(G(nodes, [x], [rest]), starting(("v", T("f32", (2,), data=np.float32([5, 6])))))
    for executor in EXECUTORS:
        session = bittrue.load(content).prepare(executor=executor, outputs=["y"])
        assert "neg" not in {step.operator for step in session.plan.steps}
        one, two = (session.run(np.float32([1, 1]))["y"].tolist() for _ in range(2))
        assert (one, two) == ([5, 6], [6, 7])

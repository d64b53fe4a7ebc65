"""if, while and stablehlo_composite: graphs that call other graphs, against the real runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import G, T, several
from support.differential import assert_same, check, random_values
from support.graphs import ADD, MUL, NEG, SHAPE, calls_if, calls_while, f32, growing, loop, nested_loops, number
from support.native import same
from support.strategies import seeds

EXECUTORS = ["reference", *(["native"] if bittrue.isas() else [])]


def floats(seed: int, *shape: int) -> np.ndarray:
    return random_values(np.random.default_rng(seed), np.dtype(np.float32), shape)


def unary(make: Any, *nodes: tuple) -> G:
    """A graph of one input and a chain of operators on it."""
    x = first = make()
    built = []
    for operator, options, *more in nodes:
        y = make()
        built.append((operator, options, [x, *more], [y]))
        x = y
    return G(built, [first], [x])


def choice(then: G, other: G, before: T | None = None, after: T | None = None, follow: bool = True) -> bytes:
    """if(c, x), and something behind it."""
    c, x = T("bool", ()), before or f32(*SHAPE)
    y = after or f32(*SHAPE)
    z = T(y.dtype, y.shape, y.scale, y.zero_point, signature=y.signature)
    nodes = [calls_if([c, x], [y])]
    if follow:
        nodes.append((*NEG, [y], [z]))
    return several(G(nodes), then, other)


@given(st.booleans(), seeds)
def test_if(chosen: bool, seed: int) -> None:
    two = T("f32", (), data=np.float32(2))
    content = choice(unary(lambda: f32(*SHAPE), NEG, (*ADD, two)), unary(lambda: f32(*SHAPE), (*MUL, two)))
    assert check(content, [[np.array(chosen), floats(seed, *SHAPE)]]) == "equal"


@given(st.booleans(), seeds)
def test_if_quantized(chosen: bool, seed: int) -> None:
    def make() -> T:
        return T("s8", SHAPE, 0.5, 3)

    half = T("s8", (), 0.01, 0, 0, np.int8(50))
    content = choice(unary(make, (*ADD, half), (*MUL, half)), unary(make, (*MUL, half)), make(), make(), follow=False)
    x = random_values(np.random.default_rng(seed), np.dtype(np.int8), SHAPE)
    assert check(content, [[np.array(chosen), x]]) == "equal"


@pytest.mark.parametrize("chosen", [True, False])
def test_if_passes_inputs_and_constants(chosen: bool) -> None:
    x = f32(*SHAPE)
    constant = T("f32", SHAPE, data=np.arange(6).reshape(SHAPE))
    unused = f32(*SHAPE)
    content = choice(G([], [x], [x]), G([], [unused], [constant]))
    assert check(content, [[np.array(chosen), floats(1, *SHAPE)]]) == "equal"


@pytest.mark.parametrize("chosen", [True, False])
def test_branches_of_different_shapes(chosen: bool) -> None:
    """What follows is planned when the branch has run."""
    x, flat = f32(*SHAPE), f32(6)
    reshape = ("RESHAPE", ("ReshapeOptions", {"newShape": [6]}), [x], [flat])
    content = choice(unary(lambda: f32(*SHAPE), NEG), G([reshape], [x], [flat]), after=f32(*SHAPE, signature=(-1, -1)))
    feeds = [[np.array(c), floats(2, *SHAPE)] for c in (chosen, not chosen, chosen)]
    assert check(content, feeds) == "equal"


def test_if_in_if() -> None:
    c, d, x, y = T("bool", ()), T("bool", ()), f32(*SHAPE), f32(*SHAPE)
    main = G([calls_if([c, d, x], [y])])
    inner_d, inner_x, inner_y = T("bool", ()), f32(*SHAPE), f32(*SHAPE)
    then = G([calls_if([inner_d, inner_x], [inner_y], 3, 4)], [inner_d, inner_x], [inner_y])
    other_d, other_x, other_y = T("bool", ()), f32(*SHAPE), f32(*SHAPE)
    other = G([(*NEG, [other_x], [other_y])], [other_d, other_x], [other_y])
    two = T("f32", (), data=np.float32(2))
    leaves = unary(lambda: f32(*SHAPE), (*ADD, two)), unary(lambda: f32(*SHAPE), (*MUL, two))
    content = several(main, then, other, *leaves)
    for first in (True, False):
        for second in (True, False):
            assert check(content, [[np.array(first), np.array(second), floats(3, *SHAPE)]]) == "equal"


def test_conditions_that_are_refused() -> None:
    leaves = unary(lambda: f32(*SHAPE), NEG), unary(lambda: f32(*SHAPE), NEG)
    c, x, y = T("bool", (2,)), f32(*SHAPE), f32(*SHAPE)
    assert check(several(G([calls_if([c, x], [y])]), *leaves), [[np.array([True, False]), floats(1, *SHAPE)]]) == (
        "refused"
    )
    c, x, y = T("bool", (1, 1)), f32(*SHAPE), f32(*SHAPE)
    assert check(several(G([calls_if([c, x], [y])]), *leaves), [[np.array([[True]]), floats(1, *SHAPE)]]) == "equal"


def test_a_result_that_is_never_written() -> None:
    x, y = f32(*SHAPE), f32(*SHAPE)
    twice = G([(*NEG, [x], [y])], [x], [y, y])
    c, before, one, two = T("bool", ()), f32(*SHAPE), f32(*SHAPE), f32(*SHAPE)
    content = several(G([calls_if([c, before], [one, two], 1, 1)], outputs=[one, two]), twice)
    with pytest.raises(bittrue.UnsupportedError, match="BT-CONTROL-REPEATED"):
        bittrue.load(content).prepare()


def composite(inner: G, x: T, y: T, follow: bool = False, attributes: int = 3) -> bytes:
    options = (
        "StableHLOCompositeOptions",
        {"name": "odml.test", "decompositionSubgraphIndex": 1, "compositeAttributes": np.zeros(attributes, np.uint8)},
    )
    nodes = [("STABLEHLO_COMPOSITE", options, [x], [y])]
    if follow:
        nodes.append((*NEG, [y], [T(y.dtype, y.shape, signature=y.signature)]))
    return several(G(nodes), inner)


def test_composite() -> None:
    two = T("f32", (), data=np.float32(2))
    content = composite(unary(lambda: f32(*SHAPE), NEG, (*ADD, two)), f32(*SHAPE), f32(*SHAPE), True)
    assert check(content, [[floats(7, *SHAPE)]]) == "equal"
    x, found = T("bool", (5,)), T("s64", (1, 1), signature=(-1, 1))
    where = G([("WHERE", ("WhereOptions", {}), [x], [found])], [x], [found])
    content = composite(where, T("bool", (5,)), T("s64", (1, 1), signature=(-1, 1)), True)
    feeds = [[np.array(bits)] for bits in ([1, 0, 0, 1, 1], [0, 0, 0, 0, 1])]
    assert check(content, [[feed[0].astype(bool)] for feed in feeds]) == "equal"


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.integers(-1, n - 1), min_size=n, max_size=n)), st.integers(0, 4))
def test_while(passed: list[int], rounds: int) -> None:
    """Results that are other inputs of the body: the runtime copies them one after the other, in place."""
    feed = [np.array(0, np.int32), *(floats(seed, *SHAPE) for seed in range(len(passed)))]
    assert check(loop(passed, rounds), [feed, feed]) == "equal"


def test_while_condition_of_one_element() -> None:
    feed = [np.zeros(1, np.int32), floats(0, *SHAPE)]
    assert check(loop([-1], 3, cond_shape=(1,)), [feed]) == "equal"
    feed = [np.zeros((1, 1), np.int32), floats(0, *SHAPE)]
    assert check(loop([-1], 3, cond_shape=(1, 1)), [feed]) == "refused"


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_shapes_that_change_from_round_to_round(rounds: int, follow: bool) -> None:
    content = growing(rounds, follow)
    feed = [np.array(0, np.int32), floats(rounds, 1, 2)]
    assert check(content, [feed]) == "equal"
    for executor in EXECUTORS:
        session = bittrue.load(content).prepare(executor=executor)
        for start in (0, 3, 0, 1):
            _, y = session.run(np.array(start, np.int32), floats(1, 1, 2)).values()
            assert y.shape == (1 + max(0, rounds - start), 2)


def changing(passed: Sequence[int], rounds: int) -> bytes:
    """The same as `loop`, beside a first value that grows; result 0 is that one."""
    free = (-1, 2)
    i, xs = T("s32", ()), [f32(1, 2) for _ in range(1 + len(passed))]
    count, ys = T("s32", ()), [f32(1, 2, signature=free) for _ in xs]
    main = G([calls_while([i, *xs], [count, *ys])], [i, *xs], [count, *ys])
    ci, cxs, going_on = T("s32", ()), [f32(1, 2, signature=free) for _ in xs], T("bool", ())
    condition = G([("LESS", ("LessOptions", {}), [ci, number(rounds)], [going_on])], [ci, *cxs], [going_on])
    bi, bxs, more, grown = T("s32", ()), [f32(1, 2) for _ in xs], T("s32", ()), f32(2, 2, signature=free)
    row = T("f32", (1, 2), data=np.float32([[7, 8]]))
    nodes = [
        (*ADD, [bi, number(1)], [more]),
        ("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), [bxs[0], row], [grown]),
    ]
    return several(main, condition, G(nodes, [bi, *bxs], [more, grown, *(bxs[at] for at in passed)]))


@pytest.mark.parametrize("passed", [[1, 2], [2, 1], [2, 3, 1], [3, 1, 2], [1, 1]])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_passing_beside_shapes_that_change(passed: list[int], rounds: int) -> None:
    feed = [np.array(0, np.int32), *(floats(seed, 1, 2) for seed in range(1 + len(passed)))]
    assert check(changing(passed, rounds), [feed]) == "equal"


def test_passing_what_changes_its_shape() -> None:
    feed = [np.array(0, np.int32), floats(0, 1, 2), floats(1, 1, 2)]
    for executor in EXECUTORS:
        with pytest.raises(bittrue.RunError, match="BT-CONTROL-PASSED"):
            bittrue.load(changing([0], 2)).prepare(executor=executor).run(*feed)


def test_loops_in_loops(tmp_path: Path) -> None:
    content = nested_loops()
    feed = [np.array(0, np.int32), floats(0, *SHAPE), floats(1, *SHAPE)]
    assert check(content, [feed, feed]) == "equal"


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "content", [nested_loops(), growing(4, True), loop([1, 0], 3)], ids=["nested", "growing", "swap"]
)
def test_saved_plans_run_the_same(tmp_path: Path, content: bytes, executor: str) -> None:
    session = bittrue.load(content).prepare(executor=executor)
    session.plan.save(tmp_path / "one.plan")
    again = bittrue.load_plan(tmp_path / "one.plan", executor=executor)
    assert str(again.plan) == str(session.plan)
    again.plan.save(tmp_path / "two.plan")
    assert (tmp_path / "one.plan").read_bytes() == (tmp_path / "two.plan").read_bytes()
    feed = {
        port.name: np.array(0, np.int32) if port.dtype == np.int32 else floats(1, *port.shape)
        for port in session.inputs
    }
    expected = session.trace(feed)
    traced = again.trace(feed)
    assert list(traced) == list(expected)
    for name, value in traced.items():
        same(name, value, expected[name])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_text_trace_and_profile_name_the_graphs(executor: str) -> None:
    session = bittrue.load(nested_loops()).prepare(executor=executor)
    text = str(session.plan)
    for word in ("graph 0: 'graph1'", "graph 1: 'graph2'", "graph 1 of 'graph2': 'graph4'", "condition 0  body 1"):
        assert word in text, word
    feed = [np.array(0, np.int32), floats(0, *SHAPE), floats(1, *SHAPE)]
    seen: list[int] = []
    traced = session.trace(*feed, progress=seen.append)
    assert seen == [0]
    assert {name.partition("::")[0] for name in traced if "::" in name} == {"graph1", "graph2", "graph3", "graph4"}
    (step,) = session.profile(*feed, rounds=2).steps
    assert step.operator == "loop"
    assert step.seconds > 0


@pytest.mark.parametrize("executor", EXECUTORS)
def test_loops_that_do_not_end(executor: str) -> None:
    content = loop([-1], 2**31 - 1)
    feed = [np.array(0, np.int32), floats(0, *SHAPE)]
    session = bittrue.load(content).prepare(executor=executor, iteration_limit=100)
    with pytest.raises(bittrue.ResourceError, match="iteration_limit") as caught:
        session.run(*feed)
    assert caught.value.code == "BT-ITERATIONS"
    assert "node 0 (WHILE)" in caught.value.place
    # Conditions count as well: 50 rounds are more than 100 runs of graphs.
    short = bittrue.load(loop([-1], 50)).prepare(executor=executor, iteration_limit=101)
    assert next(iter(short.run(*feed).values())) == 50
    with pytest.raises(bittrue.InputError):
        bittrue.load(content).prepare(iteration_limit=0)


@pytest.mark.parametrize(
    ("code", "graphs"),
    [
        ("BT-CONTROL-GRAPH", lambda c, x, y: [G([calls_if([c, x], [y], 1, 7)]), unary(lambda: f32(), NEG)]),
        ("BT-CONTROL-GRAPH", lambda c, x, y: [G([calls_if([c, x], [y], 1, -1)]), unary(lambda: f32(), NEG)]),
        ("BT-CONTROL-TYPE", lambda c, x, y: [G([calls_if([c, x], [y], 1, 1)]), unary(lambda: T("s32", ()), NEG)]),
        ("BT-CONTROL-TYPE", lambda c, x, y: [G([calls_if([c, x, x], [y], 1, 1)]), unary(lambda: f32(), NEG)]),
        ("BT-CONTROL-TYPE", lambda c, x, y: [G([calls_if([c, x], [y, f32()], 1, 1)]), unary(lambda: f32(), NEG)]),
    ],
)
def test_graphs_that_do_not_fit(code: str, graphs: Any) -> None:
    content = several(*graphs(T("bool", ()), f32(), f32()))
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert "node 0 (IF)" in caught.value.place


def test_graphs_that_call_themselves() -> None:
    def calling(index: int) -> G:
        c, x, y = T("bool", ()), f32(), f32()
        return G([calls_if([c, c, x], [y], index, index)], [c, x], [y])

    for graphs in ([calling(1), calling(1)], [calling(1), calling(2), calling(1)], [calling(0)]):
        with pytest.raises(bittrue.InvalidModelError, match="BT-CONTROL-CYCLE"):
            bittrue.load(several(*graphs)).prepare()
    deep = [calling(index + 1) for index in range(30)]
    with pytest.raises(bittrue.InvalidModelError, match="BT-CONTROL-DEPTH"):
        bittrue.load(several(*deep, unary(f32, NEG))).prepare()


def test_a_tree_of_calls_is_planned_once_per_graph() -> None:
    """Each graph calls the next one many times; only sizes, not paths, cost time."""

    def calling(index: int, times: int = 50) -> G:
        x = first = f32()
        nodes = []
        for _ in range(times):
            y = f32()
            options = ("StableHLOCompositeOptions", {"name": "n", "decompositionSubgraphIndex": index})
            nodes.append(("STABLEHLO_COMPOSITE", options, [x], [y]))
            x = y
        return G(nodes, [first], [x])

    content = several(*(calling(index + 1) for index in range(10)), unary(f32, NEG))
    session = bittrue.load(content).prepare(iteration_limit=10_000)
    with pytest.raises(bittrue.ResourceError, match="BT-ITERATIONS"):
        session.run(np.float32(1))


def test_called_graphs_are_checked() -> None:
    """The main graph's rules hold for every graph that is called."""
    x, y, never = f32(), f32(), f32()
    disordered = G([(*ADD, [x, never], [y])], [x], [y])
    with pytest.raises(bittrue.InvalidModelError, match="BT-GRAPH-ORDER"):
        bittrue.load(composite(disordered, f32(), f32())).prepare()
    x, y, state = f32(), f32(), T("f32", (), variable=True)
    with pytest.raises(bittrue.UnsupportedError, match="BT-CONTROL-STATE"):
        bittrue.load(composite(G([(*ADD, [x, state], [y])], [x], [y]), f32(), f32())).prepare()
    x, y = T("f64", ()), T("f64", ())
    content = composite(G([("SIN", None, [x], [y])], [x], [y], "inner"), T("f64", ()), T("f64", ()))
    with pytest.raises(bittrue.UnsupportedError, match="SIN") as caught:
        bittrue.load(content).prepare()
    assert "graph 'inner'" in caught.value.place


def test_errors_inside_name_the_way() -> None:
    x, y = T("s32", ()), T("s32", ())
    zero = T("s32", (), data=np.int32(0))
    limit = number(5)
    divide = ("DIV", ("DivOptions", {}), [limit, x], [y])
    content = composite(G([divide], [x], [y], "inner"), T("s32", ()), T("s32", ()))
    del zero
    for executor in EXECUTORS:
        session = bittrue.load(content).prepare(executor=executor)
        with pytest.raises(bittrue.RunError) as caught:
            session.run(np.int32(0))
        assert caught.value.place == "node 0 (STABLEHLO_COMPOSITE): graph 'inner', node 0 (DIV)"
        assert_same("5 / 2", next(iter(session.run(np.array(2, np.int32)).values())), np.array(2, np.int32))


def test_memory_limit_holds_for_called_graphs() -> None:
    content = composite(unary(lambda: f32(1000), NEG, NEG), f32(1000), f32(1000))
    bittrue.load(content).prepare(memory_limit=20_000)
    with pytest.raises(bittrue.ResourceError, match="BT-MEMORY"):
        bittrue.load(content).prepare(memory_limit=12_000)

"""The one property of all operator tests: bittrue and the real runtime give the same bytes, or both refuse."""

from __future__ import annotations

import itertools
import os
import platform
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import currently_in_test_context, event

import bittrue
from bittrue.graph import Graph

from .native import check_native
from .oracle import Answer
from .recorded import Case, Recorder
from .runtimes import RUNTIMES, here, in_rotated_fours, runtime_of
from .ugly import UNDEFINED, feeds_like, uglier
from .values import random_values

# What `check` compares unless told otherwise; tests/operators/conftest.py repeats tests under every one.
COMPARED = "litert"
# One model in so many is made ugly as well, unless it is too large to be written again quickly.
UGLY_SHARE, UGLY_LARGEST = 64, 100_000
# Set while BITTRUE_RECORD asks for vectors.
RECORDER: Recorder | None = None


def feeds_for(content: bytes, seed: int, runs: int = 1) -> list[list[np.ndarray]]:
    """Seeded inputs over the whole range of each type (floats: normal, scaled)."""
    rng = np.random.default_rng(seed)
    graph = bittrue.load(content).graph
    feeds = []
    for _ in range(runs):
        feed = []
        for index in graph.inputs:
            tensor = graph.tensors[index]
            feed.append(random_values(rng, tensor.type.numpy, tensor.shape))
        feeds.append(feed)
    return feeds


def check(
    content: bytes,
    feeds: list[list[np.ndarray]],
    *,
    may_refuse: Collection[str] = (),
    numerics: str | None = None,
) -> str:
    """Compare every computed tensor after the last feed set. Returns ``"equal"`` or ``"refused"``.

    Compared is `numerics` (default: the one that the test is repeated for), as this processor has it, with the resolver
    that it reproduces.
    `may_refuse` holds error codes with which bittrue may refuse what the runtime runs: its result is undefined there.
    """
    numerics = numerics or COMPARED
    ours = compute(content, feeds, here(numerics))
    answer = RUNTIMES[numerics].run(content, feeds, list(ours.names))
    outcome = judge(ours, answer, numerics, may_refuse)
    if numerics == "litert" and RECORDER is None and currently_in_test_context():
        _check_uglier(content, feeds, may_refuse)
    if RECORDER is not None:
        # What differs is a limit of the numerics or a fault to mend; neither belongs into vectors.
        test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
        RECORDER.add(Case(test, content, feeds, answer, tuple(may_refuse)))
    return outcome


def _check_uglier(content: bytes, feeds: list[list[np.ndarray]], may_refuse: Collection[str]) -> None:
    """One model in `UGLY_SHARE` of a property once more, with values that its builder would not draw.

    Which ones follows from the model, so that an example that Hypothesis repeats or prints is the same one again.
    Graphs that call others are left out: they would no longer fit together.
    """
    seed = zlib.crc32(content)
    if seed % UGLY_SHARE or len(content) > UGLY_LARGEST:
        return
    try:
        if len(bittrue.load(content).graphs) > 1:
            return
        changed = uglier(content, seed)
        fed = feeds_like(changed, feeds, seed)
    except (OverflowError, bittrue.BittrueError):
        # No file can say that, or it was refused while it was read.
        return
    ours = compute(changed, fed, here("litert"))
    answer = RUNTIMES["litert"].run(changed, fed, list(ours.names))
    try:
        judge(ours, answer, "litert", (*may_refuse, *UNDEFINED))
    except AssertionError as error:
        raise AssertionError(f"made ugly with seed {seed}: {error}") from error


@dataclass
class Computed:
    """What bittrue made of a model: every computed tensor after the last run, or why there is none.

    `inexact` names the tensors whose bits may differ from the runtime's, as rows of the numerics say.
    """

    names: dict[int | tuple[int, int], str]
    values: dict[str, np.ndarray]
    error: bittrue.BittrueError | None = None
    inexact: frozenset[str] = frozenset()


def compute(content: bytes, feeds: list[list[np.ndarray]], numerics: str, *, sampled: bool = False) -> Computed:
    """Trace on the reference executor; the native executor must agree on every instruction set, or on those that
    `_instruction_sets` draws where there are many models: in properties and where `sampled` says so.
    """
    values: dict[str, np.ndarray] = {}
    names: dict[int | tuple[int, int], str] = {}
    try:
        model = bittrue.load(content)
        graphs = model.graphs
        graph = graphs[0]
        session = model.prepare(
            numerics,
            executor="reference",
            shapes={graph.tensors[i].name: f.shape for i, f in zip(graph.inputs, feeds[0], strict=True)},
        )
        names = {
            i: t.name
            for i, t in enumerate(graph.tensors)
            if not t.is_constant
            and i not in graph.inputs
            and session.plan.tensors[i].kind != "unused"
            and t.dtype != "resource"
        }
        for feed in feeds:
            values = session.trace(*feed)
        names.update(_called(session, graphs, values))
        check_native(session, feeds, values, isas=_instruction_sets(content, sampled))
        inexact = inexact_names(session.plan)
        constants = (t.values() for one in graphs for t in one.tensors if t.dtype == "f32" and t.is_constant)
        runtime = runtime_of(numerics)
        if not runtime.subnormal and _subnormal(itertools.chain(*feeds, values.values(), constants)):
            inexact = frozenset(names.values())
        return Computed(names, values, inexact=inexact)
    except bittrue.BittrueError as caught:
        if caught.code == "BT-PLAN-STEP":
            # No refusal, but a plan of ours that contradicts itself.
            raise AssertionError(f"{caught}") from caught
        graph = bittrue.load(content).graph
        names = {i: graph.tensors[i].name for node in graph.nodes for i in node.outputs}
        names = {i: name for i, name in names.items() if graph.tensors[i].dtype != "resource"}  # type: ignore[index]
        return Computed(names, values, caught)


def _instruction_sets(content: bytes, sampled: bool) -> list[str]:
    """All of this machine for one model in eight, one for the others: properties try hundreds of models."""
    everything, draw = bittrue.isas(), zlib.crc32(content)
    if draw % 8 == 0 or not (sampled or currently_in_test_context()):
        return list(everything)
    return [everything[draw // 8 % len(everything)]] if everything else []


def judge(ours: Computed, answer: Answer, numerics: str, may_refuse: Collection[str] = ()) -> str:
    """Equal bytes of every tensor that the runtime gave (of inexact ones shape and type), or both refused."""
    runtime = runtime_of(numerics)
    if ours.error is not None and ours.error.code == "BT-UNDEFINED" and numerics != "litert":
        # A row of a derived numerics that says why it has no result; there is nothing to compare.
        if not currently_in_test_context():
            pytest.skip(ours.error.message)
        event(f"refused by a row: {ours.error.message[:60]}")
        return "refused"
    if not runtime.strict and not answer.ran:
        return "refused"
    if ours.error is not None:
        assert not answer.ran or ours.error.code in (*may_refuse, *runtime.may_refuse), (
            f"bittrue refused what the runtime runs: {ours.error}"
        )
        if currently_in_test_context():
            event(f"refused {ours.error.code}")
        return "refused"
    assert not answer.aborted, "the runtime aborted, bittrue gave a result"
    assert answer.ran, f"bittrue ran what the runtime refused: {answer.refused}"
    assert answer.values, "the runtime gave no tensor to compare"
    for index, value in answer.values.items():
        name = ours.names[index]
        if value is not None and name in ours.inexact:
            found = ours.values[name]
            assert (found.shape, found.dtype) == (value.shape, value.dtype), f"{name}: {found.shape} {found.dtype}"
        elif value is not None:
            assert_same(name, ours.values[name], value)
    return "equal"


def _subnormal(arrays: Iterable[np.ndarray]) -> bool:
    tiny = np.finfo(np.float32).tiny
    return any(((a != 0) & (np.abs(a) < tiny)).any() for a in arrays if a.dtype == np.float32)


def inexact_names(plan: bittrue.Plan) -> frozenset[str]:
    """What steps of inexact rows give, the states that they leave, and all that is computed from it."""
    found: set[int] = set()
    for step in plan.steps:
        read = {i for i in step.inputs if i is not None}
        if step.inexact or in_rotated_fours(plan, step) or found & read:
            found.update(step.outputs, (i for i in read if plan.tensors[i].kind == "variable"))
    if plan.later is not None and (found or plan.inexact):
        found.update(range(len(plan.tensors)))
    return frozenset(plan.tensors[i].name for i in found)


def _called(
    session: bittrue.Session, graphs: Sequence[Graph], values: Mapping[str, np.ndarray]
) -> dict[tuple[int, int], str]:
    """What nodes of called graphs computed. Inputs are left out: they share memory with what has changed since."""
    source, found = session.plan.source, {}
    # Graphs that nothing calls are no longer among them.
    called = source is not None and len(source.graphs) == len(graphs)
    for number, graph in enumerate(graphs if called else ()):
        for index in (i for node in graph.nodes for i in node.outputs):
            name = f"{source.label(number)}::{graph.tensors[index].name}" if source else ""
            if number and name in values and graph.tensors[index].dtype != "resource":
                found[(number, index)] = name
    return found


def only_output(content: bytes, *feed: np.ndarray) -> np.ndarray:
    """The single output of a model, without asking the runtime."""
    (value,) = bittrue.load(content).prepare().run(*feed).values()
    return value


def assert_same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal shape, type and bytes; NaNs compare by bytes, too, but on aarch64 (docs/aarch64.md counts such models)."""
    assert ours.shape == theirs.shape, f"{name}: shape {ours.shape}, the runtime has {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{name}: type {ours.dtype}, the runtime has {theirs.dtype}"
    if np.ascontiguousarray(ours).tobytes() == np.ascontiguousarray(theirs).tobytes():
        return
    different = np.argwhere(~_same_elements(ours, theirs))
    if platform.machine() == "aarch64" and ours.dtype.kind == "f":
        different = np.argwhere(~_same_elements(ours, theirs) & ~(np.isnan(ours) & np.isnan(theirs)))
        if not len(different):
            return
    where = tuple(int(i) for i in different[0])
    raise AssertionError(
        f"{name}: {len(different)} of {ours.size} elements differ, first at {where}: "
        f"bittrue {ours[where]!r}, runtime {theirs[where]!r}"
    )


def _same_elements(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    size = ours.dtype.itemsize
    shape = (*ours.shape, size)
    one = np.frombuffer(np.ascontiguousarray(ours).tobytes(), np.uint8).reshape(shape)
    two = np.frombuffer(np.ascontiguousarray(theirs).tobytes(), np.uint8).reshape(shape)
    return (one == two).all(axis=-1)

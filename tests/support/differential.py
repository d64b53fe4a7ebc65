"""The one property of all operator tests: bittrue and the real runtime give the same bytes, or both refuse."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest
from hypothesis import currently_in_test_context, event

import bittrue

from .native import check_native
from .oracle import oracle

# numerics -> the resolver of the runtime that it reproduces
RESOLVERS = {
    "litert": "BUILTIN_REF",
    "litert-optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "xnnpack": "BUILTIN",
}
# What `check` compares unless told otherwise; tests/operators/conftest.py repeats tests under every one.
COMPARED = "litert"


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


def random_values(rng: np.random.Generator, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    """Uniform integers with a share of extremes; normal floats."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 4).astype(dtype)
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    extreme = rng.random(shape) < 0.1
    ends = np.where(rng.random(shape) < 0.5, info.min, info.max).astype(dtype)
    return np.where(extreme, ends, values).astype(dtype)


def check(
    content: bytes,
    feeds: list[list[np.ndarray]],
    *,
    may_refuse: Collection[str] = (),
    numerics: str | None = None,
) -> str:
    """Compare every computed tensor after the last feed set. Returns ``"equal"`` or ``"refused"``.

    Compared is `numerics` (default: the one that the test is repeated for) with the resolver that it reproduces.
    `may_refuse` holds error codes with which bittrue may refuse what the runtime runs: its result is undefined there.
    """
    numerics = numerics or COMPARED
    error: bittrue.BittrueError | None = None
    values: dict[str, np.ndarray] = {}
    names: dict[int, str] = {}
    try:
        graph = bittrue.load(content).graph
        session = bittrue.load(content).prepare(
            numerics,
            executor="reference",
            shapes={graph.tensors[i].name: f.shape for i, f in zip(graph.inputs, feeds[0], strict=True)},
        )
        names = {
            i: t.name
            for i, t in enumerate(graph.tensors)
            if not t.is_constant and i not in graph.inputs and session.plan.tensors[i].kind != "unused"
        }
        for feed in feeds:
            values = session.trace(*feed)
        check_native(session, feeds, values)
    except bittrue.BittrueError as caught:
        error = caught
        graph = bittrue.load(content).graph
        names = {i: graph.tensors[i].name for node in graph.nodes for i in node.outputs}
    if error is not None and error.code == "BT-UNDEFINED" and numerics != "litert":
        # A row of a derived numerics that says why it has no result; there is nothing to compare.
        if not currently_in_test_context():
            pytest.skip(error.message)
        event(f"refused by a row: {error.message[:60]}")
        return "refused"
    answer = oracle(RESOLVERS[numerics]).run(content, feeds, list(names))
    if error is not None:
        assert not answer.ran or error.code in may_refuse, f"bittrue refused what the runtime runs: {error}"
        if currently_in_test_context():
            event(f"refused {error.code}")
        return "refused"
    assert not answer.aborted, "the runtime aborted, bittrue gave a result"
    assert answer.ran, f"bittrue ran what the runtime refused: {answer.refused}"
    for index, name in names.items():
        assert_same(name, values[name], answer.values[index])
    return "equal"


def only_output(content: bytes, *feed: np.ndarray) -> np.ndarray:
    """The single output of a model, without asking the runtime."""
    (value,) = bittrue.load(content).prepare().run(*feed).values()
    return value


def assert_same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal shape, type and bytes (NaNs compare by bytes, too)."""
    assert ours.shape == theirs.shape, f"{name}: shape {ours.shape}, the runtime has {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{name}: type {ours.dtype}, the runtime has {theirs.dtype}"
    if np.ascontiguousarray(ours).tobytes() == np.ascontiguousarray(theirs).tobytes():
        return
    different = np.argwhere(~_same_elements(ours, theirs))
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

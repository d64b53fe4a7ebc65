"""What follows from a file alone, before anything is planned: shapes and values for the rewrites of a numerics."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import BittrueError, ResourceError
from ..graph import Attribute, Graph, Node, Tensor
from ..numerics import Numerics
from ..operators import find
from ..records import replace
from ..rewrites import Settled, rewrite
from ..rewrites.called_graphs import rewritten_inwards
from .folding import LARGEST, Room, constant_bytes
from .plan import Source
from .planner import DEFAULT_MEMORY_LIMIT, _check_size, _Job, _plan_node, _seed, _State, plan_source
from .recalled import Came, Recalled
from .support import node_types

# For free sizes, in pairs: small ones that broadcast with nothing by chance, then larger ones, since windows may not
# fit into these; at last two that most sizes divide which a file keeps beside free ones.
_SIZES = ((2, 3), (64, 65), (1000, 1001), (120, 240))
# More than windows step at once, in all layers together: so far apart, other sizes have other numbers of windows. Its
# square is more than sizes are divided by.
_FAR = 65


def rewritten_graph(
    graph: Graph, numerics: Numerics, memory_limit: int = DEFAULT_MEMORY_LIMIT
) -> tuple[Graph, tuple[str, ...]]:
    """The graph that is planned: after the numerics' rewrites, with what they have to say. Errors as for `rewrite`."""
    return rewrite(graph, numerics.rewrites, partial(Declared, numerics, memory_limit, recalled=Recalled()))


def rewritten_graphs(
    graph: Graph, graphs: Sequence[Graph], numerics: Numerics, memory_limit: int
) -> tuple[tuple[Graph, tuple[str, ...]], list[Graph]]:
    """The same of a graph and, without words, of all graphs of its file, among which it may be."""
    if not numerics.rewrites:
        return (graph, ()), list(graphs)
    known = functools.cache(partial(Declared, numerics, memory_limit, recalled=Recalled()))
    first, others = rewritten_inwards(graph, graphs, known, partial(rewrite, names=numerics.rewrites, shapes=known))
    return first, [one for one, _ in others]


class Declared:
    """For rewrites: shapes and values that follow from what a file declares; -1 for what depends on a free size of an
    input.

    A size is free when it changes with those of the inputs. What cannot be planned is left out.
    """

    def __init__(self, numerics: Numerics, memory_limit: int, graph: Graph, recalled: Recalled | None = None) -> None:
        self._numerics, self._limit, self._graph = numerics, memory_limit, graph
        self._recalled = Recalled() if recalled is None else recalled
        self._job = _Job(Source(numerics, (graph,), memory_limit, plan_source))
        self._settled: Settled | None = None
        self.kept: dict[str, Any] = {}
        self._constant_bytes = constant_bytes(graph)
        self._room = Room(self._constant_bytes, memory_limit)
        # Whether a node did not take the shapes of all that it reads, or what a walk tried for a free size among them.
        self._refuses = self._misfits = False

    def __call__(self) -> Settled:
        if self._settled is None:
            self._settled = self._find()
        return self._settled

    # What overflows and what is no number is decided by rules.
    @np.errstate(all="ignore")
    def compute(
        self, node: Node, tensors: Sequence[Tensor], values: Sequence[np.ndarray | None], held: int
    ) -> list[np.ndarray] | None:
        """What a node makes of known values, as `Shapes` says; none of rows that are marked inexact."""
        known = [value for value in values if value is not None]
        read = iter(range(len(known)))
        inputs = tuple(None if value is None else next(read) for value in values)
        outputs = tuple(range(len(known), len(known) + len(node.outputs)))
        attributes: dict[str, Attribute] = {**node.attributes, "computed_weights": tuple(range(1, len(inputs)))}
        alone = replace(node, inputs=inputs, outputs=outputs, attributes=attributes)
        used = [tensors[index] for index in (*node.inputs, *node.outputs) if index is not None]
        graph = Graph("", tuple(used), (alone,), (), outputs, version=self._graph.version)
        self._room.held = held
        state = _State(graph, self._job, room=self._room)
        state.values = dict(enumerate(known))
        state.shapes = {index: value.shape for index, value in state.values.items()}
        with contextlib.suppress(BittrueError):
            if self._numerics.candidates(alone.operator, *node_types(graph, alone)):
                _plan_node(state, alone, self._numerics, LARGEST)
        return [state.values[i] for i in outputs] if state.folded and not state.folded_inexact else None

    def _find(self) -> Settled:
        graph = self._graph
        free = any(-1 in (graph.tensors[i].shape_signature or ()) for i in graph.inputs)
        written = {index for node in graph.nodes for index in node.outputs}
        found = Settled({}, {})
        for size, other in _SIZES:
            try:
                settled = self._tried(size, other if free else size)
            except ResourceError:
                break  # larger ones do not fit either
            found = settled if len(settled.shapes) > len(found.shapes) else found
            if not free or not self._refuses or written <= found.shapes.keys():
                break
        if free and self._misfits and not written <= found.shapes.keys():
            size, other = _SIZES[1]
            with contextlib.suppress(ResourceError):
                settled = self._tried(size, other, fits=True)
                found = settled if len(settled.shapes) > len(found.shapes) else found
        return found

    def _tried(self, size: int, other: int, fits: bool = False) -> Settled:
        """What walks with both sizes for free ones say alike, the same size where none is free; others are asked where
        chance may have a part in it.
        """
        some = self._walk(size, fits)
        if size == other:
            return _common(some, some)
        settled = _common(some, self._walk(other, fits))
        loses_values = _loses_values(self._graph, some, settled)
        if loses_values or _loses_sizes(self._graph, settled):
            settled = _agreed(settled, self._walk(size + _FAR, fits))
        if loses_values:
            with contextlib.suppress(ResourceError):
                settled = _agreed(settled, self._walk(size + _FAR * _FAR, fits))
        return settled

    @functools.cached_property
    def _begun(self) -> _State:
        """Where all walks begin: what is known before sizes are tried for free ones."""
        graph = self._graph
        state = _State(graph, self._job)
        state.constant_bytes = self._constant_bytes
        signatures = ((i, graph.tensors[i].shape_signature) for i in graph.inputs)
        _seed(state, {i: tuple(max(e, 0) for e in s) for i, s in signatures if s is not None})
        for index in graph.inputs:
            if graph.tensors[index].is_unranked:
                state.shapes.pop(index, None)
        return state

    @functools.cached_property
    def _begun_wide(self) -> _State:
        """The same on binary32 instead of binary16 numbers, for the shapes of nodes that the runtime widens."""
        tensors = tuple(replace(t, dtype="f32") if t.dtype == "f16" else t for t in self._graph.tensors)
        values = self._begun.values.items()
        values_wide = {i: v.astype(np.float32) if v.dtype == np.float16 else v for i, v in values}
        state = _State(replace(self._graph, tensors=tensors), self._job, values=values_wide)
        state.constant_bytes = self._constant_bytes
        return state

    @functools.cached_property
    def _walked(self) -> list[tuple[Node, bool]]:
        """Nodes that are walked over, and whether they are widened. What other graphs give is not looked at."""
        found, candidates = [], self._numerics.candidates
        for node in self._graph.nodes:
            operator = find(node.operator)
            if operator is None or operator.graphs:
                continue
            if candidates(node.operator, *node_types(self._graph, node)):
                found.append((node, False))
            elif candidates(node.operator, *node_types(self._begun_wide.graph, node)):
                found.append((node, True))
        return found

    def _walk(self, size: int, fits: bool = False) -> _State:
        """Shapes where every free size of an input is `size`, or with `fits` what the one node that reads it takes."""
        graph, shapes, job = self._graph, dict(self._begun.shapes), _Job(self._job.source)
        for index in graph.inputs:
            tensor = graph.tensors[index]
            if -1 in (tensor.shape_signature or ()) and not tensor.is_constant:
                shapes[index] = tuple(size if e == -1 else e for e in tensor.shape_signature or ())
                if not fits:  # what fits is smaller
                    _check_size(f"tensor '{tensor.name}'", tensor, shapes[index], self._limit)
        # Both know the same shapes.
        state, wide = self._begun.again(job, shapes), self._begun_wide.again(job, shapes)
        for node, widened in self._walked:
            walked = wide if widened else state
            if self._plan(walked, node):
                known = {} if widened else {i: state.values[i] for i in node.outputs if i in state.values}
                wide.values.update((i, value) for i, value in known.items() if value.dtype != np.float16)
            elif all(i is None or i in shapes for i in node.inputs):
                self._refuses = True
                if any(i is not None and size in shapes[i] for i in node.inputs):
                    self._misfits = True
                    if fits:
                        shapes.update(self._fitted(walked, node, size))
        return state

    def _plan(self, state: _State, node: Node) -> bool:
        """Adds to `state` what comes of a node, which another walk may know; whether it fits."""
        tensors, read = self._graph.tensors, [i for i in node.inputs if i is not None]
        used = [tensors[i] for i in (*read, *node.outputs, *node.intermediates)]
        shapes = [state.shapes.get(i) for i in read]
        # Constants are known by their tensors.
        values = [None if tensors[i].is_constant else state.values.get(i) for i in read]
        unpacked = [state.unpacked.get(i) for i in (*read, *node.outputs)] if state.unpacked else None
        came = self._recalled.find(node, used, shapes, values, unpacked)
        if came is None or (came.asked is not None and state.may_fold(*came.asked) != bool(came.folded)):
            folded, work, fits, state.asked = state.folded_bytes, state.job.folded_work, True, None
            try:
                _plan_node(state, node, self._numerics, self._limit)
            except BittrueError:
                fits = False
            found = {i: state.shapes[i] for i in node.outputs if i in state.shapes}
            made = {i: self._recalled.one(state.values[i]) for i in node.outputs if i in state.values}
            state.values.update(made)
            folded, work = state.folded_bytes - folded, state.job.folded_work - work
            came = Came(node, used, values, unpacked, fits, found, made, state.asked, folded, work)
            self._recalled.keep(came, shapes)
            return fits
        state.shapes.update(came.shapes)
        state.values.update(came.folded)
        state.folded += came.folded
        state.folded_bytes += came.folded_bytes
        state.job.folded_work += came.folded_work
        return came.fits

    def _fitted(self, state: _State, node: Node, size: int) -> dict[int, tuple[int, ...]]:
        """What a node gives when one axis of `size` has a size of another operand, as channels have of filters; nothing
        where several would do.
        """
        shapes = {i: state.shapes[i] for i in node.inputs if i is not None and i in state.shapes}
        values = {i: state.values[i] for i in shapes if i in state.values}
        found = []
        for index, shape in shapes.items():
            others = {e for other in shapes if other != index for e in shapes[other]} - {size}
            for axis, tried in itertools.product((a for a, e in enumerate(shape) if e == size), sorted(others)):
                changed = {**shapes, index: (*shape[:axis], tried, *shape[axis + 1 :])}
                alone = _State(state.graph, state.job, shapes=changed, values=dict(values), only_shapes=True)
                with contextlib.suppress(BittrueError):
                    _plan_node(alone, node, self._numerics, self._limit)
                    found.append({i: alone.shapes[i] for i in node.outputs if i in alone.shapes})
        return found[0] if found and all(one == found[0] for one in found) else {}


def _alike(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that both have, -1 for others."""
    return tuple(a if a == b else -1 for a, b in zip(shape, other, strict=True))


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _common(some: _State, others: _State) -> Settled:
    """What two walks with other free sizes say alike."""
    shapes = {
        index: _alike(shape, others.shapes[index])
        for index, shape in some.shapes.items()
        if index in others.shapes and len(others.shapes[index]) == len(shape)
    }
    values = {
        index: some.values[index]
        for index in some.folded
        if index in others.values and _same(some.values[index], others.values[index])
    }
    return Settled(shapes, values)


def _loses_sizes(graph: Graph, settled: Settled) -> bool:
    """Whether a node of a tensor with free sizes seems to give one of as many dimensions and fewer of these."""
    for node in graph.nodes:
        results = [settled.shapes.get(index, ()) for index in node.outputs]
        for index in node.inputs:
            shape = () if index is None else settled.shapes.get(index, ())
            if any(len(one) == len(shape) and one.count(-1) < shape.count(-1) for one in results):
                return True
    return False


def _loses_values(graph: Graph, some: _State, settled: Settled) -> bool:
    """Whether a node computes the same from values that differ, as parts of sizes near each other."""
    for node in graph.nodes:
        if (
            settled.values.keys().isdisjoint(node.outputs)
            or (operator := find(node.operator)) is None
            or operator.moves
        ):
            continue
        if any(index in some.values and index not in settled.values for index in node.inputs if index is not None):
            return True
    return False


def _agreed(settled: Settled, others: _State) -> Settled:
    """What a further walk does not contradict, as far as it comes."""
    shapes = dict(settled.shapes)
    for index, shape in settled.shapes.items():
        if index in others.shapes and len(others.shapes[index]) == len(shape):
            shapes[index] = _alike(shape, others.shapes[index])
    values = {
        index: value
        for index, value in settled.values.items()
        if index not in others.values or _same(value, others.values[index])
    }
    return Settled(shapes, values)

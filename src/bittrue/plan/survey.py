"""A graph planned node by node as far as each node goes, where `make_plan` stops at the first one that is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import BittrueError
from ..graph import Graph, Node
from ..numerics import Numerics
from ..operators import Step, ValueUnknown
from ..records import dataclass, replace
from .declared import rewritten_graphs
from .folding import with_constants
from .plan import Source
from .planner import DEFAULT_MEMORY_LIMIT, _Job, _plan_node, _seed, _State, _wanted, plan_source
from .support import MAX_NODES, check_graph


@dataclass(frozen=True, eq=False)
class Refusal:
    """A node that the numerics refuses, leaves undefined or has no row for; and with which error."""

    node: Node
    error: BittrueError


@dataclass(frozen=True, eq=False)
class Survey:
    """What planning says about every node of a graph.

    Attributes:
        graph: after the numerics' rewrites; it has the file's inputs and outputs, and tensors keep their indices.
        steps: of the nodes that can be planned, in order; nodes whose results are known beforehand have none.
        refused: the others, but for those that only fail because an earlier one did.
        shapes: of tensors by index, as far as they are known; those behind a refused node are the file's claims.
        values: of constants and of what follows from them.
        notes: of the rewrites.
        failure: why nothing could be looked at; None as a rule.
    """

    graph: Graph
    steps: tuple[Step, ...]
    refused: tuple[Refusal, ...]
    shapes: Mapping[int, tuple[int, ...]]
    values: Mapping[int, np.ndarray]
    notes: tuple[str, ...] = ()
    failure: BittrueError | None = None


def survey_graph(
    graph: Graph,
    numerics: Numerics,
    graphs: Sequence[Graph] = (),
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Survey:
    """Plan what can be planned of `graph` and collect the rest.

    Shapes of what a refused node computes are taken from the file, so that the nodes behind it are looked at, too.

    Args:
        graph: nodes in execution order.
        numerics: the table that fills the slots.
        graphs: all graphs of the file, for operators that call other graphs.
        shapes: as for `make_plan`.
        memory_limit: bytes that a single tensor may take; errors as for `make_plan`, inside the result.
    """
    try:
        limit = with_constants(memory_limit, graph, *graphs)
        (graph, notes), others = rewritten_graphs(graph, graphs, numerics, memory_limit)
        source = Source(numerics, tuple(others) or (graph,), limit, plan_source)
        state = _State(graph, _Job(source))
        _seed(state, _wanted(graph, shapes or {}))
    except BittrueError as error:
        return Survey(graph, (), (), {}, {}, failure=error)
    refused = []
    for node in graph.nodes[:MAX_NODES]:
        if any(i is not None and i not in state.shapes for i in node.inputs):
            continue
        try:
            check_graph(replace(graph, nodes=(node,)), source)
            _plan_node(state, node, numerics, limit)
        except ValueUnknown:
            _believe(state, node)
        except BittrueError as error:
            refused.append(Refusal(node, error))
            _believe(state, node)
        else:
            if state.unknown:
                _believe(state, node)
        state.unknown = []
    return Survey(graph, tuple(state.steps), tuple(refused), state.shapes, state.values, notes)


def _believe(state: _State, node: Node) -> None:
    """Shapes that the file declares, where it leaves nothing open."""
    for index in node.outputs:
        tensor = state.graph.tensors[index]
        if index not in state.shapes and -1 not in (tensor.shape_signature or ()) and (tensor.shape or not node.inputs):
            state.shapes[index] = tensor.shape

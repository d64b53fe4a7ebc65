"""Which numerics run a model, and which of its nodes: having a row says little, so everything is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import numerics as tables
from ..errors import BittrueError, InputError
from ..graph import Graph
from ..numerics import Numerics
from ..operators import find
from ..operators.core.called import uses
from ..records import dataclass, replace
from .first_plan import first_plan
from .support import node_types
from .survey import survey_graph

Shapes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Able:
    """What every numerics says of a model.

    Attributes:
        whole: those that run it.
        refused: those that have rows for all operators as they stand in the file and refuse it, and why.
        nodes: by numerics, the indices of the nodes that it runs, one set for each graph.
        notes: by numerics that runs it, what its plans say beside the file's own notes.
        open: an input's shape that nobody has said, for which nothing could be planned: `whole` are then all that have
            rows for all operators.
    """

    whole: tuple[str, ...]
    refused: Mapping[str, BittrueError]
    nodes: Mapping[str, tuple[frozenset[int], ...]]
    notes: Mapping[str, tuple[str, ...]]
    open: InputError | None = None


def numerics_able(graphs: Sequence[Graph], shapes: Shapes | None = None) -> Able:
    """Plan a model's graphs under every numerics; `shapes` of inputs by name."""
    whole: list[str] = []
    refused: dict[str, BittrueError] = {}
    nodes: dict[str, tuple[frozenset[int], ...]] = {}
    notes: dict[str, tuple[str, ...]] = {}
    unknown: InputError | None = None
    every = tuple(frozenset(node.index for node in graph.nodes) for graph in graphs)
    for name in tables.names():
        table = tables.find(name)
        rows = tuple(_with_rows(graph, table) for graph in graphs)
        try:
            notes[name] = _plan(graphs, table, shapes or {})
        except InputError as error:
            unknown = error
        except BittrueError as error:
            if rows == every:
                refused[name] = error
            nodes[name] = tuple(_planned(graph, found, table) for graph, found in zip(graphs, rows, strict=True))
            continue
        whole.append(name)
        nodes[name] = every
    return Able(tuple(whole), refused, nodes, notes, unknown)


def _with_rows(graph: Graph, table: Numerics) -> frozenset[int]:
    """Nodes for which the numerics has a row: their operator, version and types."""
    return frozenset(
        node.index
        for node in graph.nodes
        if find(node.operator)
        and table.runs(node.operator, node.source, node.version, *node_types(graph, node), node.attributes)
    )


def _plan(graphs: Sequence[Graph], table: Numerics, shapes: Shapes) -> tuple[str, ...]:
    """Plan what callers may run: graphs that no other one calls. Gives what the plans say."""
    notes: dict[str, None] = {}
    called = {index for graph in graphs for node in graph.nodes for index in uses(node)}
    for index, graph in enumerate(graphs):
        if index not in called:
            names = {graph.tensors[i].name for i in graph.inputs} | graph.aliases.keys()
            known = {name: shape for name, shape in shapes.items() if name in names}
            notes.update(dict.fromkeys(first_plan(graph, table, shapes=known, graphs=graphs).notes))
    return tuple(notes)


def _planned(graph: Graph, rows: frozenset[int], table: Numerics) -> frozenset[int]:
    """Those of the nodes with a row that can be planned as they stand in the file, without rewrites."""
    if not rows:
        return rows
    nodes = tuple(node for node in graph.nodes if node.index in rows)
    made = {index for node in nodes for index in node.outputs}
    # What nodes without a row make comes from outside, in the shape that the file declares.
    given = {i for node in nodes for i in node.inputs if i is not None and i not in made}
    inputs = tuple(sorted(i for i in given if not graph.tensors[i].is_constant and not graph.tensors[i].is_variable))
    part = replace(graph, nodes=nodes, inputs=inputs, outputs=tuple(sorted(made)))
    refused = survey_graph(part, replace(table, rewrites=())).refused
    return rows - {one.node.index for one in refused}

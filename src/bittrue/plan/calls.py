"""Which graphs of a file a graph calls, directly or not. Files are untrusted: indices, cycles, depth and order."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidModelError, UnsupportedError
from ..graph import Graph, find_disorder
from ..operators import Call, find
from ..operators.core.base import GraphUse
from ..operators.core.called import uses

# Far above what converters write.
_MAX_DEPTH = 16


def never_called(call: Call, use: GraphUse) -> bool:
    """Whether it is known at plan time that a node does not call a graph, which need not fit then."""
    if use.optional and use.attribute not in call.node.attributes:
        return True
    chosen = use.when is not None and not call.attribute("plans_both")
    known = call.input(0).value if chosen and call.has(0) else None
    return known is not None and known.size == 1 and bool(known.reshape(-1)[0]) != use.when


def find_called(graph: Graph, graphs: Sequence[Graph]) -> list[int]:
    """Indices of all graphs that `graph` may call, each once.

    Raises:
        InvalidModelError: an index out of range, graphs that call themselves or too deep, tensors that are read before
            they are written or written twice.
        UnsupportedError: a called graph keeps variable tensors.
    """
    done: dict[int, int] = {}
    path: list[int] = []

    def visit(part: Graph) -> int:
        """The depth of calls below `part`."""
        deepest = 0
        for node in part.nodes:
            place = f"{node}" if part is graph else f"graph '{part.name}', {node}"
            for index in uses(node):
                if not 0 <= index < len(graphs):
                    raise InvalidModelError(
                        "BT-CONTROL-GRAPH", f"it calls graph {index}, the file has {len(graphs)}", place=place
                    )
                if index in path:
                    raise InvalidModelError(
                        "BT-CONTROL-CYCLE", f"graph {index} '{graphs[index].name}' would call itself", place=place
                    )
                if len(path) >= _MAX_DEPTH:
                    raise InvalidModelError(
                        "BT-CONTROL-DEPTH", f"graphs call each other more than {_MAX_DEPTH} deep", place=place
                    )
                if index not in done:
                    _check(graphs[index])
                    path.append(index)
                    done[index] = visit(graphs[index])
                    path.pop()
                elif len(path) + 1 + done[index] > _MAX_DEPTH:
                    raise InvalidModelError(
                        "BT-CONTROL-DEPTH", f"graphs call each other more than {_MAX_DEPTH} deep", place=place
                    )
                deepest = max(deepest, 1 + done[index])
        return deepest

    visit(graph)
    return sorted(done)


def needed_graphs(graph: Graph, graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """All graphs when `graph` calls some of them, or has resources, which are numbered over all of them."""
    operators = [find(node.operator) for node in graph.nodes]
    if not any(operator is not None and (operator.graphs or operator.worldly) for operator in operators):
        return (graph,)
    return tuple(graphs) if any(one is graph for one in graphs) else (*graphs, graph)


def _check(graph: Graph) -> None:
    found = find_disorder(graph.tensors, graph.nodes, graph.inputs, graph.outputs)
    if found is not None:
        place = f"graph '{graph.name}', {found.where}, tensor {found.tensor}"
        raise InvalidModelError(found.code, found.message, place=place)
    for tensor in graph.tensors:
        if tensor.is_variable:
            raise UnsupportedError(
                "BT-CONTROL-STATE",
                f"'{tensor.name}' keeps state inside of a graph that another one calls",
                place=f"graph '{graph.name}'",
                advice="keep the state in the main graph, or in a resource variable",
            )

"""Which graphs of a file a node calls."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node
from .. import find


def uses(node: Node) -> Iterator[int]:
    """Indices of the graphs that a node calls."""
    operator = find(node.operator)
    for use in operator.graphs if operator is not None else ():
        if use.optional and use.attribute not in node.attributes:
            continue
        index = node.attributes.get(use.attribute)
        yield index if isinstance(index, int) else -1


def unchanged_inputs(graph: Graph) -> set[int]:
    """Positions of the inputs that a graph returns as its next ones."""
    return {k for k, (before, after) in enumerate(zip(graph.inputs, graph.outputs, strict=False)) if before == after}

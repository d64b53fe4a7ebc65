"""Where results of a plan may differ from the runtime's in bits, told before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..graph import UNREPRODUCED, Graph, Node
from ..numerics import Numerics
from ..numerics.table import OF_ATTRIBUTES
from ..operators import find
from .support import node_types

if TYPE_CHECKING:
    from .plan import Plan


def may_differ(graph: Graph, node: Node, numerics: Numerics, surely: bool = False) -> bool:
    """Whether a node without a plan may get a row that is marked inexact; `surely`: it gets one for certain."""
    if node.attributes.get(UNREPRODUCED):
        return True
    for row in numerics.candidates(node.operator, *node_types(graph, node)):
        known = all(condition[0] == OF_ATTRIBUTES for condition in row.when)
        if not row.fits(node.attributes) or (surely and not known):
            continue
        if row.inexact:
            return True
        if known:
            return False
    return False


def limits(graphs: Iterable[Graph], numerics: Numerics) -> tuple[str, ...]:
    """What a numerics says of all its rows on real numbers, where a node computes such numbers of others."""
    if numerics.limit and any(_computes_reals(graph, node) for graph in graphs for node in graph.nodes):
        return (numerics.limit,)
    return ()


def _computes_reals(graph: Graph, node: Node) -> bool:
    operator = find(node.operator)
    if operator is not None and operator.moves:
        return False
    operands = (graph.tensors[i] for i in node.inputs if i is not None)
    results = (graph.tensors[i] for i in node.outputs)
    return any(t.type.is_float and not t.is_constant for t in operands) and any(t.type.is_float for t in results)


def without_steps(plan: Plan) -> list[str]:
    """The operators, by their names in the file, that were computed at plan time or come later, and may differ."""
    found = list(plan.folded_inexact)
    if plan.later is not None and plan.source is not None:
        graph, numerics = plan.later.graph, plan.source.numerics
        found += [node.source for node in graph.nodes if may_differ(graph, node, numerics)]
    return found


def inexact(plan: Plan) -> tuple[str, ...]:
    """All of them, one entry per node, those of called graphs too."""
    found = [*(step.source for step in plan.steps if step.inexact), *without_steps(plan)]
    for nested in plan.nested:
        found += inexact(nested.plan)
    return tuple(found)


def counted(operators: Iterable[str]) -> str:
    """Names with how often they occur.

    >>> counted(["Cos", "LRN", "Cos"])
    '2 Cos, 1 LRN'
    """
    return ", ".join(f"{count} {name}" for name, count in Counter(operators).most_common())

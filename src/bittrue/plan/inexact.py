"""Where results of a plan may differ from the runtime's in bits, told before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..graph import Graph, Node
from ..numerics import Numerics
from .support import node_types

if TYPE_CHECKING:
    from .plan import Plan

# The condition that a node alone decides, without shapes and values.
_OF_NODES = "attribute_is"


def may_differ(graph: Graph, node: Node, numerics: Numerics, surely: bool = False) -> bool:
    """Whether a node without a plan may get a row that is marked inexact; `surely`: it gets one for certain."""
    for row in numerics.candidates(node.operator, *node_types(graph, node)):
        told = [condition[1:] for condition in row.when if condition[0] == _OF_NODES]
        known = [node.attributes.get(str(name)) in values for name, *values in told]
        if not all(known) or (surely and len(known) < len(row.when)):
            continue
        if row.inexact:
            return True
        if len(known) == len(row.when):
            return False
    return False


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

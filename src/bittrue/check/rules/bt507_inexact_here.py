"""BT507: operators whose bits bittrue is known not to reproduce."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.support import node_types
from ..finding import Finding
from ..rule import Rule, Subject
from ..surveys import in_file, survey


def find(subject: Subject) -> Iterator[Finding]:
    """One note per recorded limit."""
    made = survey(subject)
    nodes = {node.index: node for node in made.graph.nodes}
    seen: dict[str, list[int]] = {}
    for step in made.steps:
        if not step.inexact or step.index not in nodes:
            continue
        node = nodes[step.index]
        rows = subject.numerics.candidates(node.operator, *node_types(made.graph, node))
        limit = next((row.limit for row in rows if row.inexact and row.rules == step.rules), "results differ in bits")
        seen.setdefault(f"{node.source}: {limit}", []).append(step.index)
    for text, indices in seen.items():
        graph, node_in_file = in_file(subject, made, nodes[indices[0]])
        yield RULE.finding(
            f"bittrue does not give the runtime's bits at {len(indices)} nodes: {text}",
            graph=graph,
            node=node_in_file,
            found=subject.numerics.name,
            advice="take differences that begin at these nodes for what they are, and compare from behind them",
            numbers={"nodes": len(indices), "first": indices[0]},
        )


RULE = Rule(
    code="BT507",
    name="inexact-here",
    severity="note",
    what="Operators for which the numerics records that bittrue's results may differ from the runtime's in bits, with"
    " how and how often.",
    why="A comparison with the runtime differs there without any fault of the model, and so may everything behind.",
    enforced="bittrue's own tables say so (rows marked inexact).",
    fix="Nothing in the model. Give the recorded tensor of the runtime to what follows.",
    source="the `limit` of the numerics' rows (run)",
    find=find,
)

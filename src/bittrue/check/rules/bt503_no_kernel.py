"""BT503: operators and types that the runtime, or bittrue's table of it, has nothing for."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Node
from ...plan.support import node_types
from ...plan.survey import Survey
from ..finding import Finding
from ..refusals import NO_ROW, refusals
from ..rule import Rule, Subject
from ..surveys import in_file


def find(subject: Subject) -> Iterator[Finding]:
    """One finding for each combination of operator and types."""
    alike: dict[str, list[tuple[Survey, Node]]] = {}
    for made, refusal in refusals(subject, NO_ROW):
        inputs, outputs = node_types(made.graph, refusal.node)
        signature = f"{refusal.node.source} ({', '.join(inputs)} -> {', '.join(outputs)})"
        alike.setdefault(signature, []).append((made, refusal.node))
    for signature, nodes in alike.items():
        made, first = nodes[0]
        graph, node = in_file(subject, made, first)
        known = subject.numerics.alternatives(first.operator)
        if first.operator == "custom":
            severity, advice = "note", "it is defined by the program that registers it: check the part before it"
        else:
            severity, advice = "", "use types that there is a kernel for" if known else "replace the operator"
        where = ", ".join(str(one.index) for _, one in nodes[:6]) + (", ..." if len(nodes) > 6 else "")
        yield RULE.finding(
            f"{subject.numerics.name} has no kernel for {signature}: {len(nodes)} nodes ({where})",
            graph=graph,
            node=node,
            severity=severity,
            expected="; ".join(known[:6]),
            found=signature,
            advice=advice,
            numbers={"nodes": len(nodes)},
        )


RULE = Rule(
    code="BT503",
    name="no-kernel",
    severity="warning",
    what="The runtime has a kernel for every operator with the types that it is given. One finding per operator and"
    " types; a note for custom operators, which belong to the program that registers them.",
    why="The model does not load, or the node is left to another runtime. Where bittrue's table has no row although the"
    " runtime has a kernel, nothing is checked and compared from there on.",
    enforced="LiteRT: 'Type ... not supported' in Prepare or Eval, 'Didn't find op for builtin opcode' at load; ONNX"
    " Runtime: 'Could not find an implementation for' at load. bittrue: BT-OPERATOR.",
    fix="`bittrue numerics show NAME` lists what there is. Quantize the operator's inputs to a type of the list, or"
    " leave the operator in real numbers.",
    source="the numerics' tables, held against the runtimes (run)",
    find=find,
)

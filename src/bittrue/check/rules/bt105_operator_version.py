"""Operator versions that the runtime does not know."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Nodes whose version lies outside of the runtime's range, for operators that it has at all."""
    known = set(subject.numerics.operators())
    for graph, node in subject.nodes():
        if node.operator not in known or subject.numerics.knows(node.source, node.version):
            continue
        oldest, newest = subject.numerics.versions.get(node.source, (1, 1))
        yield RULE.finding(
            f"version {node.version} of {node.source} is asked for; {subject.numerics.reproduces} knows {oldest} "
            f"to {newest}",
            graph=graph,
            node=node,
            expected=f"{oldest} to {newest}",
            found=node.version,
            advice="convert with a converter of the runtime's age, or use a newer runtime",
        )


RULE = Rule(
    code="BT105",
    name="operator-version",
    severity="error",
    what="The runtime knows the version of every operator.",
    why="A version stands for types or options that an older kernel does not have.",
    enforced='LiteRT refuses to load the model ("Didn\'t find op for builtin opcode"; run).',
    fix="Convert with a converter of the runtime's age, or ship a newer runtime.",
    source="Registrations of the runtimes (read and run); the numerics' tables",
    find=find,
)

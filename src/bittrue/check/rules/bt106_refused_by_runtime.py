"""Models that the runtime they are checked for does not run."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import BittrueError, InvalidModelError, ResourceError
from ..finding import Finding
from ..open_sizes import open_sizes
from ..rule import Rule, Subject
from ..surveys import survey


def find(subject: Subject) -> Iterator[Finding]:
    """Why the main graph cannot be planned under the numerics, where that is the fault of no node of its own."""
    error = subject.planned
    if not isinstance(error, BittrueError) or survey(subject).refused:
        return
    sizes = open_sizes(subject, error)
    undefined = isinstance(error, InvalidModelError) or error.code == "BT-UNDEFINED"
    severity = "error" if undefined else "warning"
    if sizes or isinstance(error, ResourceError):
        severity = "note"
    yield RULE.finding(
        f"numerics '{subject.numerics.name}' refuses the model as a whole: {error.message}{sizes}",
        graph=subject.graphs[0],
        severity=severity,
        place=error.place,
        found=error.code,
        advice=error.advice,
    )


RULE = Rule(
    code="BT106",
    name="refused-by-runtime",
    severity="error",
    what="The runtime can run the main graph as a whole: what it needs, the graphs that it calls, its number of nodes. "
    "What it refuses of single nodes is said by BT501, BT502 and BT503.",
    why="A model that its own runtime refuses cannot be shipped, and rules that need its plan (bounds of accumulators, "
    "multipliers) find nothing in it.",
    enforced="The planner of bittrue, with the checks that the numerics recorded of the runtime. A note is a limit of "
    "bittrue's own (memory), or sizes of inputs that the file leaves open.",
    fix="The finding says what is refused, and where; --shape gives open dimensions.",
    source="The numerics' tables: each row with its evidence (`bittrue numerics show NAME`)",
    find=find,
)

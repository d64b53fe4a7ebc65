"""Models that the runtime they are checked for does not run."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import BittrueError, InvalidModelError, ResourceError
from ..finding import Finding
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Why the main graph cannot be planned under the numerics."""
    error = subject.planned
    if not isinstance(error, BittrueError):
        return
    graph = subject.graphs[0]
    open_inputs = [
        tensor.name
        for tensor in (graph.tensors[index] for index in graph.inputs)
        if tensor.name not in subject.shapes and -1 in (tensor.shape_signature or ())
    ]
    undefined = isinstance(error, InvalidModelError) or error.code == "BT-UNDEFINED"
    severity = "error" if undefined else "note" if isinstance(error, ResourceError) else "warning"
    message = f"numerics '{subject.numerics.name}' refuses the model: {error.message}"
    if open_inputs and error.code != "BT-UNDEFINED":
        severity = "note"
        message += f"; open extents of {', '.join(open_inputs[:4])} were taken as 1, give them with --shape"
    yield RULE.finding(
        message,
        graph=graph,
        severity=severity,
        place=error.place,
        found=error.code,
        advice=error.advice,
    )


RULE = Rule(
    code="BT106",
    name="refused-by-runtime",
    severity="error",
    what="The runtime's arithmetic is defined for every operator of the model, with its types and parameters.",
    why="A model that its own runtime refuses or has no defined result for cannot be shipped, and rules that need its "
    "plan (bounds of accumulators, multipliers) find nothing in it.",
    enforced="The planner of bittrue, with the checks that the numerics recorded of the runtime. An error is what "
    "the runtime refuses or leaves undefined; a warning is what the numerics has no row for, mostly "
    "because the runtime has no kernel for it either; a note is a limit of memory, or extents of inputs "
    "that the file leaves open.",
    fix="The finding says what is refused, and where.",
    source="The numerics' tables: each row with its evidence (`bittrue numerics show NAME`)",
    find=find,
)

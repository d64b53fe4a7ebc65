"""Refusals that may only mean that a file leaves sizes of its inputs open."""

from __future__ import annotations

from ..errors import BittrueError
from .rule import Subject

# Errors that no other shape would cure.
_WITHOUT_SHAPES = (
    "BT-ACTIVATION",
    "BT-BIAS-TYPE",
    "BT-MULTIPLIER",
    "BT-NODE",
    "BT-OPERATOR",
    "BT-QUANT",
    "BT-SOFTMAX-SCALE",
    "BT-UNDEFINED",
)


def open_sizes(subject: Subject, error: BittrueError) -> str:
    """What to add to a refusal of the main graph that another shape of its inputs might cure; empty when none can."""
    graph = subject.graphs[0]
    names = [
        tensor.name
        for tensor in (graph.tensors[index] for index in graph.inputs)
        if tensor.name not in subject.shapes and -1 in (tensor.shape_signature or ())
    ]
    if not names or error.code.startswith(_WITHOUT_SHAPES):
        return ""
    return f"; open sizes of {', '.join(names[:4])} were taken as 1, give them with --shape"

"""Which nodes a runtime refuses, sorted by what that means for the model."""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.survey import Refusal, Survey
from .rule import Subject
from .surveys import survey

UNDEFINED, NO_ROW, VERSION, REFUSED = "undefined", "no row", "version", "refused"
_BY_CODE = {"BT-UNDEFINED": UNDEFINED, "BT-OPERATOR": NO_ROW, "BT-OPERATOR-VERSION": VERSION}
# What rules about scales and zero points that are operands (BT4xx) say in their own words of these nodes.
_PARAMETERS = {"BT-BIAS-LENGTH", "BT-QUANT-AXIS", "BT-QUANT-BLOCK", "BT-SHAPE-AXIS"}
_PARAMETERS_OF = {"QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul"}


def kind_of(refusal: Refusal) -> str:
    """`UNDEFINED`, `NO_ROW`, `VERSION`, or `REFUSED` for everything else."""
    return _BY_CODE.get(refusal.error.code, REFUSED)


def refusals(subject: Subject, kind: str) -> Iterator[tuple[Survey, Refusal]]:
    """The refused nodes of one kind under the subject's numerics."""
    made = survey(subject)
    for refusal in made.refused:
        parameters = refusal.node.source in _PARAMETERS_OF and refusal.error.code in _PARAMETERS
        if kind_of(refusal) == kind and not parameters:
            yield made, refusal

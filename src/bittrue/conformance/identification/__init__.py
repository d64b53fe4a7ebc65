"""`bittrue identify`: which numerics explains a black box's outputs, found by questions that rule candidates out."""

from .identify import QUESTIONS, identify
from .parts import Part
from .result import CounterExample, Explained, Finding, IdentifyResult, Nearest, RuledOut

__all__ = [
    "QUESTIONS",
    "CounterExample",
    "Explained",
    "Finding",
    "IdentifyResult",
    "Nearest",
    "Part",
    "RuledOut",
    "identify",
]

"""One element of a tensor, step by step, as a person would work it out."""

from .accumulators import accumulators, tie_distances
from .against import Pair, explain_under, first_difference, numerics_against, paired, sensible
from .choice import closest_to_tie, first_different
from .element import explain_element, step_of
from .explanation import Explanation, Line
from .mismatch import mismatch_text

__all__ = [
    "Explanation",
    "Line",
    "Pair",
    "accumulators",
    "closest_to_tie",
    "explain_element",
    "explain_under",
    "first_difference",
    "first_different",
    "mismatch_text",
    "numerics_against",
    "paired",
    "sensible",
    "step_of",
    "tie_distances",
]

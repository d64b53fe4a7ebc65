"""One stored number, step by step, as a person would work it out."""

from .accumulators import accumulators, tie_distances
from .element import explain_element
from .explanation import Explanation, Line

__all__ = ["Explanation", "Line", "accumulators", "explain_element", "tie_distances"]

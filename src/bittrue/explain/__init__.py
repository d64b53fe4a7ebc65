"""One stored number, step by step, as a person would work it out."""

from .explanation import Explanation, Line

__all__ = ["Explanation", "Line"]

"""Are two results equal, byte for byte; where do they part, and why."""

from .difference import Difference, difference

__all__ = ["Difference", "difference"]

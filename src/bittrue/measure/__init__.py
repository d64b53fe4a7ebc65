"""bittrue beside other runtimes on the same bytes: interleaved times, and a verdict on what comes out."""

from .comparison import Comparison, Contender, Result, compare
from .machine import environment
from .timing import Timing, interleave

__all__ = ["Comparison", "Contender", "Result", "Timing", "compare", "environment", "interleave"]

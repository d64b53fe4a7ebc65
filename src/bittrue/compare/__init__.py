"""bittrue beside other runtimes: are the bytes equal, and who is faster."""

from .comparison import Comparison, Contender, Feed, Result, compare
from .difference import Difference, difference
from .machine import environment
from .peers import PEERS, Peer
from .timing import Timing, interleave

__all__ = [
    "PEERS",
    "Comparison",
    "Contender",
    "Difference",
    "Feed",
    "Peer",
    "Result",
    "Timing",
    "compare",
    "difference",
    "environment",
    "interleave",
]

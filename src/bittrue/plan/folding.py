"""How much may be computed at plan time: what is folded takes memory and time that files can ask for."""

from __future__ import annotations

from ..graph import Graph
from ..operators import Step

# Results up to this many bytes are folded, and this many altogether in a graph; the rest runs as steps. Results that
# are hardly larger than the constants they are made of (weights that a layer prepares) may be as large as they like, as
# long as all of them stay within this many times the size of all constants.
FOLD_BYTES = 1 << 20
_BYTES_ALTOGETHER = 32 << 20
_CONSTANTS = 3
# Multiply-accumulates of all steps that are folded; small ones, which work out shapes, are folded after that as well.
_WORK = 1 << 24
_SMALL = 1 << 12
# What a graph's own constants become before it is planned: results of up to this many bytes, as runtimes limit them.
# All that are held at a time stay within a run's limit and this many times the size of all constants: binary32 numbers
# made of 4 bits are eight times as large, and one step later there are two of each. Altogether they take so much work,
# and this much for each byte of a constant.
LARGEST = 1 << 30
# Runs of large models take more: so much for each byte of a constant, which a file holds whole, in steps, so that plan
# files, which hold equal constants once, come to the same.
_RUN_PER_BYTE = 8
_STEP = 64 << 20
_WIDER = 16
_MOST_WORK = 1 << 28
_WORK_PER_BYTE = 16


def may_fold(step: Step, size: int, read: int, constants: int, folded: int, work: int) -> bool:
    """Whether a step whose operands are known runs at plan time.

    Args:
        step: lowered.
        size: bytes of its results.
        read: bytes of what it reads.
        constants: bytes of the graph's constants.
        folded: bytes that were folded in this graph already.
        work: multiply-accumulates that were, in all graphs of the planning.
    """
    much = step.work > _SMALL and work + step.work > _WORK
    if size <= FOLD_BYTES and not much and folded <= _BYTES_ALTOGETHER:
        return True
    return folded + size <= _CONSTANTS * constants and max(size, step.work) <= 2 * read


def constant_bytes(*graphs: Graph) -> int:
    """Bytes of the constants of some graphs; tensors that share memory count once."""
    constants = (tensor.data for graph in graphs for tensor in graph.tensors)
    return sum({data.__array_interface__["data"]: data.nbytes for data in constants if data is not None}.values())


def with_constants(memory_limit: int, *graphs: Graph) -> int:
    """The limit of a run of some graphs, for the constants that they hold."""
    return memory_limit + _RUN_PER_BYTE * constant_bytes(*graphs) // _STEP * _STEP


class Room:
    """How much of a graph with so many bytes of constants may be settled before it is planned."""

    def __init__(self, constants: int, memory_limit: int) -> None:
        self._bytes = memory_limit + _WIDER * constants
        self._work = _MOST_WORK + _WORK_PER_BYTE * constants
        self.held = 0

    def takes(self, step: Step, size: int) -> bool:
        """Whether a step with results of so many bytes runs now. Its work counts from then on."""
        if size > LARGEST or self.held + size > self._bytes or step.work > self._work:
            return False
        self._work -= step.work
        return True

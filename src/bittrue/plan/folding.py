"""How much may be computed at plan time: what is folded takes memory and time that files can ask for."""

from __future__ import annotations

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

"""Static layout of the activation arena: offsets such that tensors alive at the same time never overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALIGNMENT = 64


@dataclass(frozen=True)
class Lifetime:
    """`size` bytes alive from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


def layout(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Offsets (multiples of 64 bytes) and the arena size.

    Greedy by size: the largest tensor is placed first, each further one in the lowest gap among those already placed
    that live at the same time.
    """
    count = len(lifetimes)
    offsets = [0] * count
    # What is placed, sorted by its start: rows start, end, first, last.
    placed = np.zeros((4, count), np.int64)
    arena = 0
    for done, index in enumerate(sorted(range(count), key=lambda i: (-lifetimes[i].size, i))):
        item = lifetimes[index]
        alive = (placed[2, :done] <= item.last) & (placed[3, :done] >= item.first)
        starts, ends = placed[0, :done][alive], placed[1, :done][alive]
        # Where the item could begin before each of them, and behind all.
        free = np.zeros(starts.size + 1, np.int64)
        free[1:] = -(-np.maximum.accumulate(ends) // ALIGNMENT) * ALIGNMENT
        fits = np.flatnonzero(free[:-1] + item.size <= starts)
        position = int(free[fits[0]] if fits.size else free[-1])
        offsets[index] = position
        at = int(np.searchsorted(placed[0, :done], position))
        placed[:, at + 1 : done + 1] = placed[:, at:done]
        placed[:, at] = position, position + item.size, item.first, item.last
        arena = max(arena, position + item.size)
    return offsets, arena

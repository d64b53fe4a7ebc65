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
    first, last, start, end = (np.zeros(count, np.int64) for _ in range(4))
    arena = 0
    for done, index in enumerate(sorted(range(count), key=lambda i: (-lifetimes[i].size, i))):
        item = lifetimes[index]
        alive = (first[:done] <= item.last) & (last[:done] >= item.first)
        position = 0
        for low, high in sorted(zip(start[:done][alive].tolist(), end[:done][alive].tolist(), strict=True)):
            if position + item.size <= low:
                break
            position = max(position, -(-high // ALIGNMENT) * ALIGNMENT)
        offsets[index] = position
        first[done], last[done], start[done], end[done] = item.first, item.last, position, position + item.size
        arena = max(arena, position + item.size)
    return offsets, arena

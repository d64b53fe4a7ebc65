"""Static layout of the activation arena: offsets such that tensors alive at the same time never overlap."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from ..records import dataclass

ALIGNMENT = 64
# Tensors for which gaps are looked for.
_SEARCHED = 4096


@dataclass(frozen=True)
class Lifetime:
    """`size` bytes alive from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


def layout(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Offsets (multiples of 64 bytes) and the arena size.

    Greedy by size: the largest tensor is placed first, each further one in the lowest gap among those already placed
    that live at the same time. That takes time which grows with the square of the number of tensors; so of very many,
    the smallest go on top of whatever lives at the same time.
    """
    count = len(lifetimes)
    offsets = [0] * count
    by_size = sorted(range(count), key=lambda i: (-lifetimes[i].size, i))
    searching = by_size[:_SEARCHED]
    # What is placed, sorted by its start: start, aligned end, first, last.
    placed: list[tuple[int, ...]] = []
    # Where the last one of a size and lifetime was put.
    alike: dict[tuple[int, int, int], int] = {}
    arena = 0
    for index in searching:
        item = lifetimes[index]
        size, first, last = item.size, item.first, item.last
        # Nothing has become free since its like was placed, so there is no gap below that one.
        position = alike.get((size, first, last), 0)
        for at in range(bisect_left(placed, (position,)), len(placed)):
            start, end, born, gone = placed[at]
            if born <= last and gone >= first:
                if position + size <= start:
                    break
                if end > position:
                    position = end
        offsets[index] = alike[size, first, last] = position
        end = position + size
        insort(placed, (position, -(-end // ALIGNMENT) * ALIGNMENT, first, last))
        arena = max(arena, end)
    if count > len(searching):
        begin = min(item.first for item in lifetimes)
        heights = _Heights(max(item.last for item in lifetimes) - begin + 1)
        for done, index in enumerate(by_size):
            item = lifetimes[index]
            first, end = item.first - begin, item.last - begin + 1
            if done >= _SEARCHED:
                offsets[index] = -(-heights.highest(first, end) // ALIGNMENT) * ALIGNMENT
            heights.raise_to(offsets[index] + item.size, first, end)
            arena = max(arena, offsets[index] + item.size)
    return offsets, arena


class _Heights:
    """The end of the highest tensor at every point of time: a segment tree."""

    def __init__(self, length: int) -> None:
        self._length = length
        # Of each node: the height of all of its time, and the greatest of any of its time.
        self._all = [0] * (2 * length)
        self._any = [0] * (2 * length)

    def _nodes(self, first: int, end: int) -> list[int]:
        """The nodes that make up [first, end)."""
        found = []
        low, high = first + self._length, end + self._length
        while low < high:
            if low & 1:
                found.append(low)
                low += 1
            if high & 1:
                high -= 1
                found.append(high)
            low >>= 1
            high >>= 1
        return found

    def _above(self, first: int, end: int) -> list[int]:
        """Both ends of [first, end), and all nodes that hold one of them; so those above `_nodes` are among them."""
        found = []
        for node in {first + self._length, end - 1 + self._length}:
            while node:
                found.append(node)
                node >>= 1
        return found

    def highest(self, first: int, end: int) -> int:
        whole = max(self._all[node] for node in self._above(first, end))
        return max(whole, *(self._any[node] for node in self._nodes(first, end)))

    def raise_to(self, height: int, first: int, end: int) -> None:
        """Whatever is lower in [first, end) is `height` from now on."""
        nodes = self._nodes(first, end)
        for node in nodes:
            self._all[node] = max(self._all[node], height)
        for node in (*nodes, *self._above(first, end)):
            self._any[node] = max(self._any[node], height)

"""What was made last, by what it was made for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Recent(Generic[Made]):
    """Keeps the last few; threads may share it.

    >>> kept = Recent[str](2)
    >>> [kept.find(n, lambda: print("make", n) or str(n)) for n in (1, 2, 1, 3, 1)]
    make 1
    make 2
    make 3
    ['1', '2', '1', '3', '1']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Hashable, Made] = {}

    def find(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What is kept for `key`, or what `make` returns. Two threads may both make it; one of theirs is kept."""
        found = self._kept.pop(key, None)
        if found is None:
            found = make()
        # Behind all others: those used longest ago are in front.
        self._kept[key] = found
        for old in list(self._kept)[: -self._most]:
            self._kept.pop(old, None)
        return found

    def __iter__(self) -> Iterator[Made]:
        return iter(list(self._kept.values()))

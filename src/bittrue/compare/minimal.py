"""The smallest part of a list that still has a property."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeVar

T = TypeVar("T")
# Sets of this many that are looked through one by one; larger ones are found by leaving out.
_MOST_PAIRS = 70


def smallest(items: Sequence[T], holds: Callable[[list[T]], bool]) -> list[T] | None:
    """The fewest items for which `holds`, in their order; None when it does not even hold for all.

    One item and two are tried exhaustively (two, where that is not too much). Larger sets are found by delta debugging
    (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), read, not copied: nothing can be
    left out of them, though a smaller set may exist that holds something else.

    >>> smallest("abcdef", lambda part: {"b", "e"} <= set(part))
    ['b', 'e']
    """
    if not holds(list(items)):
        return None
    if holds([]):
        return []
    for item in items:
        if holds([item]):
            return [item]
    if len(items) * (len(items) - 1) // 2 <= _MOST_PAIRS:
        for pair in combinations(items, 2):
            if holds(list(pair)):
                return list(pair)
    kept, parts = list(items), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        rests = [kept[:at] + kept[at + size :] for at in range(0, len(kept), size)]
        rest = next((rest for rest in rests if rest and holds(rest)), None)
        if rest is not None:
            kept, parts = rest, max(2, parts - 1)
        elif size == 1:
            break
        else:
            parts = min(len(kept), 2 * parts)
    return kept

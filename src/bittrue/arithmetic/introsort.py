"""Sorting as one widely used C++ library does it: which of several equal elements comes first depends on every move.

Source: GCC 12, ``bits/stl_algo.h``, ``std::sort``, read; verified by running what calls it.
"""

from __future__ import annotations

from typing import TypeVar

from bittrue.arithmetic.heap import Before, partial_sort

Element = TypeVar("Element")
# Parts of so many elements are left to insertion.
_SHORT = 16


def _median_first(x: list[Element], first: int, last: int, before: Before[Element]) -> None:
    """The median of the second, the middle and the last element changes places with the first."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if before(x[a], x[b]):
        found = b if before(x[b], x[c]) else c if before(x[a], x[c]) else a
    else:
        found = a if before(x[a], x[c]) else c if before(x[b], x[c]) else b
    x[first], x[found] = x[found], x[first]


def _parted(x: list[Element], first: int, last: int, before: Before[Element]) -> int:
    """Elements around the first one of the part; where the second half begins."""
    pivot, low, high = x[first], first + 1, last
    while True:
        while before(x[low], pivot):
            low += 1
        high -= 1
        while before(pivot, x[high]):
            high -= 1
        if not low < high:
            return low
        x[low], x[high] = x[high], x[low]
        low += 1


def _sort_parts(x: list[Element], first: int, last: int, depth: int, before: Before[Element]) -> None:
    while last - first > _SHORT:
        if not depth:
            x[first:last] = partial_sort(x[first:last], last - first, before)
            return
        depth -= 1
        _median_first(x, first, last, before)
        cut = _parted(x, first, last, before)
        _sort_parts(x, cut, last, depth, before)
        last = cut


def sort(elements: list[Element], before: Before[Element]) -> list[Element]:
    """All elements in order. Domain: `before` is a strict weak order.

    >>> sort([(2, "a"), (1, "b"), (1, "c")], lambda a, b: a[0] < b[0])
    [(1, 'b'), (1, 'c'), (2, 'a')]
    """
    x = list(elements)
    _sort_parts(x, 0, len(x), 2 * (max(1, len(x)).bit_length() - 1), before)
    for place in range(1, len(x)):
        value, hole = x[place], place
        while hole and before(value, x[hole - 1]):
            x[hole] = x[hole - 1]
            hole -= 1
        x[hole] = value
    return x

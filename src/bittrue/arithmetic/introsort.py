"""Sorting as one widely used C++ library does it: which of several equal elements comes first depends on every move.

`before(a, b)` need not be an order, as comparisons of NaN are none: where one would go beyond an end of the sequence
then, it stops there.

Source: GCC 12, ``bits/stl_algo.h``, ``std::sort`` and ``std::nth_element``, read; verified by running what calls them.
"""

from __future__ import annotations

from typing import TypeVar

from bittrue.arithmetic.heap import Before, first_in_heap, partial_sort

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
    """Elements around the median of three, which comes first; where the second half begins."""
    _median_first(x, first, last, before)
    pivot, low, high = x[first], first + 1, last
    while True:
        while low < len(x) and before(x[low], pivot):
            low += 1
        high -= 1
        while high >= 0 and before(pivot, x[high]):
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
        cut = _parted(x, first, last, before)
        _sort_parts(x, cut, last, depth, before)
        last = cut


def _move_back(x: list[Element], place: int, before: Before[Element]) -> None:
    value = x[place]
    while place and before(value, x[place - 1]):
        x[place] = x[place - 1]
        place -= 1
    x[place] = value


def _insert(x: list[Element], first: int, last: int, before: Before[Element]) -> None:
    for place in range(first + 1, last):
        if before(x[place], x[first]):
            x[first : place + 1] = [x[place], *x[first:place]]
        else:
            _move_back(x, place, before)


def _levels(x: list[Element]) -> int:
    """How often parts are divided before heaps take over."""
    return 2 * (max(1, len(x)).bit_length() - 1)


def sort(elements: list[Element], before: Before[Element]) -> list[Element]:
    """All elements in order.

    >>> sort([(2, "a"), (1, "b"), (1, "c")], lambda a, b: a[0] < b[0])
    [(1, 'b'), (1, 'c'), (2, 'a')]
    """
    x = list(elements)
    _sort_parts(x, 0, len(x), _levels(x), before)
    _insert(x, 0, min(len(x), _SHORT), before)
    for place in range(_SHORT, len(x)):
        _move_back(x, place, before)
    return x


def first_of(elements: list[Element], count: int, before: Before[Element]) -> list[Element]:
    """The first `count` elements, as ``nth_element`` leaves them in front of the sequence.

    Domain: 1 <= count <= number of elements.

    >>> first_of([5, 4, 3, 2, 1], 2, lambda a, b: a < b)
    [1, 2]
    """
    x, first, last, nth = list(elements), 0, len(elements), count - 1
    left = _levels(x)
    while last - first > 3 and left:
        left -= 1
        cut = _parted(x, first, last, before)
        first, last = (cut, last) if cut <= nth else (first, cut)
    if last - first > 3:
        # Parts have stayed large for too long.
        x[first:count] = first_in_heap(x[first:last], count - first, before)
        x[first], x[nth] = x[nth], x[first]
    else:
        _insert(x, first, last, before)
    return x[:count]

"""What the C++ library's `nth_element` and `sort` make of a sequence, and a heap, whatever comparisons say.

`before(a, b)` need not be an order: numbers that are NaN come before and behind nothing. Where a comparison would go
beyond an end of the sequence then, it stops there. Sequences are lists that are changed.

Source: docs/facts/onnxruntime.md 5.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Element = TypeVar("Element")
Before = Callable[[Element, Element], bool]
# Shorter parts are not divided further by `sort`.
_SHORT = 16


def sink(heap: list[Element], place: int, size: int, before: Before[Element]) -> None:
    """Moves an element down until none below it comes later; of two that do, the later one moves up."""
    while (left := 2 * place + 1) < size:
        right, ahead = left + 1, before(heap[place], heap[left])
        if right < size and not (ahead and before(heap[right], heap[left])):
            if not ahead and not before(heap[place], heap[right]):
                return
            below = right
        elif ahead:
            below = left
        else:
            return
        heap[place], heap[below] = heap[below], heap[place]
        place = below


def first_by_heap(elements: list[Element], count: int, before: Before[Element], in_order: bool) -> list[Element]:
    """The first `count`: in a heap, built from behind, that every better one enters at the root; as they lie there, or
    taken from it one after the other.
    """
    heap = elements[:count][::-1]
    for place in range(count - 1, -1, -1):
        sink(heap, place, count, before)
    for element in elements[count:]:
        if before(element, heap[0]):
            heap[0] = element
            sink(heap, 0, count, before)
    for size in range(count - 1, 0, -1) if in_order else ():
        worst, heap[0] = heap[0], heap[size]
        sink(heap, 0, size, before)
        heap[size] = worst
    return heap


def first_by_partition(elements: list[Element], count: int, before: Before[Element], in_order: bool) -> list[Element]:
    """The first `count`, as `nth_element` leaves them in front, and `sort` then."""
    x, first, last, nth = list(elements), 0, len(elements), count - 1
    left = 2 * (len(x).bit_length() - 1)
    while last - first > 3 and left:
        left -= 1
        cut = _partition(x, first, last, before)
        first, last = (cut, last) if cut <= nth else (first, cut)
    if last - first > 3:
        # Parts have stayed large for too long.
        _heap_select(x, first, nth + 1, last, before)
        x[first], x[nth] = x[nth], x[first]
    else:
        _insert(x, first, last, before)
    found = x[:count]
    if in_order:
        _divide(found, 0, count, 2 * (count.bit_length() - 1), before)
        _insert(found, 0, min(count, _SHORT), before)
        for place in range(_SHORT, count):
            _move_back(found, place, before)
    return found


def _divide(x: list[Element], first: int, last: int, left: int, before: Before[Element]) -> None:
    while last - first > _SHORT:
        if left == 0:
            _heap_select(x, first, last, last, before)
            for end in range(last - 1, first, -1):
                value, x[end] = x[end], x[first]
                _adjust(x, first, 0, end - first, value, before)
            return
        left -= 1
        cut = _partition(x, first, last, before)
        _divide(x, cut, last, left, before)
        last = cut


def _partition(x: list[Element], first: int, last: int, before: Before[Element]) -> int:
    """Around the median of three, which comes first."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if before(x[a], x[b]):
        middle = b if before(x[b], x[c]) else c if before(x[a], x[c]) else a
    else:
        middle = a if before(x[a], x[c]) else c if before(x[b], x[c]) else b
    x[first], x[middle] = x[middle], x[first]
    low, high, pivot = first + 1, last, x[first]
    while True:
        while low < len(x) and before(x[low], pivot):
            low += 1
        high -= 1
        while high >= 0 and before(pivot, x[high]):
            high -= 1
        if low >= high:
            return low
        x[low], x[high] = x[high], x[low]
        low += 1


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


def _heap_select(x: list[Element], first: int, middle: int, last: int, before: Before[Element]) -> None:
    size = middle - first
    for parent in range((size - 2) // 2, -1, -1):
        _adjust(x, first, parent, size, x[first + parent], before)
    for place in range(middle, last):
        if before(x[place], x[first]):
            value, x[place] = x[place], x[first]
            _adjust(x, first, 0, size, value, before)


def _adjust(x: list[Element], first: int, hole: int, size: int, value: Element, before: Before[Element]) -> None:
    """A hole moves down to the end, then the element up from there."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if before(x[first + child], x[first + child - 1]):
            child -= 1
        x[first + hole], hole = x[first + child], child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        x[first + hole], hole = x[first + child - 1], child - 1
    while hole > top and before(x[first + (hole - 1) // 2], value):
        x[first + hole], hole = x[first + (hole - 1) // 2], (hole - 1) // 2
    x[first + hole] = value

"""Binary heaps step by step: which of several equal elements comes first depends on every move.

``before(a, b)`` orders elements; the heap's first element is one that is before none of the others. Elements are moved
as one widely used C++ library moves them: a hole sinks to the bottom along the children that come last, then the new
element rises from there. Source: GCC 12, ``bits/stl_heap.h``, read; ``std::partial_sort`` and ``std::priority_queue``
of the same library, run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Element = TypeVar("Element")
Before = Callable[[Element, Element], bool]


def _rise(heap: list[Element], hole: int, top: int, value: Element, before: Before[Element]) -> None:
    while hole > top and before(heap[(hole - 1) // 2], value):
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = value


def _sink(heap: list[Element], hole: int, length: int, value: Element, before: Before[Element]) -> None:
    top, child = hole, hole
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if before(heap[child], heap[child - 1]):
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    _rise(heap, hole, top, value, before)


def push(heap: list[Element], value: Element, before: Before[Element]) -> None:
    """Add an element."""
    heap.append(value)
    _rise(heap, len(heap) - 1, 0, value, before)


def pop(heap: list[Element], before: Before[Element]) -> Element:
    """Take the first element away.

    >>> heap = [3, 2, 1]
    >>> pop(heap, lambda a, b: a < b), heap
    (3, [2, 1])
    """
    first, last = heap[0], heap.pop()
    if heap:
        _sink(heap, 0, len(heap), last, before)
    return first


def first_in_heap(elements: Sequence[Element], count: int, before: Before[Element]) -> list[Element]:
    """The first `count` elements as a heap, whose first element is the last one of them in order."""
    heap = list(elements[:count])
    for parent in reversed(range(count // 2)):
        _sink(heap, parent, count, heap[parent], before)
    for element in elements[count:] if count else ():
        if before(element, heap[0]):
            _sink(heap, 0, count, element, before)
    return heap


def partial_sort(elements: Sequence[Element], count: int, before: Before[Element]) -> list[Element]:
    """The first `count` elements in order; equal ones in the order in which a heap of that size gives them up.

    Domain: 0 <= count <= number of elements.

    >>> partial_sort([(1, "a"), (1, "b"), (1, "c"), (0, "d")], 4, lambda a, b: a[0] < b[0])
    [(0, 'd'), (1, 'b'), (1, 'a'), (1, 'c')]
    """
    heap = first_in_heap(elements, count, before)
    for last in reversed(range(1, count)):
        value = heap[last]
        heap[last] = heap[0]
        _sink(heap, 0, last, value, before)
    return heap

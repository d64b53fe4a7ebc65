"""The first elements of a sequence by a heap, or by `nth_element` and `sort` of the C++ library, for any comparison.

`before(a, b)` need not be an order: numbers that are NaN come before and behind nothing.

Source: docs/facts/onnxruntime.md 5.2.
"""

from __future__ import annotations

from typing import TypeVar

from ...arithmetic import introsort
from ...arithmetic.heap import Before

Element = TypeVar("Element")


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
    found = introsort.first_of(elements, count, before)
    return introsort.sort(found, before) if in_order else found

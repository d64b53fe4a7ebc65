"""heap: results are sorted, equal elements come in recorded orders."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittrue.arithmetic import heap

# Values, a count, the positions that std::partial_sort(..., greater) of GCC 12 puts first, and the positions in
# which its std::priority_queue (less) gives them up.
RECORDED = [
    ([1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1], 9, [3, 1, 10, 7, 0, 9, 6, 8, 4], [0, 6, 10, 1, 9, 3, 7, 2, 5, 8, 4]),
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 3, [0, 1, 2], [0, 2, 6, 10, 9, 8, 5, 7, 4, 1, 3]),
    ([1, 0, 2, 0, 2, 1, 0, 2, 1, 0, 1], 9, [4, 2, 7, 10, 8, 0, 5, 1, 3], [2, 4, 7, 0, 5, 10, 8, 6, 1, 9, 3]),
    (
        [1, 2, 0, 2, 1, 0, 1, 0, 0, 2, 1, 2, 2, 2],
        6,
        [3, 1, 12, 13, 11, 9],
        [1, 11, 13, 12, 3, 9, 6, 4, 10, 0, 2, 5, 7, 8],
    ),
    ([1, 1, 0, 1, 1, 1, 1, 0, 1, 0], 3, [3, 1, 0], [0, 5, 6, 8, 1, 4, 3, 9, 2, 7]),
    (
        [2, 1, 1, 0, 1, 2, 1, 1, 2, 0, 2, 0, 0],
        13,
        [8, 0, 10, 5, 7, 1, 4, 2, 6, 3, 9, 11, 12],
        [0, 5, 8, 10, 6, 2, 7, 4, 1, 12, 11, 9, 3],
    ),
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 5, [3, 4, 1, 0, 2], [0, 2, 6, 12, 11, 10, 9, 8, 5, 7, 4, 1, 3]),
    ([1, 0, 1, 2, 2, 2, 2, 2, 1], 3, [5, 4, 3], [3, 5, 6, 4, 7, 8, 2, 0, 1]),
]


def greater(values: list[int]) -> Callable[[int, int], bool]:
    return lambda a, b: values[a] > values[b]


@pytest.mark.parametrize(("values", "count", "by_sort", "by_queue"), RECORDED)
def test_order_of_equal_elements(values: list[int], count: int, by_sort: list[int], by_queue: list[int]) -> None:
    assert heap.partial_sort(range(len(values)), count, greater(values)) == by_sort
    queue: list[int] = []
    for position in range(len(values)):
        heap.push(queue, position, lambda a, b: values[a] < values[b])
    assert [heap.pop(queue, lambda a, b: values[a] < values[b]) for _ in values] == by_queue


@given(st.lists(st.integers(0, 9), max_size=30), st.data())
def test_sorted(values: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(values)))
    found = heap.partial_sort(range(len(values)), count, greater(values))
    assert len(set(found)) == count
    assert [values[i] for i in found] == sorted(values, reverse=True)[:count]
    queue: list[int] = []
    for value in values:
        heap.push(queue, value, lambda a, b: a < b)
    assert [heap.pop(queue, lambda a, b: a < b) for _ in values] == sorted(values, reverse=True)

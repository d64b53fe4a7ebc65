"""topk_v2: the largest, or smallest, elements along one axis in order, and their positions; the first of equal ones.

Where they need not be `sorted`, they stand as the search for them leaves them: few of many in a heap whose root is the
last one of them, others as a partition around the last one does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operand, Operator, Shape, Step
from ..core.indexing import bounded


def _axis(call: Call) -> int:
    """The attribute `axis`; the last axis without it."""
    source = call.input(0)
    call.rank(source, 1, max(1, source.rank))
    return call.axis(int(str(call.node.attributes.get("axis", -1))), source.rank)


def infer(call: Call) -> list[Shape]:
    """The axis becomes k; a negative k counts as 0."""
    call.expect(2, 2)
    counts, axis, sizes = call.integers(1, "k"), _axis(call), call.input(0).shape
    if len(counts) != 1 or counts[0] > sizes[axis]:
        raise call.invalid("BT-TOPK", f"k must be one number up to the dimension {sizes[axis]}, found {counts}")
    shape = bounded(call, (*sizes[:axis], max(0, counts[0]), *sizes[axis + 1 :]))
    positions = call.outputs[1].type
    if 0 not in shape and sizes[axis] > positions.maximum:
        raise call.invalid("BT-TOPK", f"{sizes[axis]} elements have positions that {positions.title} cannot hold")
    return [shape, shape]


def lower(call: Call) -> Lowered:
    """Axis, direction, k and the type of the positions."""
    source, axis = call.input(0), _axis(call)
    return Lowered(
        parameters={
            "axis": axis,
            "largest": bool(call.node.attributes.get("largest", True)),
            "count": call.output.shape[axis],
            "position_dtype": call.outputs[1].type.numpy.name,
            **({} if call.node.attributes.get("sorted", True) else {"search": _search(call.output, axis, source)}),
        },
        work=source.size,
        scratch=(16 + 2 * source.type.numpy.itemsize) * source.size,
    )


# So much of the logarithm of all at most is few.
_FEW = 0.725


def _search(kept: Operand, axis: int, source: Operand) -> str:
    """How the kernel looks for so many of so many."""
    count, size = kept.shape[axis], source.shape[axis]
    if count < 2:
        return "in_order"
    return "heap" if count < 4 or math.log2(count) / math.log2(size) < _FEW else "partition"


def _sink(heap: list[int], place: int, size: int) -> None:
    """Moves an element down until none below it comes later; of two that do, the later one moves up."""
    while True:
        left, right = 2 * place + 1, 2 * place + 2
        if left >= size:
            return
        below = right if right < size and heap[right] > heap[left] else left
        if heap[below] < heap[place]:
            return
        heap[place], heap[below] = heap[below], heap[place]
        place = below


def _by_heap(ranks: list[int], count: int) -> list[int]:
    """Ranks of the first `count` in a heap, built from behind, that every better one enters at the root."""
    heap = ranks[:count][::-1]
    for place in range(count - 1, -1, -1):
        _sink(heap, place, count)
    for rank in ranks[count:]:
        if rank < heap[0]:
            heap[0] = rank
            _sink(heap, 0, count)
    return heap


def _median_first(x: list[int], first: int, last: int) -> None:
    places = (first + 1, first + (last - first) // 2, last - 1)
    middle = sorted(places, key=x.__getitem__)[1]
    x[first], x[middle] = x[middle], x[first]


def _by_partition(ranks: list[int], count: int) -> list[int]:
    """What the C++ library's `nth_element` leaves in front: parts around the median of three, the last three sorted.

    Where parts stay large for too long, it goes on with a heap.
    """
    x, first, last, nth = list(ranks), 0, len(ranks), count - 1
    left = 2 * (len(x).bit_length() - 1)
    while last - first > 3:
        if left == 0:
            _select_by_heap(x, first, nth + 1, last)
            x[first], x[nth] = x[nth], x[first]
            return x[:count]
        left -= 1
        _median_first(x, first, last)
        low, high, pivot = first + 1, last, x[first]
        while True:
            while x[low] < pivot:
                low += 1
            high -= 1
            while pivot < x[high]:
                high -= 1
            if low >= high:
                break
            x[low], x[high] = x[high], x[low]
            low += 1
        first, last = (low, last) if low <= nth else (first, low)
    x[first:last] = sorted(x[first:last])
    return x[:count]


def _select_by_heap(x: list[int], first: int, middle: int, last: int) -> None:
    """The C++ library's heap: a hole moves down to the end, then the element up from there."""
    size = middle - first

    def adjust(hole: int, value: int) -> None:
        top, child = hole, hole
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if x[first + child] < x[first + child - 1]:
                child -= 1
            x[first + hole], hole = x[first + child], child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * (child + 1)
            x[first + hole], hole = x[first + child - 1], child - 1
        while hole > top and x[first + (hole - 1) // 2] < value:
            x[first + hole], hole = x[first + (hole - 1) // 2], (hole - 1) // 2
        x[first + hole] = value

    for parent in range((size - 2) // 2, -1, -1):
        adjust(parent, x[first + parent])
    for place in range(middle, last):
        if x[place] < x[first]:
            value, x[place] = x[place], x[first]
            adjust(0, value)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Equal elements by position; NaN comes last."""
    x = np.moveaxis(inputs[0], step["axis"], -1)
    key = x if not step["largest"] else ~x if x.dtype.kind in "iu" else -x
    order = np.argsort(key, axis=-1, kind="stable")
    search = {"heap": _by_heap, "partition": _by_partition}.get(str(step.parameters.get("search")))
    if search is not None and x.size:
        # Ranks stand for elements: no two are equal.
        order = np.array([row[search(row.argsort().tolist(), step["count"])] for row in order.reshape(-1, x.shape[-1])])
        order = order.reshape(*x.shape[:-1], step["count"])
    order = order[..., : step["count"]]
    results = np.take_along_axis(x, order, axis=-1), order.astype(step["position_dtype"])
    return [np.ascontiguousarray(np.moveaxis(result, -1, step["axis"])) for result in results]


OPERATOR = Operator(
    "topk_v2",
    (),
    infer,
    lower,
    reference,
    "the largest or smallest elements along an axis and their positions",
    compares=True,
)

"""topk_v2: the largest, or smallest, elements along one axis in order, and their positions; the first of equal ones.

Where the file says whether they are `sorted`, a search is part of the result: few of many are kept in a heap whose root
is the last one of them, others come of a partition around the last one. It decides the order of what is not sorted, and
what becomes of NaN, which comes before and behind nothing.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from .searches import first_by_heap, first_by_partition


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
            **_search(call, axis),
        },
        work=source.size,
        scratch=(16 + 2 * source.type.numpy.itemsize) * source.size,
    )


_SEARCHES = {"heap": first_by_heap, "partition": first_by_partition}
# So much of the logarithm of all at most is few.
_FEW = 0.725


def _search(call: Call, axis: int) -> dict[str, Attribute]:
    """How the kernel looks for so many of so many, and whether they are put in order; nothing where the file does not
    ask, which all kernels do alike.
    """
    in_order = call.node.attributes.get("sorted")
    if in_order is None:
        return {}
    count, size = call.output.shape[axis], call.input(0).shape[axis]
    few = count < 4 or math.log2(count) / math.log2(size) < _FEW
    return {"search": "in_order" if count < 2 else "heap" if few else "partition", "sorted": bool(in_order)}


def _search_row(step: Step, row: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Positions as the search leaves them. Without NaN, ranks stand for elements: no two of these are equal."""
    search, count, in_order = step["search"], step["count"], step["sorted"]
    if not np.isnan(row).any():
        if in_order or search == "in_order":
            return ranks[:count]
        return ranks[_SEARCHES[search](ranks.argsort().tolist(), count, operator.lt, in_order)]
    values = (row if step["largest"] else -row).tolist()

    def before(a: int, b: int) -> bool:
        return bool(values[a] > values[b] or (values[a] == values[b] and a < b))

    if search == "in_order":
        return np.array([functools.reduce(lambda best, place: place if before(place, best) else best, range(len(row)))])
    return np.array(_SEARCHES[search](list(range(len(row))), count, before, in_order))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Equal elements by position; NaN comes last, or is left where the search meets it."""
    x = np.moveaxis(inputs[0], step["axis"], -1)
    key = x if not step["largest"] else ~x if x.dtype.kind in "iu" else -x
    order = np.argsort(key, axis=-1, kind="stable")
    if "search" in step.parameters and x.size and step["count"] and not (step["sorted"] and not np.isnan(x).any()):
        rows = zip(x.reshape(-1, x.shape[-1]), order.reshape(-1, x.shape[-1]), strict=True)
        order = np.array([_search_row(step, row, ranks) for row, ranks in rows])
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

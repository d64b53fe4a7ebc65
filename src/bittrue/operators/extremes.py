"""extremes: the largest or smallest elements along one axis, ordered, and their positions; the first of equal ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded


def infer(call: Call) -> list[Shape]:
    """The axis becomes k."""
    call.expect(2, 2)
    source, counts = call.input(0), call.integers(1, "k")
    call.rank(source, 1, max(1, source.rank))
    axis = call.axis(call.attribute("axis"), source.rank)
    call.rank(call.input(1), 0, 1)
    if len(counts) != 1 or not 0 <= counts[0] <= source.shape[axis]:
        raise call.invalid("BT-TOPK", f"k must be one number up to the extent {source.shape[axis]}, found {counts}")
    return [bounded(call, (*source.shape[:axis], counts[0], *source.shape[axis + 1 :]))] * 2


def lower(call: Call) -> Lowered:
    """The axis, k and the direction; the largest along the last axis are what topk_v2 finds."""
    source = call.input(0)
    axis, largest = call.axis(call.attribute("axis"), source.rank), bool(call.attribute("largest"))
    plain = largest and axis == source.rank - 1 and source.dtype != "u64"
    return Lowered(
        {
            "axis": axis,
            "largest": largest,
            "count": call.output.shape[axis],
            "position_dtype": call.outputs[1].type.numpy.name,
        },
        work=source.size,
        scratch=(16 + 2 * source.type.numpy.itemsize) * source.size,
        operator="topk_v2" if plain else "",
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Equal elements by position."""
    x = np.moveaxis(inputs[0], step["axis"], -1)
    key = x if not step["largest"] else ~x if x.dtype.kind in "iu" else -x
    order = np.argsort(key, axis=-1, kind="stable")[..., : step["count"]]
    results = np.take_along_axis(x, order, axis=-1), order.astype(step["position_dtype"])
    return [np.ascontiguousarray(np.moveaxis(result, -1, step["axis"])) for result in results]


OPERATOR = Operator("extremes", (), infer, lower, reference, "the largest or smallest elements along an axis")

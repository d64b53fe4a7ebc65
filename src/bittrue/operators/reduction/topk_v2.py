"""topk_v2: the largest, or smallest, elements along one axis in order, and their positions; the first of equal ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
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
        },
        work=source.size,
        scratch=(16 + 2 * source.type.numpy.itemsize) * source.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Equal elements by position; NaN comes last."""
    x = np.moveaxis(inputs[0], step["axis"], -1)
    key = x if not step["largest"] else ~x if x.dtype.kind in "iu" else -x
    order = np.argsort(key, axis=-1, kind="stable")[..., : step["count"]]
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

"""topk_v2: the largest elements of each row and their positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded


def infer(call: Call) -> list[Shape]:
    """The last axis becomes k; a negative k counts as 0."""
    call.expect(2, 2)
    source, counts = call.input(0), call.integers(1, "k")
    if len(counts) != 1:
        raise call.invalid("BT-TOPK", f"k must be one number, found {len(counts)}")
    if source.rank < 1 or counts[0] > source.shape[-1]:
        raise call.invalid("BT-TOPK", f"k is {counts[0]}, but the last axis of {list(source.shape)} has fewer elements")
    shape = bounded(call, (*source.shape[:-1], max(0, counts[0])))
    positions = call.outputs[1].type
    if shape[-1] and 0 not in shape and source.shape[-1] > positions.maximum:
        raise call.invalid(
            "BT-TOPK", f"rows of {source.shape[-1]} elements have positions that {positions.title} cannot hold"
        )
    return [shape, shape]


def lower(call: Call) -> Lowered:
    """k and the type of the positions."""
    source = call.input(0)
    return Lowered(
        parameters={"count": call.output.shape[-1], "position_dtype": call.outputs[1].type.numpy.name},
        work=source.size,
        scratch=(8 + 2 * source.type.numpy.itemsize) * source.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sorted downwards; equal elements by position; NaN is below every number."""
    x = inputs[0]
    order = np.argsort(~x if x.dtype.kind in "iu" else -x, axis=-1, kind="stable")[..., : step["count"]]
    return [np.take_along_axis(x, order, axis=-1), order.astype(step["position_dtype"])]


OPERATOR = Operator("topk_v2", (), infer, lower, reference, "the largest elements of each row and their positions")

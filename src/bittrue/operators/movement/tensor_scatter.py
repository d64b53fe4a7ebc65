"""tensor_scatter: a cache with new elements along one axis, for every batch from a position of its own on.

Inputs: cache, update, positions (absent: all 0). Attributes: `axis`, which is not the first one; `circular`: positions
beyond the end go on from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step


def _axis(call: Call) -> int:
    axis = call.axis(call.attribute("axis"), call.input(0).rank)
    if not axis:
        raise call.invalid("BT-SHAPE-AXIS", "elements are put along the axis of batches")
    return axis


def infer(call: Call) -> list[Shape]:
    """The cache's shape; the update has another size along the axis alone, which is no larger."""
    call.expect((2, 3))
    cache, update, axis = call.input(0).shape, call.input(1, "update").shape, _axis(call)
    if (*update[:axis], *update[axis + 1 :]) != (*cache[:axis], *cache[axis + 1 :]) or update[axis] > cache[axis]:
        raise call.invalid("BT-SCATTER", f"an update {list(update)} does not fit {list(cache)} along axis {axis}")
    if call.has(2) and call.input(2).shape != cache[:1]:
        raise call.invalid("BT-SCATTER", f"expected {cache[0]} positions, found shape {list(call.input(2).shape)}")
    return [cache]


def lower(call: Call) -> Lowered:
    """The axis, and whether positions go round."""
    return Lowered({"axis": _axis(call), "circular": bool(call.attribute("circular"))})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Batch by batch."""
    out, update, axis = inputs[0].copy(), inputs[1], step["axis"]
    room, count = out.shape[axis], update.shape[axis]
    positions = inputs[2] if len(inputs) > 2 else np.zeros(out.shape[0], np.int64)
    for batch, position in enumerate(positions.tolist()):
        if position < 0 or (position + count > room and not step["circular"]):
            raise RunError(
                "BT-SCATTER-POSITION", f"{count} elements from {position} on do not fit {room}", place=step.place
            )
        places = (position % room + np.arange(count)) % room if room else np.arange(0)
        out[batch].swapaxes(0, axis - 1)[places] = update[batch].swapaxes(0, axis - 1)
    return [out]


OPERATOR = Operator(
    "tensor_scatter",
    (),
    infer,
    lower,
    reference,
    "a cache with new elements from a position of each batch on",
    moves=True,
)

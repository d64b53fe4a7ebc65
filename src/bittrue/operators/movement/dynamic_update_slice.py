"""dynamic_update_slice: a box of a tensor overwritten, at a corner known at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step

_MOST_AXES = 8


def infer(call: Call) -> list[Shape]:
    """The first input's shape; the update is no larger along any axis, the corner has one number per axis."""
    call.expect(3)
    source, update, corner = call.input(0), call.input(1, "update"), call.input(2, "corner")
    call.rank(source, 0, _MOST_AXES)
    fits = update.rank == source.rank and all(a <= b for a, b in zip(update.shape, source.shape, strict=False))
    if not fits or corner.shape != (source.rank,):
        raise call.invalid(
            "BT-UPDATE-SLICE",
            f"an update {list(update.shape)} at a corner {list(corner.shape)} does not fit {list(source.shape)}",
            "the update has the tensor's rank and is no larger; the corner is one number per axis",
        )
    return [source.shape]


def lower(call: Call) -> Lowered:
    """Nothing but the shapes."""
    return Lowered(parameters={"shape": call.output.shape, "box": call.input(1).shape})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The corner is moved so that the update lies inside."""
    out = inputs[0].copy()
    room = np.array(step["shape"], np.int64) - np.array(step["box"], np.int64)
    corner = np.clip(inputs[2].astype(np.int64), 0, room)
    box = tuple(slice(int(at), int(at) + size) for at, size in zip(corner, step["box"], strict=True))
    out[box] = inputs[1]
    return [out]


OPERATOR = Operator("dynamic_update_slice", (), infer, lower, reference, "a box of a tensor overwritten", moves=True)

"""take, take_along and take_nd: elements or slices picked by position; negative positions count from the back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import RunError
from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded


def wrapped(step: Step, positions: np.ndarray, extent: int) -> np.ndarray:
    """Positions counted from the front; a RunError for one outside of [-extent, extent)."""
    found = positions.astype(np.int64)
    bad = found[(found < -extent) | (found >= extent)]
    if bad.size:
        raise RunError(
            "BT-GATHER-POSITION", f"position {int(bad[0])} must lie in [{-extent}, {extent - 1}]", place=step.place
        )
    return np.where(found < 0, found + extent, found)


def infer(call: Call) -> list[Shape]:
    """The axis gives way to the axes of the positions."""
    call.expect(2)
    source = call.input(0).shape
    call.rank(call.input(0), 1, max(1, len(source)))
    axis = call.axis(call.attribute("axis"), len(source))
    return [bounded(call, source[:axis] + call.input(1, "positions").shape + source[axis + 1 :])]


def lower(call: Call) -> Lowered:
    """The tensor as [outer, axis, inner]."""
    source = call.input(0).shape
    axis = call.axis(call.attribute("axis"), len(source))
    return Lowered(
        {
            "batch": 1,
            "outer": math.prod(source[:axis]),
            "extent": source[axis],
            "inner": math.prod(source[axis + 1 :]),
            "count": call.input(1).size,
            "wraps": True,
            "shape": call.output.shape,
        },
        scratch=16 * call.input(1).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Picked along axis 1 of [outer, axis, inner]; positions are checked even where nothing is read."""
    positions = wrapped(step, inputs[1].reshape(-1), step["extent"])
    if not math.prod(step["shape"]):
        return [np.empty(step["shape"], inputs[0].dtype)]
    x = inputs[0].reshape(step["outer"], step["extent"], step["inner"])
    return [np.take(x, positions, axis=1).reshape(step["shape"])]


def infer_along(call: Call) -> list[Shape]:
    """The positions' shape, which is within the tensor's but along the axis."""
    call.expect(2)
    source, positions = call.input(0), call.input(1, "positions")
    call.rank(source, 1, max(1, source.rank))
    call.rank(positions, source.rank)
    axis = call.axis(call.attribute("axis"), source.rank)
    beyond = [a for a in range(source.rank) if a != axis and positions.shape[a] > source.shape[a]]
    if beyond:
        raise call.invalid(
            "BT-GATHER",
            f"positions of shape {list(positions.shape)} reach beyond shape {list(source.shape)} at axis {beyond[0]}",
        )
    return [positions.shape]


def lower_along(call: Call) -> Lowered:
    """The axis."""
    axis = call.axis(call.attribute("axis"), call.input(0).rank)
    return Lowered({"axis": axis}, scratch=24 * call.input(1).size)


def along(step: Step, positions: np.ndarray, shape: Shape) -> tuple[np.ndarray, ...]:
    """Coordinates in `shape` of elements at `positions` along the step's axis, at their own place elsewhere."""
    axis = step["axis"]
    grids: list[np.ndarray] = list(np.indices(positions.shape, sparse=True))
    grids[axis] = wrapped(step, positions, shape[axis])
    return tuple(grids)


def reference_along(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """out[i, j, ...] = in[i, positions[i, j, ...], ...] for axis 1."""
    return [np.ascontiguousarray(inputs[0][along(step, inputs[1], inputs[0].shape)])]


def infer_nd(call: Call) -> list[Shape]:
    """[batch, ..., k] positions pick slices of the axes after the batch axes and the k that follow them."""
    call.expect(2)
    source, positions, batch = call.input(0), call.input(1, "positions"), int(call.attribute("batch_dims"))
    depth = positions.shape[-1] if positions.rank else 0
    if (
        not 0 <= batch < min(source.rank, positions.rank)
        or batch + depth > source.rank
        or source.shape[:batch] != positions.shape[:batch]
    ):
        raise call.invalid(
            "BT-GATHER",
            f"positions of shape {list(positions.shape)} with {batch} batch axes cannot address {list(source.shape)}",
        )
    return [bounded(call, positions.shape[:-1] + source.shape[batch + depth :])]


def lower_nd(call: Call) -> Lowered:
    """Extents that positions address, behind how many batches, and the shape of the result."""
    source, positions, batch = call.input(0).shape, call.input(1).shape, int(call.attribute("batch_dims"))
    return Lowered(
        {
            "batch": math.prod(source[:batch]),
            "extents": source[batch : batch + positions[-1]],
            "count": math.prod(positions[batch:-1]),
            "inner": math.prod(source[batch + positions[-1] :]),
            "shape": call.output.shape,
        },
        scratch=24 * call.input(1).size,
    )


def merged(step: Step, positions: np.ndarray, rows: int, extents: Sequence[int]) -> np.ndarray:
    """[rows, k] coordinates as positions in the merged axes of `extents`."""
    columns = positions.reshape(rows, len(extents))
    flat = np.zeros(rows, np.int64)
    for axis, extent in enumerate(extents):
        flat = flat * extent + wrapped(step, columns[:, axis], extent)
    return flat


def reference_nd(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows of the tensor with its addressed axes merged into one, batch by batch."""
    extents, batch, count = step["extents"], step["batch"], step["count"]
    flat = merged(step, inputs[1], batch * count, extents)
    if not math.prod(step["shape"]):
        return [np.empty(step["shape"], inputs[0].dtype)]
    rows = inputs[0].reshape(batch * math.prod(extents), step["inner"])
    first = np.repeat(np.arange(batch) * math.prod(extents), count)
    return [np.take(rows, flat + first, axis=0).reshape(step["shape"])]


OPERATORS = (
    Operator("take", (), infer, lower, reference, "slices picked along one axis, from either end", moves=True),
    Operator("take_along", (), infer_along, lower_along, reference_along, "elements picked along one axis", moves=True),
    Operator(
        "take_nd", (), infer_nd, lower_nd, reference_nd, "slices picked by coordinates, from either end", moves=True
    ),
)

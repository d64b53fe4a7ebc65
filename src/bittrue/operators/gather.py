"""gather and gather_nd: elements or slices picked by position; a position outside the tensor is an error of the run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import RunError
from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded


def _axes(call: Call) -> tuple[int, int]:
    """Axis and number of batch axes, both counted from the front."""
    source, positions = call.input(0), call.input(1, "positions")
    axis = call.axis(call.attribute("axis"), source.rank)
    batch = int(call.attribute("batch_dims"))
    batch += positions.rank if batch < 0 else 0
    if source.rank == 0 or not 0 <= batch <= min(axis, positions.rank):
        raise call.invalid(
            "BT-GATHER", f"batch_dims {call.attribute('batch_dims')} does not fit axis {axis} of {list(source.shape)}"
        )
    if source.shape[:batch] != positions.shape[:batch]:
        raise call.invalid(
            "BT-GATHER", f"the first {batch} extents of {list(source.shape)} and {list(positions.shape)} differ"
        )
    return axis, batch


def infer(call: Call) -> list[Shape]:
    """The axis gives way to the axes of the positions that are not batch axes."""
    call.expect(2)
    axis, batch = _axes(call)
    source = call.input(0).shape
    return [bounded(call, source[:axis] + call.input(1).shape[batch:] + source[axis + 1 :])]


def lower(call: Call) -> Lowered:
    """The tensor as [batch, outer, axis, inner] and the positions as [batch, count]."""
    axis, batch = _axes(call)
    source, positions = call.input(0).shape, call.input(1).shape
    sizes = [math.prod(part) for part in (source[:batch], source[batch:axis], source[axis + 1 :], positions[batch:])]
    return Lowered(
        parameters={
            "batch": sizes[0],
            "outer": sizes[1],
            "extent": source[axis],
            "inner": sizes[2],
            "count": sizes[3],
            "shape": call.output.shape,
        },
        scratch=8 * call.input(1).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Picked along axis 2 of [batch, outer, axis, inner]."""
    x = inputs[0].reshape(step["batch"], step["outer"], step["extent"], step["inner"])
    positions = inputs[1].astype(np.int64).reshape(step["batch"], step["count"])
    # An upper bound is only met when something is read, a negative position never passes.
    _check_positions(positions, step["extent"] if step["batch"] * step["outer"] else None)
    if not x.size or not positions.size:
        return [np.empty(step["shape"], x.dtype)]
    if step["batch"] == 1:
        picked = np.take(x[0], positions[0], axis=1)
    else:
        picked = np.take_along_axis(x, positions[:, None, :, None], axis=2)
    return [picked.reshape(step["shape"])]


def _check_positions(positions: np.ndarray, extent: int | None) -> None:
    bad = positions < 0
    if extent is not None:
        bad = bad | (positions >= extent)
    if bad.any():
        limit = "at least 0" if extent is None else f"between 0 and {extent - 1}"
        raise RunError(
            "BT-GATHER-POSITION",
            f"position {int(positions[bad][0])} must be {limit}",
            advice="positions are neither wrapped nor clamped",
        )


def infer_nd(call: Call) -> list[Shape]:
    """[..., k] positions pick slices of the axes after the first k."""
    call.expect(2)
    source, positions = call.input(0), call.input(1, "positions")
    if source.rank < 1 or positions.rank < 1 or positions.shape[-1] > source.rank:
        raise call.invalid(
            "BT-GATHER", f"positions of shape {list(positions.shape)} cannot address shape {list(source.shape)}"
        )
    if source.size == 0 and positions.size:
        raise call.invalid("BT-GATHER", "positions cannot address an empty tensor")
    if positions.shape[-1] == 0 and 0 not in positions.shape[:-1] and positions.value is None:
        raise call.invalid("BT-GATHER", "empty positions must be a constant")
    return [bounded(call, positions.shape[:-1] + source.shape[positions.shape[-1] :])]


def lower_nd(call: Call) -> Lowered:
    """Extents that positions address, and the shape of the result."""
    depth = call.input(1).shape[-1]
    return Lowered(
        parameters={"extents": call.input(0).shape[:depth], "shape": call.output.shape},
        scratch=16 * call.input(1).size,
    )


def reference_nd(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows of the tensor with its addressed axes merged into one."""
    extents, shape = step["extents"], step["shape"]
    positions = inputs[1].astype(np.int64).reshape(math.prod(inputs[1].shape[:-1]), len(extents))
    flat = np.zeros(positions.shape[0], np.int64)
    for axis, extent in enumerate(extents):
        _check_positions(positions[:, axis], extent)
        flat = flat * extent + positions[:, axis]
    if not math.prod(shape):
        return [np.empty(shape, inputs[0].dtype)]
    rows = inputs[0].reshape(math.prod(extents), -1)
    return [np.take(rows, flat, axis=0).reshape(shape)]


OPERATORS = (
    Operator("gather", (), infer, lower, reference, "slices picked along one axis", moves=True),
    Operator("gather_nd", (), infer_nd, lower_nd, reference_nd, "slices picked by coordinates", moves=True),
)

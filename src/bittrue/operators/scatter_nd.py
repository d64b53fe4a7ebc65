"""scatter_nd and sparse_to_dense: slices or elements put where coordinates say."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import RunError
from ..graph import Attribute
from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded


def _flat(step: Step, coordinates: np.ndarray, extents: Sequence[int]) -> np.ndarray:
    """Positions in the merged axes of `extents`; a typed error for a coordinate outside."""
    columns = coordinates.astype(np.int64).reshape(step["count"], len(extents))
    flat = np.zeros(step["count"], np.int64)
    for axis, extent in enumerate(extents):
        column = columns[:, axis]
        bad = column[(column < 0) | (column >= extent)]
        if bad.size:
            raise RunError(
                "BT-SCATTER-POSITION",
                f"coordinate {int(bad[0])} of axis {axis} must lie in [0, {extent})",
                advice="coordinates are neither wrapped nor clamped",
            )
        flat = flat * extent + column
    return flat


def infer(call: Call) -> list[Shape]:
    """The third input. [..., k] coordinates address its first k axes; updates are [..., the other axes]."""
    call.expect(3)
    indices, updates, shape = call.input(0, "coordinates"), call.input(1, "updates"), call.input(2, "shape")
    call.rank(shape, 1)
    target = bounded(call, call.integers(2, "shape"))
    if indices.rank < 1 or updates.rank < 1 or indices.shape[-1] > len(target):
        raise call.invalid(
            "BT-SCATTER", f"coordinates {list(indices.shape)} and updates {list(updates.shape)} do not fit {target}"
        )
    wanted = (*indices.shape[:-1], *target[indices.shape[-1] :])
    if updates.shape != wanted:
        raise call.invalid("BT-SCATTER", f"updates must be {list(wanted)}, found {list(updates.shape)}")
    return [target]


def lower(call: Call) -> Lowered:
    """Extents that coordinates address, number of slices, and their size."""
    indices, target = call.input(0).shape, call.output.shape
    parameters: dict[str, Attribute] = {
        "extents": target[: indices[-1]],
        "count": math.prod(indices[:-1]),
        "inner": math.prod(target[indices[-1] :]),
        "shape": target,
    }
    return Lowered(parameters=parameters, scratch=16 * call.input(0).size + 8 * call.input(1).size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Slices are added, in order, to zeros; integers wrap, truth values are joined by or."""
    updates, extents = inputs[1], step["extents"]
    flat = _flat(step, inputs[0], extents)
    out = np.zeros((math.prod(extents), step["inner"]), updates.dtype)
    if updates.size:
        slices = updates.reshape(step["count"], step["inner"])
        if updates.dtype == np.bool_:
            np.bitwise_or.at(out.view(np.uint8), flat, slices.view(np.uint8))
        else:
            np.add.at(out, flat, slices)
    return [out.reshape(step["shape"])]


def infer_sparse(call: Call) -> list[Shape]:
    """The second input. Indices are positions (rank 0 or 1) or one row of coordinates per value (rank 2)."""
    call.expect(4)
    indices, shape, values = call.input(0, "indices"), call.input(1, "shape"), call.input(2, "values")
    call.rank(indices, 0, 2)
    call.rank(shape, 1)
    call.rank(values, 0, 1)
    target = bounded(call, call.integers(1, "shape"))
    if call.input(3, "default").size != 1:
        raise call.invalid("BT-SCATTER", f"the default must be one value, found shape {list(call.input(3).shape)}")
    count = indices.shape[0] if indices.rank else 1
    depth = indices.shape[1] if indices.rank == 2 else 1
    if depth != len(target) or depth > 4 or (values.rank and values.shape[0] != count):
        raise call.invalid(
            "BT-SCATTER",
            f"indices {list(indices.shape)} and values {list(values.shape)} do not fit {list(target)}",
            "a row of indices has one coordinate per axis, at most 4; values are one, or one per row",
        )
    return [target]


def lower_sparse(call: Call) -> Lowered:
    """Number of rows of indices."""
    indices = call.input(0)
    return Lowered(
        parameters={"count": indices.shape[0] if indices.rank else 1, "shape": call.output.shape},
        scratch=24 * indices.size,
    )


def reference_sparse(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values on top of the default; the last one stays where indices repeat."""
    flat = _flat(step, inputs[0], step["shape"])
    out = np.full(math.prod(step["shape"]), inputs[3].reshape(()), inputs[2].dtype)
    out[flat] = inputs[2]
    return [out.reshape(step["shape"])]


OPERATORS = (
    Operator("scatter_nd", (), infer, lower, reference, "sums of slices at coordinates of a tensor of zeros"),
    Operator("sparse_to_dense", (), infer_sparse, lower_sparse, reference_sparse, "values at coordinates of a tensor"),
)

"""Boxes of one size cut out of a tensor, at corners that are given for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..core.base import Call, Lowered, Shape, Step
from ..core.indexing import bounded, fresh


def _ascending(numbers: Sequence[int], end: int) -> bool:
    return all(0 <= n < end for n in numbers) and all(a < b for a, b in pairwise(numbers))


def _numbers(call: Call, name: str) -> tuple[int, ...]:
    return tuple(call.attribute(name))


def infer(call: Call) -> list[Shape]:
    """The axes of the corners, without the one that holds their coordinates, and the kept axes of the box."""
    call.expect(2)
    source, corners = call.input(0), call.input(1, "corners")
    sizes, collapsed = _numbers(call, "slice_sizes"), _numbers(call, "collapsed_slice_dims")
    offsets, axes = _numbers(call, "offset_dims"), _numbers(call, "start_index_map")
    vector = int(call.attribute("index_vector_dim"))
    fits = len(sizes) == source.rank and all(0 <= s <= e for s, e in zip(sizes, source.shape, strict=False))
    if not fits:
        raise call.invalid("BT-GATHER", f"slice_sizes {list(sizes)} do not fit into {list(source.shape)}")
    if not 0 <= vector < corners.rank:
        raise call.invalid("BT-GATHER", f"index_vector_dim {vector} does not fit {list(corners.shape)}")
    batch = corners.shape[:vector] + corners.shape[vector + 1 :]
    coordinates = corners.shape[vector]
    kept = [size for axis, size in enumerate(sizes) if axis not in collapsed]
    rank = len(batch) + len(offsets)
    well_formed = (
        _ascending(collapsed, source.rank)
        and all(sizes[axis] == 1 for axis in collapsed)
        and _ascending(offsets, rank)
        and len(offsets) == len(kept)
        and len(axes) == coordinates == len(set(axes))
        and all(0 <= axis < source.rank for axis in axes)
    )
    if not well_formed or len(call.output.tensor.shape) != rank:
        raise call.invalid(
            "BT-GATHER",
            f"collapsed_slice_dims {list(collapsed)}, offset_dims {list(offsets)}, start_index_map {list(axes)} and "
            f"the output's rank {len(call.output.tensor.shape)} do not fit together",
            "axes are ascending, collapsed ones have size 1, and the output holds the other ones beside the batch",
        )
    rest, inner = iter(batch), iter(kept)
    shape = bounded(call, [next(inner) if axis in offsets else next(rest) for axis in range(rank)])
    if math.prod(shape) and not source.size:
        raise call.invalid("BT-GATHER", f"boxes cannot be cut out of an empty tensor {list(source.shape)}")
    return [shape]


def lower(call: Call) -> Lowered:
    """The attributes."""
    return Lowered(
        parameters={
            "sizes": _numbers(call, "slice_sizes"),
            "offsets": _numbers(call, "offset_dims"),
            "axes": _numbers(call, "start_index_map"),
            "vector": int(call.attribute("index_vector_dim")),
            "shape": call.output.shape,
        },
        scratch=16 * call.output.size + 16 * call.input(1).size * max(1, call.input(0).rank),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Corners are moved so that each box lies inside."""
    x, sizes, shape = inputs[0], step["sizes"], step["shape"]
    if not math.prod(shape):
        return [np.empty(shape, x.dtype)]
    corners = np.moveaxis(inputs[1].astype(np.int64), step["vector"], -1)
    batch = corners.shape[:-1]
    starts = np.zeros((math.prod(batch), x.ndim), np.int64)
    starts[:, list(step["axes"])] = corners.reshape(starts.shape[0], -1)
    if any(size > dimension for size, dimension in zip(sizes, x.shape, strict=True)):
        raise ValueError("boxes leave the operand")
    starts = np.clip(starts, 0, np.array(x.shape, np.int64) - np.array(sizes, np.int64))
    flat = np.zeros((starts.shape[0], 1), np.int64)
    for axis, (dimension, size) in enumerate(zip(x.shape, sizes, strict=True)):
        place = starts[:, axis, None] + np.arange(size)
        flat = (flat[:, :, None] * dimension + place[:, None, :]).reshape(starts.shape[0], -1)
    offsets = step["offsets"]
    picked = np.take(x.reshape(-1), flat).reshape((*batch, *(shape[axis] for axis in offsets)))
    return [fresh(np.moveaxis(picked, range(len(batch), picked.ndim), offsets), shape)]

"""Scales that are operands: which elements share one, as the shape of the scale says.

- Per tensor: a scale of rank 0, or of rank 1 with one element.
- Blocked: `block_size` B > 0 and a scale of the data's rank, whose dimension on `axis` is ceil(D / B); element i of the
  axis has scale i // B.
- Per axis: a scale of rank 1 with one element per slice of `axis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...rules import zero_points
from .base import Call, Operand
from .late import Prepared, Values

PER_TENSOR = -1


def _single(operand: Operand) -> bool:
    return operand.rank < 2 and operand.size == 1


def granularity(call: Call) -> tuple[int, int]:
    """Axis and block size; (-1, 0) per tensor, (axis, 0) per axis. Inputs: data, scale, zero point (may be absent).

    Raises:
        InvalidModelError: shapes that do not fit.
    """
    data, scale = call.input(0), call.input(1, "scale")
    zero_point = call.input(2) if call.has(2) else None
    block = int(call.attribute("block_size"))
    if block < 0:
        raise call.invalid("BT-QUANT-BLOCK", f"block_size {block} is negative")
    if _single(scale):
        if zero_point is not None and not _single(zero_point):
            raise _mismatch(call, zero_point, scale)
        return PER_TENSOR, 0
    if zero_point is not None and zero_point.shape != scale.shape:
        raise _mismatch(call, zero_point, scale)
    axis = call.axis(int(call.attribute("axis")), data.rank)
    if not block:
        if data.rank == 0 or scale.shape != data.shape[axis : axis + 1]:
            raise call.invalid(
                "BT-QUANT-AXIS",
                f"scale '{scale.name}' has shape {list(scale.shape)}, which is neither one element nor one per slice of"
                f" axis {axis} of the data's shape {list(data.shape)}",
                "give block_size where the scale has the rank of the data",
            )
        return axis, 0
    wanted = [-(-size // block) if i == axis else size for i, size in enumerate(data.shape)]
    if list(scale.shape) != wanted:
        raise call.invalid(
            "BT-QUANT-BLOCK",
            f"scale '{scale.name}' has shape {list(scale.shape)}, but blocks of {block} on axis {axis} of the data's"
            f" shape {list(data.shape)} need {wanted}",
        )
    return axis, block


def _mismatch(call: Call, zero_point: Operand, scale: Operand) -> Exception:
    return call.invalid(
        "BT-QUANT-AXIS",
        f"zero point '{zero_point.name}' has shape {list(zero_point.shape)}, its scale has {list(scale.shape)}",
        "give one zero point per scale",
    )


def prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    """`scales` and `zero_points`, flat but for blocked ones.

    Scales are f32 (f64 for integer scales), zero points s64 (f32 for types that are floats). Both are exact.
    """
    scale, zero_point = np.asarray(values[1]), values[2] if len(values) > 2 else None
    scales = scale.astype(np.float64 if scale.dtype.kind == "i" else np.float32)
    points: np.ndarray = np.zeros(scales.shape, np.int64)
    if zero_point is not None:
        given = np.asarray(zero_point)
        points = zero_points.RULES[rules["zero_points"]](
            given.astype(np.int64 if given.dtype.kind in "iu" else np.float32)
        )
    if not known["block_size"]:
        scales, points = scales.reshape(-1), points.reshape(-1)
    return {}, {"scales": scales, "zero_points": points}


def spread(array: np.ndarray, shape: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """Scales or zero points in a shape that broadcasts over data of `shape`.

    >>> spread(np.array([[1], [2]]), (3, 1), 0, 2).tolist()
    [[1], [1], [2]]
    """
    if axis == PER_TENSOR:
        return array.reshape(())
    if block:
        return array.take(np.arange(shape[axis]) // block, axis=axis)
    size = shape[axis]
    return array.reshape((1,) * axis + (size,) + (1,) * (len(shape) - axis - 1))


def split_pairs(shape: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """Flat places of elements that do not share a pair (places 2k and 2k + 1) with a neighbour of their own scale.

    >>> split_pairs((2, 3), 0, 0).tolist(), split_pairs((5,), -1, 0).tolist()
    ([2, 3], [4])
    """
    size = int(np.prod(shape))
    if axis == PER_TENSOR:
        begins = np.arange(min(size, 1))
    elif block:
        # Blocks of the last axis, the last one of a row shorter where the block size does not divide it.
        dimension = shape[axis]
        begins = (np.arange(0, size, dimension)[:, None] + np.arange(0, dimension, block)).reshape(-1)
    else:
        begins = np.arange(0, size, max(1, int(np.prod(shape[axis + 1 :]))))
    ends = np.append(begins[1:], size)[: begins.size]
    return np.unique(np.concatenate([begins[begins % 2 == 1], ends[ends % 2 == 1] - 1]))

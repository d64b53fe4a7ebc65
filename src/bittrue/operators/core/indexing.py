"""What data-movement operators share: limits of shapes, legacy parameters, fresh copies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .base import Call, Operand, Shape

# NumPy takes 64 dimensions, and some operators split every dimension in two.
MAX_RANK = 32
# Dimensions are 32-bit integers in every model format.
MAX_DIMENSION = 2**31 - 1
# Dimensions beside a dimension of 0 may not multiply to more than this: NumPy refuses them though nothing is stored.
MAX_HIDDEN = 2**40


def bounded(call: Call, shape: Sequence[int]) -> Shape:
    """`shape` as a tuple, or a typed error when no array can have it. The planner checks its size in bytes."""
    found = tuple(int(size) for size in shape)
    if any(size < 0 for size in found):
        raise call.invalid("BT-SHAPE-NEGATIVE", f"the output would have the shape {list(found)}")
    if len(found) > MAX_RANK:
        raise call.unsupported(
            "BT-SHAPE-RANK", f"the output would have rank {len(found)}, at most {MAX_RANK} is allowed"
        )
    hidden = math.prod(size or 1 for size in found) if 0 in found else 0
    if any(size > MAX_DIMENSION for size in found) or hidden > MAX_HIDDEN:
        raise call.invalid("BT-SHAPE-LARGE", f"the output would have the shape {list(found)}, which is too large")
    return found


def parameters_or_zero(operand: Operand) -> tuple[float, int]:
    """Binary32 scale and zero point of a tensor; (0, 0) without quantization and for per-axis parameters.

    This is what kernels see that read only the per-tensor fields. Source: docs/facts/litert.md 2.2 (MUL), run.
    """
    quantization = operand.tensor.quantization
    if quantization is None or quantization.per_axis:
        return 0.0, 0
    return float(quantization.scales[0]), int(quantization.zero_points[0])


def fresh(view: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The elements of `view` in its own order as a new contiguous array of `shape`, with one copy.

    >>> fresh(np.int8([[1, 2], [3, 4]]).T, (4,)).tolist()
    [1, 3, 2, 4]
    """
    out = np.empty(tuple(shape), view.dtype)
    out.reshape(view.shape)[...] = view
    return out

"""unpool: numbers put where indices say, in a tensor of zeros.

Inputs: x [N, C, ...], indices of the same shape into the elements of the result, and the result's shape where it is an
operand. Without it, sizes are those that a pool with these windows had before: (n - 1) stride - pads + window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded


def infer(call: Call) -> list[Shape]:
    """As the operand says, or by the windows."""
    call.expect((2, 3))
    x = call.input(0)
    call.rank(x, 3, 5)
    if call.input(1, "indices").shape != x.shape:
        raise call.invalid("BT-UNPOOL", f"indices have shape {list(call.input(1).shape)}, x has {list(x.shape)}")
    axes = x.rank - 2
    kernel, strides, pads = (tuple(call.attribute(name)) for name in ("kernel", "strides", "pads"))
    strides, pads = strides or (1,) * axes, pads or (0,) * 2 * axes
    if (len(kernel), len(strides), len(pads)) != (axes, axes, 2 * axes):
        raise call.invalid("BT-UNPOOL", f"windows {kernel}, strides {strides} and pads {pads} do not fit {axes} axes")
    if max(pads[i] - kernel[i % axes] for i in range(2 * axes)) >= 0:
        raise call.invalid("BT-UNPOOL", f"pads {pads} must be smaller than windows {kernel}")
    sizes = [(n - 1) * strides[i] - pads[i] - pads[i + axes] + kernel[i] for i, n in enumerate(x.shape[2:])]
    if call.has(2):
        given = call.integers(2, "shape")
        if len(given) != x.rank or tuple(given[:2]) != x.shape[:2]:
            raise call.invalid("BT-UNPOOL", f"the shape {given[:8]} does not fit x of shape {list(x.shape)}")
        sizes = given[2:]
    if min(sizes) < 0:
        raise call.invalid("BT-UNPOOL", f"sizes {sizes} are negative")
    return [bounded(call, (*x.shape[:2], *sizes))]


def lower(call: Call) -> Lowered:
    """The result's shape."""
    return Lowered({"shape": call.output.shape}, inputs=(0, 1))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of several numbers for one place, the last one stays."""
    x, places = inputs[0].reshape(-1), inputs[1].reshape(-1)
    count = math.prod(step["shape"])
    outside = (places < 0) | (places >= count)
    if outside.any():
        raise RunError(
            "BT-UNPOOL",
            f"index {int(places[outside.argmax()])} is outside of {count} elements",
            place=step.place,
            advice="the indices must be those of the pool that this undoes",
        )
    out = np.zeros(count, x.dtype)
    out[places] = x
    return [out.reshape(step["shape"])]


OPERATOR = Operator("unpool", (), infer, lower, reference, "numbers put where a pool found them")

"""one_hot: a new axis that holds one value where its position is the index, another one elsewhere.

Inputs: indices, depth, and the values where on and where off; or, in one tensor, where off and where on. Where indices
count `from_either_end`, negative ones count from the back; else their low 32 bits do, and no axis but -1 is negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic.fixed_point import wrap_s32
from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded


def _axis(call: Call) -> int:
    rank, axis = call.input(0, "indices").rank, int(call.attribute("axis"))
    if axis < -1 and not call.attribute("from_either_end"):
        raise call.invalid("BT-SHAPE-AXIS", f"axis {axis} is outside a tensor of rank {rank + 1}")
    return call.axis(axis, rank + 1)


def _depth(call: Call) -> int:
    (depth,) = (int(v) for v in call.value(1, "depth").reshape(-1))
    if not call.attribute("from_either_end"):
        # Only the low 32 bits of a depth count.
        return int(wrap_s32(np.array([depth]))[0])
    if depth < 1:
        raise call.invalid("BT-ONE-HOT", f"depth {depth} must be positive")
    return depth


def infer(call: Call) -> list[Shape]:
    """`depth` positions at the axis, ahead of the index axes that follow it."""
    call.expect((3, 4))
    indices, one = call.input(0, "indices"), not call.has(3)
    call.rank(indices, 1 if call.attribute("from_either_end") else 0, max(1, indices.rank))
    for position, role, size in ((1, "depth", 1), (2, "values", 2 if one else 1), *(() if one else ((3, "off", 1),))):
        if call.input(position, role).size != size or (one and call.input(position).rank > 1):
            found = list(call.input(position).shape)
            raise call.invalid("BT-ONE-HOT", f"{role} must have {size} elements, found shape {found}")
    axis, shape = _axis(call), indices.shape
    return [bounded(call, (*shape[:axis], _depth(call), *shape[axis:]))]


def lower(call: Call) -> Lowered:
    """Indices as [before, after], the output as [before, depth, after]."""
    axis, shape = _axis(call), call.input(0).shape
    parameters: dict[str, Attribute] = {
        "before": math.prod(shape[:axis]),
        "depth": call.output.shape[axis],
        "after": math.prod(shape[axis:]),
        "shape": call.output.shape,
        "from_either_end": bool(call.attribute("from_either_end")),
    }
    return Lowered(parameters=parameters, scratch=call.output.size + 16 * call.input(0).size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An index outside of the axis is on nowhere."""
    indices, depth = inputs[0].reshape(step["before"], 1, step["after"]), step["depth"]
    if step["from_either_end"]:
        indices = np.where(indices < 0, indices + indices.dtype.type(depth), indices)
        off, on = inputs[2]
    else:
        indices = wrap_s32(indices)
        on, off = (values.reshape(()) for values in inputs[2:4])
    return [np.where(indices == np.arange(depth).reshape(-1, 1), on, off).reshape(step["shape"])]


OPERATOR = Operator("one_hot", (), infer, lower, reference, "a new axis that marks the position of each index")

"""one_hot: a new axis that holds one value where its position is the index, another one elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arithmetic.fixed_point import wrap_s32
from ..graph import Attribute
from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded


def _axis(call: Call) -> int:
    rank, axis = call.input(0, "indices").rank, int(call.attribute("axis"))
    if not -1 <= axis <= rank:
        raise call.invalid("BT-SHAPE-AXIS", f"axis {axis} is outside a tensor of rank {rank + 1}")
    return rank if axis == -1 else axis


def infer(call: Call) -> list[Shape]:
    """`depth` extents at the axis, ahead of the index axes that follow it."""
    call.expect(4)
    axis = _axis(call)
    for position, role in ((1, "depth"), (2, "value where on"), (3, "value where off")):
        if call.input(position, role).size != 1:
            raise call.invalid(
                "BT-ONE-HOT", f"{role} must be one number, found shape {list(call.input(position).shape)}"
            )
    # Only the low 32 bits of a depth count.
    (depth,) = wrap_s32(np.array(call.integers(1, "depth"))).tolist()
    shape = call.input(0).shape
    return [bounded(call, (*shape[:axis], depth, *shape[axis:]))]


def lower(call: Call) -> Lowered:
    """Indices as [before, after], the output as [before, depth, after]."""
    axis, shape = _axis(call), call.input(0).shape
    parameters: dict[str, Attribute] = {
        "before": math.prod(shape[:axis]),
        "depth": call.output.shape[axis],
        "after": math.prod(shape[axis:]),
        "shape": call.output.shape,
    }
    return Lowered(parameters=parameters, scratch=call.output.size + 8 * call.input(0).size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The low 32 bits of an index are compared; one outside of the axis is on nowhere."""
    indices = wrap_s32(inputs[0]).reshape(step["before"], 1, step["after"])
    on = indices == np.arange(step["depth"]).reshape(-1, 1)
    return [np.where(on, inputs[2].reshape(()), inputs[3].reshape(())).reshape(step["shape"])]


OPERATOR = Operator("one_hot", (), infer, lower, reference, "a new axis that marks the position of each index")

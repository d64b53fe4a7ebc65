"""position_of_largest and position_of_smallest: where along one axis the extreme value is, the first or last one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arg_max import position_of
from .base import Call, Lowered, Operator, Shape, Step

_STEMS = {"position_of_largest": "arg_max", "position_of_smallest": "arg_min"}


def infer(call: Call) -> list[Shape]:
    """The shape without the axis. Empty tensors are refused: runtimes give them shapes of their own."""
    call.expect(1)
    source = call.input(0)
    call.rank(source, 1, max(1, source.rank))
    axis = call.axis(call.attribute("axis"), source.rank)
    if not source.size:
        raise call.unsupported("BT-ARG-EMPTY", f"a tensor of shape {list(source.shape)} has no extreme value")
    return [source.shape[:axis] + source.shape[axis + 1 :]]


def lower(call: Call) -> Lowered:
    """The axis, and which of equal values counts."""
    source = call.input(0)
    return Lowered(
        {"axis": call.axis(call.attribute("axis"), source.rank), "output_dtype": call.output.type.numpy.name},
        work=source.size,
        scratch=3 * source.size * source.type.numpy.itemsize + 8 * call.output.size,
        operator="" if call.attribute("last") else _STEMS[call.node.operator],
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The last one: the first one from behind."""
    axis = step["axis"]
    behind = np.flip(inputs[0], axis)
    (position,) = position_of(step.operator == "position_of_largest")(step, [behind])
    return [np.asarray(position.dtype.type(inputs[0].shape[axis] - 1) - position)]


OPERATORS = (
    Operator("position_of_largest", (), infer, lower, reference, "where along an axis the largest value is"),
    Operator("position_of_smallest", (), infer, lower, reference, "where along an axis the smallest value is"),
)

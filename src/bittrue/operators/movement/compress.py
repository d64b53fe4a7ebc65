"""compress: the slices of an axis, or the elements of a flattened tensor, where a vector of truth values says so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step


def _axis(call: Call) -> int | None:
    axis = call.node.attributes.get("axis")
    return call.axis(axis, call.input(0).rank) if isinstance(axis, int) else None


def infer(call: Call) -> list[Shape]:
    """How many slices is in the values; the condition may be shorter than the axis."""
    call.expect(2)
    source, condition, axis = call.input(0), call.input(1, "condition"), _axis(call)
    call.rank(source, 1, max(1, source.rank))
    call.rank(condition, 1)
    size = source.size if axis is None else source.shape[axis]
    count = -1 if condition.value is None else int(np.count_nonzero(condition.value[:size]))
    return [(count,) if axis is None else (*source.shape[:axis], count, *source.shape[axis + 1 :])]


def lower(call: Call) -> Lowered:
    """The axis, -1 for elements."""
    axis = _axis(call)
    return Lowered({"axis": -1 if axis is None else axis}, scratch=8 * call.input(1).size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Picked by position."""
    x, axis = (inputs[0].reshape(-1), 0) if step["axis"] < 0 else (inputs[0], step["axis"])
    return [np.take(x, np.flatnonzero(inputs[1][: x.shape[axis]]), axis=axis)]


OPERATOR = Operator("compress", (), infer, lower, reference, "slices where a condition holds", moves=True)

"""cumsum: running sums along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step


def _axis(call: Call) -> int:
    axes = call.integers(1, "axis")
    if len(axes) != 1:
        raise call.invalid("BT-CUMSUM", f"the axis must be one number, found {len(axes)}")
    if call.input(0).rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{call.input(0).name}' must have rank 1 or more, found a scalar")
    return call.axis(axes[0], call.input(0).rank)


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(2)
    _axis(call)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """Axis and direction."""
    return Lowered(
        parameters={
            "axis": _axis(call),
            "exclusive": bool(call.attribute("exclusive")),
            "reverse": bool(call.attribute("reverse")),
        },
        scratch=2 * call.input(0).size * call.input(0).type.numpy.itemsize,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums begin at +0, or at the first element by the slot `start`, and go element by element; integers wrap."""
    x, axis = np.moveaxis(inputs[0], step["axis"], 0), step["axis"]
    if step["reverse"]:
        x = x[::-1]
    with np.errstate(all="ignore"):
        # x + 0 first: a sum that begins at +0 is never -0. Exclusive sums begin at +0 in every rule.
        begun = x if "start" in step.rules and not step["exclusive"] else x + x.dtype.type(0)
        sums = np.add.accumulate(begun, axis=0, dtype=x.dtype)
    if step["exclusive"]:
        sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
    if step["reverse"]:
        sums = sums[::-1]
    return [np.ascontiguousarray(np.moveaxis(sums, 0, axis))]


OPERATOR = Operator("cumsum", ("start",), infer, lower, reference, "running sums along one axis")

"""cumsum and cumprod: running sums and products along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def _running(operation: np.ufunc) -> Callable[[Step, Sequence[np.ndarray]], list[np.ndarray]]:
    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """From 0 or 1 on, or from the first element by the slot `start`, element by element; integers wrap."""
        x, axis = np.moveaxis(inputs[0], step["axis"], 0), step["axis"]
        neutral = x.dtype.type(operation.identity)
        if step["reverse"]:
            x = x[::-1]
        with np.errstate(all="ignore"):
            # x + 0 first: a sum that begins at +0 is never -0. What leaves its own element out does so in every rule.
            begun = x if "start" in step.rules and not step["exclusive"] else operation(x, neutral)
            found = operation.accumulate(begun, axis=0, dtype=x.dtype)
        if step["exclusive"]:
            found = np.concatenate([np.full_like(found[:1], neutral), found[:-1]])
        if step["reverse"]:
            found = found[::-1]
        return [np.ascontiguousarray(np.moveaxis(found, 0, axis))]

    return reference


OPERATORS = (
    Operator("cumsum", ("start",), infer, lower, _running(np.add), "running sums along one axis"),
    Operator("cumprod", ("start",), infer, lower, _running(np.multiply), "running products along one axis"),
)

"""running_sum: sums of all elements up to each one along an axis; the first sum is the first element itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(2)
    source = call.input(0)
    call.rank(source, 1, max(1, source.rank))
    call.rank(call.input(1, "axis"), 0, 1)
    axes = call.integers(1, "axis")
    if len(axes) != 1:
        raise call.invalid("BT-CUMSUM", f"the axis must be one number, found {len(axes)}")
    call.axis(axes[0], source.rank)
    return [source.shape]


def lower(call: Call) -> Lowered:
    """Axis and direction."""
    source = call.input(0)
    (axis,) = call.integers(1, "axis")
    return Lowered(
        {
            "axis": call.axis(axis, source.rank),
            "exclusive": bool(call.attribute("exclusive")),
            "reverse": bool(call.attribute("reverse")),
        },
        scratch=2 * source.size * source.type.numpy.itemsize,
        operator="cumsum" if source.type.is_integer else "",
        inputs=(0,),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element; exclusive sums begin with +0."""
    x = np.moveaxis(inputs[0], step["axis"], 0)
    x = x[::-1] if step["reverse"] else x
    if step["exclusive"]:
        x = np.concatenate([np.zeros_like(x[:1]), x[:-1]])
    with np.errstate(all="ignore"):
        sums = np.add.accumulate(x, axis=0, dtype=x.dtype)
    sums = sums[::-1] if step["reverse"] else sums
    return [np.ascontiguousarray(np.moveaxis(sums, 0, step["axis"]))]


OPERATOR = Operator("running_sum", (), infer, lower, reference, "running sums that begin with the first element")

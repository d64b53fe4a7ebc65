"""unfold: all windows of `size` elements along one axis, `stride` apart, as an axis of their own behind the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded


def _window(call: Call) -> tuple[int, int, int]:
    source = call.input(0)
    call.rank(source, 1, max(1, source.rank))
    axis, size, stride = (
        call.axis(call.attribute("axis"), source.rank),
        call.attribute("size"),
        call.attribute("stride"),
    )
    if not 1 <= size <= source.shape[axis] or stride < 1:
        raise call.invalid(
            "BT-UNFOLD", f"windows of {size} elements, {stride} apart, do not fit axis {axis} of {list(source.shape)}"
        )
    return axis, int(size), int(stride)


def infer(call: Call) -> list[Shape]:
    """Windows take the place of the axis."""
    call.expect(1)
    axis, size, stride = _window(call)
    shape = list(call.input(0).shape)
    shape[axis] = (shape[axis] - size) // stride + 1
    return [bounded(call, (*shape, size))]


def lower(call: Call) -> Lowered:
    """The window."""
    axis, size, stride = _window(call)
    return Lowered({"axis": axis, "size": size, "stride": stride}, work=call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What is copied."""
    windows = np.lib.stride_tricks.sliding_window_view(inputs[0], step["size"], axis=step["axis"])
    every = [slice(None)] * windows.ndim
    every[step["axis"]] = slice(None, None, step["stride"])
    return [np.ascontiguousarray(windows[tuple(every)])]


OPERATOR = Operator("unfold", (), infer, lower, reference, "all windows along one axis", moves=True)

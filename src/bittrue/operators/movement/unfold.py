"""unfold: all windows of `size` elements along one axis, `stride` apart, as an axis of their own behind the others."""

from __future__ import annotations

from ...records import replace
from ..core.base import Call, Lowered, Operator, Shape
from ..core.indexing import bounded
from .strided_view import reference, steps_of, strided


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
    """The axis is read twice: from window to window, and inside of one."""
    axis, _, stride = _window(call)
    steps = steps_of(call.input(0).shape)
    taken = [step * stride if at == axis else step for at, step in enumerate(steps)]
    return replace(strided(call, 0, call.output.shape, [*taken, steps[axis]]), operator="slice_axes")


OPERATOR = Operator("unfold", (), infer, lower, reference, "all windows along one axis", moves=True)

"""shape_of and size_of: some extents of a tensor, or its number of elements, known as soon as the graph is planned."""

from __future__ import annotations

from .base import Call, Lowered, Operator, Shape
from .shape import reference


def _part(call: Call) -> Shape:
    """Extents from `start` up to `end` (absent: all that follow), negative ones counted from the back."""
    shape = call.input(0).shape
    end = call.node.attributes.get("end")
    return shape[slice(int(call.attribute("start")), None if end is None else int(str(end)))]


def infer_shape(call: Call) -> list[Shape]:
    """One number per extent."""
    call.expect(1)
    return [(len(_part(call)),)]


def lower_shape(call: Call) -> Lowered:
    """The extents themselves."""
    return Lowered(parameters={"extents": _part(call), "type": call.output.dtype}, operator="shape")


def infer_size(call: Call) -> list[Shape]:
    """A scalar."""
    call.expect(1)
    return [()]


def lower_size(call: Call) -> Lowered:
    """The number of elements."""
    return Lowered(parameters={"extents": call.input(0).size, "type": call.output.dtype}, operator="shape")


OPERATORS = (
    Operator("shape_of", (), infer_shape, lower_shape, reference, "some extents", needs_only_shapes=True),
    Operator("size_of", (), infer_size, lower_size, reference, "number of elements", needs_only_shapes=True),
)

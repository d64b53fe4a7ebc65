"""concat and split_parts: tensors side by side along one axis, and the way back."""

from __future__ import annotations

from ..graph import Attribute
from .base import Call, Lowered, Operator, Shape
from .concatenation import joined_shape
from .concatenation import reference as reference_concat
from .split import reference as reference_split


def infer_concat(call: Call) -> list[Shape]:
    """Extents of all axes but one are equal; scalars have no axis."""
    call.expect((1, len(call.inputs)))
    parts = [call.input(position) for position in range(len(call.inputs))]
    call.rank(parts[0], 1, parts[0].rank or 1)
    return [joined_shape(call, parts)]


def lower_concat(call: Call) -> Lowered:
    """The axis; elements are joined as they are."""
    axis = call.axis(call.attribute("axis"), call.output.rank)
    return Lowered({"axis": axis, "tables": (-1,) * len(call.inputs), "low": 0}, operator="concatenation")


def _parts(call: Call) -> tuple[int, list[int]]:
    """Axis and extents: those of the second input, else equal ones (`uneven`: all but the last, which has the rest)."""
    source, count = call.input(0), len(call.outputs)
    call.rank(source, 1, source.rank or 1)
    axis = call.axis(call.attribute("axis"), source.rank)
    extent = source.shape[axis]
    if call.has(1):
        call.rank(call.input(1, "sizes"), 1)
        sizes = call.integers(1, "sizes")
    elif call.attribute("uneven"):
        size = -(-extent // count)
        sizes = [size] * (count - 1) + [extent - size * (count - 1)]
    else:
        sizes = [extent // count] * count
    spare = not call.has(1) and call.attribute("uneven") and sizes[-1] <= 0
    if len(sizes) != count or min(sizes, default=0) < 0 or sum(sizes) != extent or spare:
        raise call.invalid("BT-SPLIT", f"sizes {sizes} do not cut an extent of {extent} into {count} parts")
    return axis, sizes


def infer_split(call: Call) -> list[Shape]:
    """The input's shape with the part's extent along the axis."""
    call.expect((1, 2), None)
    axis, sizes = _parts(call)
    shape = call.input(0).shape
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def lower_split(call: Call) -> Lowered:
    """The axis and the extents of the parts."""
    axis, sizes = _parts(call)
    parameters: dict[str, Attribute] = {"input": 0, "axis": axis, "sizes": tuple(sizes)}
    return Lowered(parameters, operator="split", inputs=(0,))


OPERATORS = (
    Operator(
        "concat", (), infer_concat, lower_concat, reference_concat, "tensors side by side, as they are", moves=True
    ),
    Operator("split_parts", (), infer_split, lower_split, reference_split, "parts along one axis", moves=True),
)

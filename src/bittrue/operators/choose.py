"""choose: elements of the second input where the first is true, of the third elsewhere, with NumPy broadcasting."""

from __future__ import annotations

from .base import Call, Lowered, Operator, Shape
from .select import reference


def infer(call: Call) -> list[Shape]:
    """All three broadcast together."""
    call.expect(3)
    shapes = [call.input(position, role).shape for position, role in enumerate(("condition", "true", "false"))]
    rank = max(map(len, shapes))
    columns = list(zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True))
    result = tuple(next((extent for extent in column if extent != 1), 1) for column in columns)
    if any(extent not in (1, wanted) for column, wanted in zip(columns, result, strict=True) for extent in column):
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast together"
        )
    return [result]


def lower(call: Call) -> Lowered:
    """The output shape."""
    return Lowered({"shape": call.output.shape, "by_row": False}, operator="select_v2")


OPERATOR = Operator(
    "choose", (), infer, lower, reference, "one of two elements by a condition", moves=True, elementwise=3
)

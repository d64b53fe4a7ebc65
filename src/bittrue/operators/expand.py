"""expand: broadcasting of a tensor against a shape."""

from __future__ import annotations

from .base import Call, Lowered, Operator, Shape
from .indexing import bounded
from .tile import reference_broadcast


def infer(call: Call) -> list[Shape]:
    """Both shapes broadcast together: an extent of 1 in the wanted shape keeps the input's."""
    call.expect(2)
    source = call.input(0)
    call.rank(call.input(1, "shape"), 1)
    wanted = call.integers(1, "shape")
    rank = max(source.rank, len(wanted))
    one, two = [1] * (rank - source.rank) + list(source.shape), [1] * (rank - len(wanted)) + wanted
    if any(a != b and 1 not in (a, b) for a, b in zip(one, two, strict=True)):
        raise call.invalid("BT-SHAPE-BROADCAST", f"shape {list(source.shape)} cannot be broadcast with {wanted}")
    return [bounded(call, [b if a == 1 else a for a, b in zip(one, two, strict=True)])]


def lower(call: Call) -> Lowered:
    """The output shape."""
    return Lowered({"shape": call.output.shape}, operator="broadcast_to", inputs=(0,))


OPERATOR = Operator("expand", (), infer, lower, reference_broadcast, "extents of 1 repeated", moves=True)

"""shape and size_of: sizes of a tensor, or its number of elements, known as soon as the graph is planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import data_type
from ..core.base import Call, Lowered, Operator, Shape, Step


def _part(call: Call) -> Shape:
    """Dimensions from `start` up to `end`, negative ones counted from the back; all of them without these
    attributes.
    """
    start, end = (call.node.attributes.get(name) for name in ("start", "end"))
    return call.input(0).shape[None if start is None else int(str(start)) : None if end is None else int(str(end))]


def infer(call: Call) -> list[Shape]:
    """One number per dimension."""
    call.expect(1)
    wanted = call.node.attributes.get("out_type", call.output.dtype)
    if wanted != call.output.dtype:
        raise call.invalid("BT-SHAPE-TYPE", f"out_type is {wanted}, but the output tensor is {call.output.dtype}")
    return [(len(_part(call)),)]


def lower(call: Call) -> Lowered:
    """The dimensions themselves."""
    return Lowered(parameters={"extents": _part(call), "type": call.output.dtype})


def infer_size(call: Call) -> list[Shape]:
    """A scalar."""
    call.expect(1)
    return [()]


def lower_size(call: Call) -> Lowered:
    """The number of elements."""
    return Lowered(parameters={"extents": call.input(0).size, "type": call.output.dtype}, operator="shape")


def reference(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The dimensions from the plan; the input is not read."""
    return [np.array(step["extents"], data_type(step["type"]).numpy)]


OPERATORS = (
    Operator("shape", (), infer, lower, reference, "sizes of a tensor", needs_only_shapes=True),
    Operator("size_of", (), infer_size, lower_size, reference, "number of elements", needs_only_shapes=True),
)

"""pack: tensors of one shape stacked along a new axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded


def infer(call: Call) -> list[Shape]:
    """The inputs' shape with their number inserted at the axis."""
    count = int(call.attribute("values_count"))
    call.expect((1, len(call.inputs)))
    if count != len(call.inputs):
        raise call.invalid("BT-PACK", f"values_count is {count}, but the node has {len(call.inputs)} inputs")
    first = call.input(0)
    for position in range(1, count):
        if call.input(position).shape != first.shape:
            raise call.invalid(
                "BT-PACK",
                f"'{call.input(position).name}' of shape {list(call.input(position).shape)} cannot be stacked on "
                f"'{first.name}' of shape {list(first.shape)}",
            )
    axis = call.axis(call.attribute("axis"), first.rank + 1)
    return [bounded(call, (*first.shape[:axis], count, *first.shape[axis:]))]


def lower(call: Call) -> Lowered:
    """The new axis."""
    return Lowered(parameters={"axis": call.axis(call.attribute("axis"), call.output.rank)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Stacked."""
    return [np.stack(inputs, axis=step["axis"])]


OPERATOR = Operator("pack", (), infer, lower, reference, "tensors stacked along a new axis", moves=True, joins=True)

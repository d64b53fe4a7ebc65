"""select and select_v2: elements of the second input where the first is true, of the third elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step


def _shapes(call: Call) -> tuple[Shape, Shape, Shape]:
    call.expect(3)
    return call.input(0, "condition").shape, call.input(1, "chosen when true").shape, call.input(2).shape


def _single(call: Call) -> list[Shape] | None:
    """The file's own output shape when everything holds one element, unless `keeps_declared_shape` is false."""
    declared = call.output.tensor.shape
    shapes = (*_shapes(call), declared)
    kept = call.node.attributes.get("keeps_declared_shape", True)
    return [declared] if kept and all(math.prod(shape) == 1 for shape in shapes) else None


def infer_select(call: Call) -> list[Shape]:
    """The condition has the values' shape, or is a scalar, or holds one truth value per slice of the first axis."""
    condition, chosen, other = _shapes(call)
    found = _single(call)
    if found is not None:
        return found
    rows = len(condition) == 1 and bool(chosen) and condition[0] == chosen[0]
    if chosen != other or not (condition == chosen or not condition or rows):
        raise call.invalid(
            "BT-SELECT-SHAPE",
            f"a condition of shape {list(condition)} cannot choose between {list(chosen)} and {list(other)}",
            "the values need equal shapes; the condition that shape, [] or [first extent]",
        )
    return [chosen]


def infer_select_v2(call: Call) -> list[Shape]:
    """NumPy broadcasting of all three."""
    shapes = _shapes(call)
    found = _single(call)
    if found is not None:
        return found
    rank = max(map(len, shapes))
    extents = list(zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True))
    result = tuple(next((e for e in column if e != 1), 1) for column in extents)
    if any(e not in (1, chosen) for column, chosen in zip(extents, result, strict=True) for e in column):
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast together"
        )
    return [result]


def lower(call: Call) -> Lowered:
    """The output shape, and whether the condition counts slices of the first axis."""
    condition, chosen, _ = _shapes(call)
    by_row = call.node.operator == "select" and len(condition) == 1 and len(chosen) > 1
    return Lowered(parameters={"shape": call.output.shape, "by_row": by_row})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of bytes: scales, zero points and NaN payloads pass through."""
    condition, chosen, other = inputs
    if step["by_row"]:
        condition = condition.reshape(-1, *(1,) * (chosen.ndim - 1))
    return [np.where(condition, chosen, other).reshape(step["shape"])]


OPERATORS = (
    Operator(
        "select", (), infer_select, lower, reference, "one of two elements, without broadcasting of values", moves=True
    ),
    Operator(
        "select_v2",
        (),
        infer_select_v2,
        lower,
        reference,
        "one of two elements, with broadcasting",
        moves=True,
        elementwise=3,
    ),
)

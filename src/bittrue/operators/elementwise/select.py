"""select: elements of the second input where the first is true, of the third elsewhere.

Scales may be operands: scale and zero point of both tensors, then of the result, behind the tensors.
Arrays: `tables` holds 256 entries for every tensor whose integers change; `tables` among the parameters is the row of
each tensor, or -1. With constant scales the step reads the condition and the tensors.
Slot `choice`: the tensors are merged by their values in place of copied; `exchanged` among the parameters says that
the third input goes first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Attribute
from ...rules import choice
from ..core.base import Call, Lowered, Operator, Role, Shape, Step
from ..core.elementwise import blockwise
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.scalar_operands import check_scalars, pair
from ..movement.concatenation import tables_of_scales

_ROLES = (Role("first input", 1, 3, 4), Role("second input", 2, 5, 6), Role("output", -1, 7, 8))
_PARAMETERS = range(3, 9)


def _shapes(call: Call) -> tuple[Shape, Shape, Shape]:
    if len(call.inputs) > 3:
        call.expect(9)
        check_scalars(call, (3, 5, 7), (4, 6, 8))
    else:
        call.expect(3)
    return call.input(0, "condition").shape, call.input(1, "chosen when true").shape, call.input(2).shape


def _single(call: Call) -> list[Shape] | None:
    """The file's own output shape when everything holds one element, unless `keeps_declared_shape` is false."""
    declared = call.output.tensor.shape
    shapes = (*_shapes(call), declared)
    kept = call.node.attributes.get("keeps_declared_shape", True)
    return [declared] if kept and all(math.prod(shape) == 1 for shape in shapes) else None


def _infer_alike(call: Call, condition: Shape, chosen: Shape, other: Shape) -> list[Shape]:
    rows = len(condition) == 1 and bool(chosen) and condition[0] == chosen[0]
    if chosen != other or not (condition == chosen or not condition or rows):
        raise call.invalid(
            "BT-SELECT-SHAPE",
            f"a condition of shape {list(condition)} cannot choose between {list(chosen)} and {list(other)}",
            "the values need equal shapes; the condition that shape, [] or [first dimension]",
        )
    return [chosen]


def infer(call: Call) -> list[Shape]:
    """NumPy broadcasting of all three.

    Without `broadcasts`, the condition has the values' shape, or is a scalar, or holds one truth value per slice of the
    first axis.
    """
    shapes = _shapes(call)
    found = _single(call)
    if found is not None:
        return found
    if not call.attribute("broadcasts"):
        return _infer_alike(call, *shapes)
    rank = max(map(len, shapes))
    sizes = list(zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True))
    result = tuple(next((e for e in column if e != 1), 1) for column in sizes)
    if any(e not in (1, chosen) for column, chosen in zip(sizes, result, strict=True) for e in column):
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast together"
        )
    return [result]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    return tables_of_scales(rules, known["dtype"], [pair(values, 3, 4), pair(values, 5, 6)], pair(values, 7, 8))


def _exchanged(first: Shape, second: Shape) -> bool:
    """Whether the second tensor has one element along the last axis that both have and that is no 1 in the first.

    Source: ONNX Runtime 1.31.1, how it divides broadcast tensors into runs of elements.
    """
    pairs = zip(reversed(first), reversed(second or (1,)), strict=False)
    return next((two == 1 for one, two in pairs if max(one, two) > 1), False)


def lower(call: Call) -> Lowered:
    """The output shape, whether the condition counts slices of the first axis, and tables where there are scales."""
    if len(call.inputs) > 3:
        known: dict[str, Attribute] = {"shape": call.output.shape, "by_row": False, "dtype": call.output.dtype}
        parameters, arrays = prepare_now(call, _PARAMETERS, known, _prepare)
        return Lowered(parameters, arrays, inputs=None if parameters["late"] else (0, 1, 2))
    condition, chosen, other = _shapes(call)
    by_row = not call.attribute("broadcasts") and len(condition) == 1 and len(chosen) > 1
    merged: dict[str, Attribute] = {}
    if "choice" in call.rules:
        merged["exchanged"] = _exchanged(*(np.broadcast_shapes(condition, shape) for shape in (chosen, other)))
    return Lowered(parameters={"shape": call.output.shape, "by_row": by_row, **merged})


def _looked_up(step: Step, x: np.ndarray, table: int) -> np.ndarray:
    if table < 0:
        return x
    entries, low = step.arrays["tables"][table], step["low"]
    return blockwise(lambda q: entries[q - low], [x], entries.dtype)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of bytes, with no slot: scales, zero points and NaN payloads pass through."""
    condition, chosen, other = inputs[:3]
    if "dtype" in step.parameters:
        step = prepare_late(step, inputs, _prepare)
        chosen, other = (_looked_up(step, x, table) for x, table in zip((chosen, other), step["tables"], strict=True))
    if step["by_row"]:
        condition = condition.reshape(-1, *(1,) * (chosen.ndim - 1))
    if "choice" in step.rules:
        merge, zero = choice.RULES[step.rules["choice"]], chosen.dtype.type(0)
        merged = merge(np.where(condition, chosen, zero), np.where(condition, zero, other), bool(step["exchanged"]))
        return [merged.reshape(step["shape"])]
    return [np.where(condition, chosen, other).reshape(step["shape"])]


OPERATOR = Operator(
    "select",
    ("combine", "choice"),
    infer,
    lower,
    reference,
    "one of two elements",
    roles=_ROLES,
    moves=True,
    elementwise=3,
)

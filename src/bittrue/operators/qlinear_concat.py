"""qlinear_concat and qlinear_where: tensors with scales of their own, side by side or chosen between, at one scale.

Operands of qlinear_concat: y_scale, y_zero_point, then x, scale, zero_point of every input. Of qlinear_where:
condition, x, x_scale, x_zero_point, y, y_scale, y_zero_point, z_scale, z_zero_point.

Arrays: `tables` holds 256 entries for every input whose integers change; `tables` among the parameters is the row of
each input, or -1. `concatenation` carries out steps of qlinear_concat with constant scales, and `select_v2` those of
qlinear_where that have no tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..graph import DATA_TYPES, Attribute
from ..rules import combine
from . import concatenation
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import blockwise
from .late import Prepared, Values, prepare_late, prepare_now
from .scalar_operands import check_scalars, pair


def _tables(rules: Mapping[str, str], dtype: str, values: Values, inputs: Sequence[int], output: int) -> Prepared:
    """A table for the tensor before every (scale, zero point) of `inputs`, where one is needed."""
    kind = DATA_TYPES[dtype]
    codes = np.arange(kind.minimum, kind.maximum + 1)
    rule, (scale, zero_point) = combine.RULES[rules["combine"]], pair(values, output, output + 1)
    chosen: list[int] = []
    tables: list[np.ndarray] = []
    for position in inputs:
        moved = rule(codes, *pair(values, position, position + 1), scale, zero_point, kind.minimum, kind.maximum)
        changes = not np.array_equal(moved, codes)
        chosen.append(len(tables) if changes else -1)
        tables += [moved.astype(kind.numpy)] if changes else []
    arrays = {"tables": np.stack(tables)} if tables else {}
    return {"tables": tuple(chosen), "low": kind.minimum if tables else 0}, arrays


def infer_concat(call: Call) -> list[Shape]:
    """Extents of all axes but one are equal."""
    count = len(call.inputs)
    if count < 5 or count % 3 != 2 or len(call.outputs) != 1:
        raise call.invalid("BT-NODE-ARITY", f"expected 2 inputs and 3 for every tensor, found {count}")
    check_scalars(call, range(0, count, 3), range(1, count, 3))
    parts = [call.input(position) for position in range(2, count, 3)]
    first = parts[0]
    for position in range(1, count, 3):
        if call.has(position) and call.input(position).dtype != first.dtype:
            raise call.invalid("BT-NODE-TYPE", f"zero point '{call.input(position).name}' is not of type {first.dtype}")
    for position in range(0, count, 3):
        if call.input(position).dtype != "f32":
            raise call.invalid("BT-NODE-TYPE", f"scale '{call.input(position).name}' is not of type f32")
    call.rank(first, 1, 32)
    for part in parts[1:]:
        if part.dtype != first.dtype:
            raise call.invalid("BT-NODE-TYPE", f"'{part.name}' is {part.dtype}, '{first.name}' is {first.dtype}")
    return [concatenation.joined_shape(call, parts)]


def _prepare_concat(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    return _tables(rules, known["dtype"], values, range(3, len(values), 3), 0)


def lower_concat(call: Call) -> Lowered:
    """The axis, and the tables."""
    count = len(call.inputs)
    known: dict[str, Attribute] = {
        "axis": call.axis(call.attribute("axis"), call.output.rank),
        "dtype": call.output.dtype,
    }
    operands = [position for position in range(count) if position % 3 != 2]
    parameters, arrays = prepare_now(call, operands, known, _prepare_concat)
    lowered = Lowered(parameters, arrays, scratch=call.output.size)
    return (
        lowered if parameters["late"] else replace(lowered, operator="concatenation", inputs=tuple(range(2, count, 3)))
    )


def reference_concat(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """With scales of this run."""
    return concatenation.reference(prepare_late(step, inputs, _prepare_concat), inputs[2::3])


def infer_where(call: Call) -> list[Shape]:
    """NumPy broadcasting of condition, x and y."""
    call.expect(9)
    check_scalars(call, (2, 5, 7), (3, 6, 8))
    shapes = [call.input(position).shape for position in (0, 1, 4)]
    try:
        return [tuple(np.broadcast_shapes(*shapes))]
    except ValueError:
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast together"
        ) from None


def _prepare_where(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    return _tables(rules, known["dtype"], values, (2, 5), 7)


def lower_where(call: Call) -> Lowered:
    """The tables of x and y."""
    known: dict[str, Attribute] = {"shape": call.output.shape, "by_row": False, "dtype": call.output.dtype}
    parameters, arrays = prepare_now(call, (2, 3, 5, 6, 7, 8), known, _prepare_where)
    if parameters["late"]:
        return Lowered(parameters, arrays)
    return Lowered(parameters, arrays, operator="" if arrays else "select_v2", inputs=(0, 1, 4))


def reference_where(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Both are looked up before one is chosen."""
    condition, *values = (inputs[0], inputs[1], inputs[4]) if step["late"] else inputs
    step = prepare_late(step, inputs, _prepare_where)
    for i, table in enumerate(step["tables"]):
        if table >= 0:
            lookup, low = step.arrays["tables"][table], step["low"]
            values[i] = blockwise(lambda q, t=lookup, low=low: t[q - low], [values[i]], lookup.dtype)
    return [np.where(condition, *values).reshape(step["shape"])]


OPERATORS = (
    Operator(
        "qlinear_concat",
        ("combine",),
        infer_concat,
        lower_concat,
        reference_concat,
        "inputs side by side along one axis, their scales being operands",
    ),
    Operator(
        "qlinear_where",
        ("combine",),
        infer_where,
        lower_where,
        reference_where,
        "one of two elements, their scales being operands",
        elementwise=3,
    ),
)

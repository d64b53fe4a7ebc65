"""ranged_concat: tensors with ranges side by side along one axis, at the range that holds them all.

Operands: x of every input, then minimum and maximum of every input. With known ranges `concatenation` carries the step
out, unless integers of two types meet. Arrays: `tables` holds 256 entries for every input whose integers change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..graph import DATA_TYPES, Attribute
from ..rules import range_change
from ..rules.range_levels import HALF
from . import concatenation
from .base import Call, Lowered, Operator, Shape, Step
from .late import Prepared, Values, prepare_late, prepare_now
from .range_operands import check_range, end, span, span_of
from .ranges import joined


def infer(call: Call) -> list[Shape]:
    """Extents of all axes but one are equal."""
    count, rest = divmod(len(call.inputs), 3)
    if rest or not count or len(call.outputs) != 1:
        raise call.invalid("BT-NODE-ARITY", f"expected 3 inputs for every tensor, found {len(call.inputs)}")
    parts = [call.input(position) for position in range(count)]
    check_range(call, *range(count, 3 * count))
    call.rank(parts[0], 1, 32)
    return [concatenation.joined_shape(call, parts)]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    types, output = str(known["types"]).split(), DATA_TYPES[known["dtype"]]
    first = len(types)
    ends = [end(values, position) for position in range(first, 3 * first)]
    total = span_of(*joined(list(zip(ends[::2], ends[1::2], strict=True))))
    output_levels = float(HALF[output.name])
    rule = range_change.RULES[rules["range_change"]]
    chosen: list[int] = []
    tables: list[np.ndarray] = []
    for position, name in enumerate(types):
        codes = np.arange(DATA_TYPES[name].minimum, DATA_TYPES[name].maximum + 1)
        own = span(values, first + 2 * position)
        moved = rule(codes, float(HALF[name]), own, output_levels, total, output.minimum, output.maximum)
        if name != output.name and np.array_equal(moved, codes):
            raise ValueError(f"input {position} is {name} at the scale of the result, which is {output.name}")
        changes = not np.array_equal(moved, codes)
        chosen.append(len(tables) if changes else -1)
        tables += [moved.astype(output.numpy)] if changes else []
    return {"tables": tuple(chosen), "low": output.minimum if tables else 0}, {
        "tables": np.stack(tables)
    } if tables else {}


def lower(call: Call) -> Lowered:
    """The axis, and the tables."""
    count = len(call.inputs) // 3
    types = [call.input(position).dtype for position in range(count)]
    known: dict[str, Attribute] = {
        "axis": call.axis(call.attribute("axis"), call.output.rank),
        "dtype": call.output.dtype,
        "types": " ".join(types),
    }
    parameters, arrays = prepare_now(call, range(count, 3 * count), known, _prepare)
    lowered = Lowered(parameters, arrays, scratch=call.output.size)
    if parameters["late"]:
        return lowered
    return replace(lowered, operator="concatenation", inputs=tuple(range(count)))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """With the ranges of this run."""
    return concatenation.reference(prepare_late(step, inputs, _prepare), inputs[: len(inputs) // 3])


OPERATOR = Operator(
    "ranged_concat", ("range_change",), infer, lower, reference, "inputs side by side at the range that holds them all"
)

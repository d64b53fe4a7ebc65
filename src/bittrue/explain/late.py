"""Steps whose scales and zero points are operands of the run: what the reference prepares before it adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..operators import Operator, Step, find
from ..operators.core.late import Prepared
from ..operators.core.role_quantization import at
from ..operators.layers.integer_layers import of_columns, of_rows, weight_zero_points, zero_point_of, zero_points

Inputs = Sequence["np.ndarray | None"]


def _zero_points(operator: Operator, inputs: Inputs) -> Prepared:
    first, second = (at(inputs, role.zero_point) for role in operator.roles[:2])
    if "S" in operator.weights:
        parameters, arrays = weight_zero_points(second)
        return {**parameters, "input_zero_point": zero_point_of(first)}, arrays
    rows, row_arrays = zero_points(None if first is None else of_rows(first), "input_zero_point", "input_zero_points")
    columns, column_arrays = weight_zero_points(None if second is None else of_columns(second))
    return {**rows, **columns}, {**row_arrays, **column_arrays}


def settled(step: Step, inputs: Inputs) -> Step:
    """The step with the zero points of this run, where they are operands and nothing else is."""
    operator = find(step.operator)
    if operator is None or not operator.weights or any(at(inputs, role.scale) is not None for role in operator.roles):
        return step
    if not step.parameters.get("late") or not any(role.zero_point is not None for role in operator.roles):
        return step
    parameters, arrays = _zero_points(operator, inputs)
    return replace(step, parameters={**step.parameters, **parameters, "late": False}, arrays={**step.arrays, **arrays})

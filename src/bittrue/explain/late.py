"""Steps whose scales and zero points are operands of the run: what the reference prepares before it adds up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..operators import Step
from ..operators.integer_layers import of_columns, of_rows, weight_zero_points, zero_point_of, zero_points
from ..operators.late import Prepared

Inputs = Sequence["np.ndarray | None"]


def _at(inputs: Inputs, position: int) -> np.ndarray | None:
    return inputs[position] if position < len(inputs) else None


def _convolution(inputs: Inputs) -> Prepared:
    parameters, arrays = weight_zero_points(_at(inputs, 3))
    return {**parameters, "input_zero_point": zero_point_of(_at(inputs, 2))}, arrays


def _product(inputs: Inputs) -> Prepared:
    first, second = _at(inputs, 2), _at(inputs, 3)
    rows, row_arrays = zero_points(None if first is None else of_rows(first), "input_zero_point", "input_zero_points")
    columns, column_arrays = weight_zero_points(None if second is None else of_columns(second))
    return {**rows, **columns}, {**row_arrays, **column_arrays}


# Layers that give their sums: nothing but zero points is prepared.
_LATE: dict[str, Callable[[Inputs], Prepared]] = {"conv_integer": _convolution, "matmul_integer": _product}


def settled(step: Step, inputs: Inputs) -> Step:
    """The step with the zero points of this run, where they are operands and nothing else is."""
    if not step.parameters.get("late") or step.operator not in _LATE:
        return step
    parameters, arrays = _LATE[step.operator](inputs)
    return replace(step, parameters={**step.parameters, **parameters, "late": False}, arrays={**step.arrays, **arrays})

"""What a description needs of a part of a model: both tensors with zero point, clamp, padding and distances to ties."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import BittrueError
from ..explain import accumulators, tie_distances
from ..operators import Step, find
from ..plan import Plan
from .description import Sample
from .hypotheses import Case
from .hypotheses.layers import form_of, scales_of
from .hypotheses.unrounded import unrounded

Values = Mapping[str, np.ndarray]


def samples_of(case: Case) -> list[Sample]:
    """One sample per input set."""
    plan, step = case.plan, case.step
    output = plan.tensors[step.outputs[0]]
    point = _zero_point(plan, step)
    shape = case.theirs[0].shape
    same = output.shape == shape
    padded = _padded(plan, step) if same else None
    ends = (None, None)
    if point is not None and isinstance(step.parameters.get("low"), int):
        ends = step["low"], step["high"]
    found = []
    for given, a, b in zip(case.values, case.ours, case.theirs, strict=True):
        distance = _distances(plan, step, given) if same and a.dtype.kind in "iu" else None
        found.append(Sample(a, b, point, *ends, padded, distance, _channel(plan, step)))
    return found


def _zero_point(plan: Plan, step: Step) -> int | None:
    quantization = plan.tensors[step.outputs[0]].quantization
    if quantization is not None:
        return int(quantization.zero_points[0]) if quantization.zero_points.size == 1 else None
    if isinstance(step.parameters.get("output_zero_point"), int) and scales_of(plan, step, "output") is not None:
        return int(step["output_zero_point"])
    return None


def _distances(plan: Plan, step: Step, given: Values) -> np.ndarray | None:
    """Of the exact values to the nearest tie; None where they are not known."""
    shape = plan.tensors[step.outputs[0]].shape
    try:
        if len(plan.steps) != 1:
            return None
        tensors = [None if i is None else plan.tensors[i] for i in step.inputs]
        inputs = [None if t is None else t.value if t.value is not None else given[t.name] for t in tensors]
        acc = accumulators(plan, step, inputs)
        if acc is not None:
            distance = tie_distances(step, acc)
        else:
            real = unrounded(plan, given)
            distance = None if real is None else np.abs(real.exact - np.floor(real.exact) - 0.5).astype(np.float64)
    except (BittrueError, ArithmeticError, LookupError, TypeError, ValueError):
        # Formulas of other operators meet steps that they were not made for.
        return None
    return None if distance is None or distance.size != int(np.prod(shape)) else distance.reshape(shape)


def _channel(plan: Plan, step: Step) -> int | None:
    form = form_of(plan, step)
    rank = len(plan.tensors[step.outputs[0]].shape)
    return None if form is None else rank - 1 if form.channels_last or not form.axes else 1


def _padded(plan: Plan, step: Step) -> np.ndarray | None:
    """Elements of the result whose windows reach into the padding; None for steps without windows."""
    axes = [axis for axis in "dhw" if {f"filter_{axis}", f"stride_{axis}", f"out_{axis}"} <= step.parameters.keys()]
    shape = plan.tensors[step.outputs[0]].shape
    source = plan.tensors[step.inputs[0]].shape if step.inputs and step.inputs[0] is not None else ()
    operator = find(step.operator)
    if not axes or len(shape) != len(axes) + 2 or len(source) != len(shape) or operator is None or operator.transposed:
        return None
    last = bool(step.parameters.get("channels_last"))
    found = np.zeros(shape, bool)
    for k, axis in enumerate(axes):
        place = k + (1 if last else 2)
        if step[f"out_{axis}"] != shape[place]:
            return None
        first = np.arange(shape[place]) * step[f"stride_{axis}"] - step[_FIRST[axis]]
        reach = (step[f"filter_{axis}"] - 1) * step.parameters.get(f"dilation_{axis}", 1)
        outside = (first < 0) | (first + reach >= source[place])
        found |= outside.reshape([-1 if axis_of == place else 1 for axis_of in range(len(shape))])
    return found


_FIRST = {"d": "pad_front", "h": "pad_top", "w": "pad_left"}

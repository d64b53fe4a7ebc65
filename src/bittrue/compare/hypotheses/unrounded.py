"""What a step would store before rounding: the real number that its scales and quantized values stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...graph import data_type
from ...operators import Role, Step, find
from ...operators.core.functions import IDENTITY, MEAN, Function
from ...operators.core.role_quantization import of_step
from ...plan import Plan
from .layers import carry_out
from .windows import pool_of, window_sums

Array = np.ndarray
Real = np.longdouble


@dataclass(frozen=True)
class Unrounded:
    """Real numbers in units of the quantized value, without the zero point.

    Attributes:
        exact: in the longest floating type of the machine.
        zero_point, low, high: of the stored value.
        numerator, factor: where it is so: integers and the real multiplier whose product `exact` is.
    """

    exact: Array
    zero_point: int
    low: int
    high: int
    numerator: Array | None = None
    factor: Array | None = None


def unrounded(plan: Plan, values: Mapping[str, Array]) -> Unrounded | None:
    """For plans of one element-wise, pooling or averaging step on integers; None for others."""
    step = plan.steps[-1]
    make = _formula(plan, step)
    output = plan.tensors[step.outputs[0]]
    if make is None or output.type.numpy.kind not in "iu" or step.outputs[0] != plan.outputs[0]:
        return None
    known = {i: t.value for i, t in enumerate(plan.tensors) if t.value is not None}
    known.update({i: values[plan.tensors[i].name] for i in plan.inputs})
    for before in plan.steps[:-1]:
        carry_out(before, [None if i is None else known[i] for i in before.inputs], known)
    operator = find(step.operator)
    roles = () if operator is None else operator.roles
    data = [role.position for role in roles if role.position >= 0] or range(len(step.inputs))
    quantized, scales = [], []
    for position in data:
        index = step.inputs[position] if position < len(step.inputs) else None
        if index is None:
            continue
        found = _quantization(plan, step, roles, position)
        value = known[index]
        if value.dtype.kind not in "iu" or found is None:
            # Axes of a mean, and the like.
            quantized.append(value)
            continue
        quantized.append(value.astype(np.int64) - found[1])
        scales.append(found[0])
    result = _quantization(plan, step, roles, -1)
    if result is None:
        if scales or make is not _average:
            return None
        # An average of quantized values that have no scale of their own.
        result, scales = (Real(1), 0), [Real(1)]
    numerator, factor, exact = make(step, quantized, scales, result[0], plan)
    if exact is None:
        assert numerator is not None
        assert factor is not None
        exact = numerator.astype(Real) * factor
    ends = data_type(output.dtype)
    limits = {"low": ends.minimum, "high": ends.maximum, **step.parameters}
    low, high = int(limits["low"]), int(limits["high"])  # type: ignore[arg-type]
    return Unrounded(exact, result[1], low, high, numerator, factor)


def _quantization(plan: Plan, step: Step, roles: Sequence[Role], position: int) -> tuple[Real, int] | None:
    """Scale and zero point of an input, or of the result (-1); None where it has no single known one."""
    role = next((r for r in roles if r.position == position), Role("", position))
    found = of_step(plan.tensors, step, role)
    if found.late or found.scales is None or found.scales.size != 1:
        return None
    return Real(found.scales.reshape(-1)[0]), 0 if found.zero_points is None else int(found.zero_points.reshape(-1)[0])


_Made = tuple["Array | None", "Array | None", "Array | None"]


def _sum(step: Step, quantized: list[Array], scales: list[Real], out: Real, plan: Plan) -> _Made:
    operator = find(step.operator)
    one, two = (operator.signs if operator is not None else ()) or (1, 1)
    return None, None, one * (quantized[0] * (scales[0] / out)) + two * (quantized[1] * (scales[1] / out))


def _product(step: Step, quantized: list[Array], scales: list[Real], out: Real, plan: Plan) -> _Made:
    return quantized[0] * quantized[1], np.asarray(scales[0] * scales[1] / out), None


def _one(step: Step, quantized: list[Array], scales: list[Real], out: Real, plan: Plan) -> _Made:
    if not scales:
        # Real numbers become integers: there is no scale but the output's.
        return None, None, quantized[0].astype(Real) / out
    return quantized[0], np.asarray(scales[0] / out), None


def _average(step: Step, quantized: list[Array], scales: list[Real], out: Real, plan: Plan) -> _Made:
    pool = pool_of(plan, step)
    assert pool is not None, "it is one"
    sums, counts = window_sums(quantized[0], step, pool, 0)
    if step.rules.get("window_average", "").endswith("all_taps_away"):
        counts = counts * 0 + step["filter_h"] * step["filter_w"]
    return sums, scales[0] / out / counts.astype(Real), None


def _mean(step: Step, quantized: list[Array], scales: list[Real], out: Real, plan: Plan) -> _Made:
    axes = tuple(int(a) for a in np.reshape(quantized[1] if len(quantized) > 1 else step["axes"], -1))
    sums = quantized[0].sum(axis=axes, keepdims=True)
    count = quantized[0].size // max(1, sums.size)
    return sums, np.asarray(scales[0] / out / Real(count)), None


_Make = Callable[[Step, "list[Array]", "list[Real]", Real, Plan], _Made]
# Of a whole image, an average is the mean along axes that has carried it out.
_FUNCTIONS: dict[Function | None, _Make] = {IDENTITY: _one, MEAN: _mean}
# What slots alone say of a step.
_SLOTS: dict[str, _Make] = {"affine_sum": _sum, "affine_product": _product}


def _formula(plan: Plan, step: Step) -> _Make | None:
    pool = pool_of(plan, step)
    if pool is not None:
        return _average if pool.kind == "average" else None
    operator = find(step.operator)
    if operator is None:
        return None
    if operator.signs:
        return _sum
    if "product" in operator.slots:
        return _product
    made = _FUNCTIONS.get(operator.function)
    return made or next((_SLOTS[slot] for slot in step.rules if slot in _SLOTS), None)

"""What a step would store before rounding: the real number that its scales and quantized values stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ...operators import Step
from ...plan import Plan
from .windows import window_sums

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
    if len(plan.steps) != 1:
        return None
    step = plan.steps[0]
    make = _OPERATORS.get(step.operator)
    output = plan.tensors[step.outputs[0]]
    if make is None or output.quantization is None or not {"low", "high"} <= set(step.parameters):
        return None
    codes, scales = [], []
    for index in step.inputs:
        if index is None:
            continue
        tensor = plan.tensors[index]
        value = tensor.value if tensor.value is not None else values[tensor.name]
        if value.dtype.kind not in "iu" or tensor.quantization is None or tensor.quantization.per_axis:
            # Axes of a mean, and the like.
            codes.append(value)
            continue
        codes.append(value.astype(np.int64) - int(tensor.quantization.zero_points[0]))
        scales.append(Real(tensor.quantization.scales[0]))
    out = Real(output.quantization.scales[0])
    numerator, factor, exact = make(step, codes, scales, out)
    if exact is None:
        assert numerator is not None
        assert factor is not None
        exact = numerator.astype(Real) * factor
    zero_point = int(output.quantization.zero_points[0])
    return Unrounded(exact, zero_point, int(step["low"]), int(step["high"]), numerator, factor)


def _sum(step: Step, codes: list[Array], scales: list[Real], out: Real) -> tuple[None, None, Array]:
    sign = -1 if step.operator == "sub" else 1
    return None, None, codes[0] * (scales[0] / out) + sign * (codes[1] * (scales[1] / out))


def _product(step: Step, codes: list[Array], scales: list[Real], out: Real) -> tuple[Array, Array, None]:
    return codes[0] * codes[1], np.asarray(scales[0] * scales[1] / out), None


def _one(
    step: Step, codes: list[Array], scales: list[Real], out: Real
) -> tuple[Array, Array, None] | tuple[None, None, Array]:
    if not scales:
        # Real numbers become integers: there is no scale but the output's.
        return None, None, codes[0].astype(Real) / out
    return codes[0], np.asarray(scales[0] / out), None


def _average(step: Step, codes: list[Array], scales: list[Real], out: Real) -> tuple[Array, Array, None]:
    if "channels_last" not in step.parameters:
        # A whole image, which the mean along axes has carried out.
        return _mean(step, [codes[0], np.asarray(step["axes"])], scales, out)
    sums, counts = window_sums(codes[0], step, 0)
    return sums, scales[0] / out / counts.astype(Real), None


def _mean(step: Step, codes: list[Array], scales: list[Real], out: Real) -> tuple[Array, Array, None]:
    axes = tuple(int(a) for a in np.reshape(codes[1], -1))
    sums = codes[0].sum(axis=axes, keepdims=True)
    count = codes[0].size // max(1, sums.size)
    return sums, np.asarray(scales[0] / out / Real(count)), None


_Make = Callable[[Step, "list[Array]", "list[Real]", Real], "tuple[Array | None, Array | None, Array | None]"]
_OPERATORS: dict[str, _Make] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "quantize": _one,
    "relu": _one,
    "average_pool": _average,
    "mean": _mean,
}

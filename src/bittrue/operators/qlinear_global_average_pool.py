"""qlinear_global_average_pool and qlinear_reduce_mean: exact sums along axes, rescaled and stored.

Operands: x, x_scale, x_zero_point, y_scale, y_zero_point; zero points may be absent (0). Steps with constant scales are
those of `sum` (slot `rescale`) or `mean` (slot `mean`), which carry them out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..rules import mean, rescale, scale_form
from .accumulator import proven_bound
from .base import Call, Lowered, Operator, Shape, Step
from .late import Prepared, Values, prepare_late, prepare_now
from .mean import reference_mean, reference_sum
from .roles import OPERAND_UNARY
from .scalar_operands import check_scalars, pair

_PARAMETERS = (1, 2, 3, 4)
# Multipliers that the rescaling of a global average takes, and the largest picture.
_SMALLEST, _LARGEST, _MOST = 2.0**-32, 256.0, 1 << 24


def _global_axes(call: Call) -> tuple[int, ...]:
    """All axes but the first and the channels'."""
    rank = call.input(0).rank
    if rank < 3:
        raise call.invalid("BT-SHAPE-RANK", f"a picture with channels has rank 3 or more, found {rank}")
    return tuple(range(1, rank - 1)) if call.attribute("channels_last") else tuple(range(2, rank))


def _given_axes(call: Call) -> tuple[int, ...]:
    """The axes that the attribute names, all of them when it is empty."""
    rank = call.input(0).rank
    return tuple(sorted({call.axis(axis, rank) for axis in call.attribute("axes")})) or tuple(range(rank))


def _axes(call: Call) -> tuple[int, ...]:
    return (_given_axes if call.node.operator == "qlinear_reduce_mean" else _global_axes)(call)


def infer(call: Call) -> list[Shape]:
    """Averaged axes keep an extent of 1, or disappear without `keep_dims`."""
    call.expect((4, 5))
    check_scalars(call, (1, 3), (2, 4))
    axes, kept = _axes(call), call.attribute("keep_dims")
    shape = call.input(0).shape
    if any(shape[axis] == 0 for axis in axes):
        raise call.invalid("BT-REDUCE-EMPTY", f"shape {list(shape)} has nothing to average along {list(axes)}")
    return [tuple(1 if i in axes else extent for i, extent in enumerate(shape) if kept or i not in axes)]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    (scale, zero_point), (output_scale, output_zero_point) = pair(values, 1, 2), pair(values, 3, 4)
    count = known["count"]
    parameters = {"total_zero_point": zero_point * count, "output_zero_point": output_zero_point}
    if "mean" in rules:
        prepare = mean.RULES[rules["mean"]].prepare_scales
        assert prepare is not None, "a rule for two scales"
        return parameters, prepare(float(scale), float(output_scale), count, zero_point, output_zero_point)
    real = float(scale_form.form(rules["scale_form"], scale, count, output_scale))
    if not _SMALLEST <= real < _LARGEST:
        raise ValueError(f"the scales give the multiplier {real!r}, at least 2^-32 and less than 256 is possible")
    return parameters, rescale.prepare(rules["rescale"], real)


def lower(call: Call) -> Lowered:
    """The multiplier with the count in it."""
    source, output, axes = call.input(0), call.output, _axes(call)
    count = math.prod(source.shape[axis] for axis in axes)
    if "rescale" in call.rules and count >= _MOST:
        raise call.invalid("BT-REDUCE-LARGE", f"{count:,} elements per average, less than {_MOST:,} is possible")
    parameters, arrays = prepare_now(
        call,
        _PARAMETERS,
        {
            "axes": axes,
            "shape": output.shape,
            "count": count,
            "low": output.type.minimum,
            "high": output.type.maximum,
        },
        _prepare,
    )
    bound = proven_bound(call, count, 255, None)
    lowered = Lowered(parameters, arrays, bound, work=source.size, scratch=32 * output.size)
    if parameters["late"]:
        return lowered
    return replace(lowered, operator="mean" if "mean" in call.rules else "sum", inputs=(0,))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """With scales of this run."""
    step = replace(prepare_late(step, inputs, _prepare), inputs=step.inputs[:1])
    return (reference_mean if "mean" in step.rules else reference_sum)(step, inputs[:1])


_SLOTS = ("accumulate", "scale_form", "rescale", "mean", "store")
OPERATORS = (
    Operator(
        "qlinear_global_average_pool",
        _SLOTS,
        infer,
        lower,
        reference,
        "average of whole pictures whose scales are operands",
        roles=OPERAND_UNARY,
    ),
    Operator(
        "qlinear_reduce_mean",
        _SLOTS,
        infer,
        lower,
        reference,
        "average along axes of a tensor whose scales are operands",
        reduces=True,
    ),
)

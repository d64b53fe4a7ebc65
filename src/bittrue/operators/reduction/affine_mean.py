"""Means of quantized numbers along axes whose scales are operands: exact sums, rescaled and stored.

Operands from some position on: x_scale, x_zero_point, y_scale, y_zero_point; zero points may be absent (0). Steps with
constant scales read x alone, as those with scales of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Attribute
from ...records import replace
from ...rules import mean, rescale, scale_form
from ..core.accumulator import proven_bound
from ..core.base import Call, Lowered, Step
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.scalar_operands import pair

# Multipliers that the rescaling of whole images takes, and the largest image.
_SMALLEST, _LARGEST, _MOST = 2.0**-32, 256.0, 1 << 24


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    first, count = known["scales_at"], known["count"]
    (scale, zero_point), (output_scale, output_zero_point) = (pair(values, at, at + 1) for at in (first, first + 2))
    parameters = {"total_zero_point": zero_point * count, "output_zero_point": output_zero_point}
    if "mean" in rules:
        prepare = mean.RULES[rules["mean"]].prepare_scales
        assert prepare is not None, "a rule for two scales"
        return parameters, prepare(float(scale), float(output_scale), count, zero_point, output_zero_point)
    real = float(scale_form.form(rules["scale_form"], scale, count, output_scale))
    if not _SMALLEST <= real < _LARGEST:
        raise ValueError(f"the scales give the multiplier {real!r}, at least 2^-32 and less than 256 is possible")
    return parameters, rescale.prepare(rules["rescale"], real)


def lower(call: Call, axes: tuple[int, ...], first: int) -> Lowered:
    """The multiplier with the count in it; scales stand at input `first` and behind it."""
    source, output = call.input(0), call.output
    if any(source.shape[axis] == 0 for axis in axes):
        raise call.invalid("BT-REDUCE-EMPTY", f"shape {list(source.shape)} has nothing to average along {list(axes)}")
    count = math.prod(source.shape[axis] for axis in axes)
    if "rescale" in call.rules and count >= _MOST:
        raise call.invalid("BT-REDUCE-LARGE", f"{count:,} elements per average, less than {_MOST:,} is possible")
    known: dict[str, Attribute] = {
        "axes": axes,
        "shape": output.shape,
        "count": count,
        "scales_at": first,
        "low": output.type.minimum,
        "high": output.type.maximum,
    }
    parameters, arrays = prepare_now(call, range(first, first + 4), known, _prepare)
    return Lowered(
        parameters,
        arrays,
        proven_bound(call, count, 255, None),
        work=source.size,
        scratch=32 * output.size,
        inputs=None if parameters["late"] else (0,),
    )


def settled(step: Step, inputs: Sequence[np.ndarray]) -> Step:
    """The step with scales of this run, which reads x alone."""
    step = prepare_late(step, inputs, _prepare)
    return replace(step, inputs=step.inputs[:1], parameters={**step.parameters, "late": False})

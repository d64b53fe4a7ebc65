"""qlinear_average_pool: the average over windows of a quantized tensor [N, C, ...] or [N, ..., C].

Operands: x, x_scale, x_zero_point, y_scale, y_zero_point; zero points may be absent (0). With constant scales the step
reads x alone. Padding adds nothing to the sum; it counts as elements with `count_include_pad`. Rules of slot `rescale`
are for windows that are the whole picture, without padding: then it is qlinear_global_average_pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ..graph import DATA_TYPES
from ..rules import affine_average
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import Window, counts, spatial_bytes, spatial_parameters, spatial_shape, step_windows, tap_count
from .late import Prepared, Values, prepare_late, prepare_now
from .qlinear_global_average_pool import lower as lower_global
from .roles import OPERAND_UNARY
from .scalar_operands import check_scalars, pair
from .spatial import padded, sliding, spatial_windows

_PARAMETERS = (1, 2, 3, 4)


def _channels_first(call: Call) -> Shape:
    shape = call.input(0).shape
    return (shape[0], shape[-1], *shape[1:-1]) if call.attribute("channels_last") else shape


def _windows(call: Call) -> tuple[Window, ...]:
    if call.input(0).rank < 3:
        raise call.invalid("BT-SHAPE-RANK", f"a picture with channels has rank 3 or more, found {call.input(0).rank}")
    if not _channels_first(call)[1]:
        raise call.invalid("BT-WINDOW", f"shape {list(call.input(0).shape)} has no channels; only a batch may be empty")
    return spatial_windows(call, _channels_first(call), call.attribute("kernel_shape"), pooling=True)


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] gives [N, C, ...'], and [N, ..., C] gives [N, ...', C]."""
    call.expect((4, 5))
    check_scalars(call, (1, 3), (2, 4))
    shape, out = call.input(0).shape, spatial_shape(_windows(call))
    return [(shape[0], *out, shape[-1]) if call.attribute("channels_last") else (*shape[:2], *out)]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = affine_average.RULES[rules["affine_average"]]
    return {}, rule.prepare(pair(values, 1, 2), pair(values, 3, 4), known["low"], known["high"])


def lower(call: Call) -> Lowered:
    """The geometry, and a summand per stored integer."""
    if "rescale" in call.rules:
        whole = lower_global(call)
        return replace(whole, operator=whole.operator or "qlinear_global_average_pool")
    windows, output = _windows(call), call.output
    parameters, arrays = prepare_now(
        call,
        _PARAMETERS,
        {
            **spatial_parameters(windows),
            "channels_last": bool(call.attribute("channels_last")),
            "count_include_pad": bool(call.attribute("count_include_pad")),
            "low": output.type.minimum,
            "high": output.type.maximum,
            "dtype": output.dtype,
        },
        _prepare,
    )
    planes = _channels_first(call)[1]
    return Lowered(
        parameters,
        arrays,
        work=output.size * tap_count(windows),
        scratch=spatial_bytes(windows, planes, 8) + 32 * output.size,
        inputs=None if parameters["late"] else (0,),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums tap by tap, picture by picture."""
    step = prepare_late(step, inputs, _prepare)
    x = np.moveaxis(inputs[0], -1, 1) if step["channels_last"] else inputs[0]
    windows = step_windows(step, x.shape[2:])
    rule, values, low = affine_average.RULES[step.rules["affine_average"]], step.arrays["values"], step["low"]
    divisors = counts(windows, "taps" if step["count_include_pad"] else "inside")
    pictures = x.reshape(*x.shape[:2], *(one.extent for one in windows))
    out = np.empty((*x.shape[:2], *(one.out for one in windows)), DATA_TYPES[step["dtype"]].numpy)
    for n in range(len(pictures) if out.size else 0):
        view = sliding(padded(values[pictures[n].astype(np.intp) - low], windows, 0), windows)
        total = np.zeros(out.shape[1:], values.dtype)
        with np.errstate(all="ignore"):
            for tap in product(*(range(one.taps) for one in windows)):
                place: tuple[Any, ...] = (..., *tap)
                total += view[place]
        out[n] = rule.finish(total, divisors, step.arrays, low, step["high"])
    out = out.reshape(*x.shape[:2], *(one.out for one in windows[3 - (x.ndim - 2) :]))
    return [np.ascontiguousarray(np.moveaxis(out, 1, -1)) if step["channels_last"] else out]


OPERATOR = Operator(
    "qlinear_average_pool",
    ("affine_average", "accumulate", "scale_form", "rescale", "store"),
    infer,
    lower,
    reference,
    "average over windows of a tensor whose scales are operands",
    roles=OPERAND_UNARY,
)

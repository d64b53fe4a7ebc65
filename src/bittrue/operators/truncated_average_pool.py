"""truncated_average_pool: sums over windows of a picture padded with 0, divided by a count, cut off toward zero.

Input s32 [N, H, W, C] (`channels_last`) or [N, C, H, W]; the quotient is clamped to the output's type. Attributes:
`pool_size`, `strides`, `dilation` (vertical, horizontal), `padding` (top, left, bottom, right), `ceil_mode` (as many
windows as begin within stride - 1 of the last one that fits), `count_include_pad`: whether the count is that of taps
inside of the padded picture, or inside of the picture alone (at least 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import DATA_TYPES
from ..rules import average
from .accumulator import finish_accumulator
from .base import Bound, Call, Lowered, Operator, Shape, Step
from .geometry import Window, counts, spatial_parameters, step_windows, tap_count, windows

_MOST_TAPS = 1 << 20


def _windows(call: Call) -> tuple[Window, ...]:
    """The vertical and the horizontal window."""
    shape = call.input(0).shape
    kernel, strides, dilations, pads = (call.attribute(n) for n in ("pool_size", "strides", "dilation", "padding"))
    size = "ceil" if call.attribute("ceil_mode") else "floor"
    return windows(call, [shape[axis] for axis in _axes(call)], kernel, strides, dilations, pads, size=size)


def _axes(call: Call) -> tuple[int, int]:
    return (1, 2) if call.attribute("channels_last") else (2, 3)


def infer(call: Call) -> list[Shape]:
    """The picture's axes hold as many elements as windows."""
    call.expect(1)
    source = call.input(0)
    call.rank(source, 4)
    shape = list(source.shape)
    for axis, one in zip(_axes(call), _windows(call), strict=True):
        shape[axis] = one.out
    return [tuple(shape)]


def lower(call: Call) -> Lowered:
    """Geometry, the counts and the bound of the sums."""
    source, found, padding = call.input(0), _windows(call), bool(call.attribute("count_include_pad"))
    # The system cuts its quotient off toward zero, so a window may begin behind the padding by less than a dilation.
    behind = (one.reached - one.reach - one.before - (one.extent + one.after - 1) for one in found)
    if padding and any(distance >= one.dilation for distance, one in zip(behind, found, strict=True)):
        raise call.invalid(
            "BT-WINDOW", "a window lies outside of the padded picture: it would be divided by 0", "clear ceil_mode"
        )
    taps = tap_count(found)
    if taps > _MOST_TAPS:
        raise call.unsupported("BT-WINDOW", f"a window of {taps:,} taps, at most {_MOST_TAPS:,} are possible")
    magnitude = taps * max(-source.type.minimum, source.type.maximum)
    return Lowered(
        {
            "axes": _axes(call),
            **spatial_parameters(found),
            "low": call.output.type.minimum,
            "high": call.output.type.maximum,
            "dtype": call.output.dtype,
        },
        {"counts": np.maximum(counts(found, "padded" if padding else "inside"), 1)},
        Bound(magnitude, magnitude > 2**31 - 1),
        call.output.size * taps,
        16 * (source.size + call.output.size),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Tap by tap over whole pictures."""
    x = np.moveaxis(inputs[0], step["axes"], (0, 1))
    _, vertical, horizontal = step_windows(step, x.shape[:2])
    total = np.zeros((vertical.out, horizontal.out, *x.shape[2:]), np.int64)
    for u in vertical.taps_met() if total.size else ():
        rows, from_rows = vertical.met(u)
        for v in horizontal.taps_met():
            columns, from_columns = horizontal.met(v)
            total[rows, columns] += x[from_rows, from_columns]
    total = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
    counts = step.arrays["counts"].reshape(*total.shape[:2], *(1,) * (total.ndim - 2))
    quotient = np.clip(average.RULES[step.rules["average"]](total, counts), step["low"], step["high"])
    return [np.ascontiguousarray(np.moveaxis(quotient.astype(DATA_TYPES[step["dtype"]].numpy), (0, 1), step["axes"]))]


OPERATOR = Operator(
    "truncated_average_pool",
    ("accumulate", "average"),
    infer,
    lower,
    reference,
    "averages of windows, cut off, padding counted or not",
)

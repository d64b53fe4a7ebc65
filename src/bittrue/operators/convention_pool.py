"""convention_max_pool and convention_average_pool: pools over [N, C, ...] whose output extents follow a convention.

Attributes: `kernel`, `strides`, `pads` (one number per spatial axis, for both sides), `size` (how many windows there
are: see `geometry`), `whole` (the window is the picture); of averages `count_include_pad`. The largest element of a
window that lies behind the picture is the lowest one of the type. `max_pool`, `qlinear_average_pool` and, for real
numbers, `average_pool` carry the steps out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..graph import Attribute
from ..rules import affine_average
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import Window, spatial_bytes, spatial_parameters, spatial_shape, tap_count, windows
from .spatial_pool import reference_average, reference_max


def _windows(call: Call) -> tuple[Window, ...]:
    x = call.input(0)
    call.rank(x, 3, 5)
    extents, kernel, pads = x.shape[2:], tuple(call.attribute("kernel")), tuple(call.attribute("pads"))
    whole = bool(call.attribute("whole"))
    taps, padding = (kernel or extents, "explicit") if whole else (kernel, "explicit_below_taps")
    size = "floor" if whole else str(call.attribute("size"))
    found = windows(call, extents, taps, call.attribute("strides"), (), (*pads, *pads), padding, size)
    return windows(call, extents, extents) if whole else found


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] gives [N, C, ...']."""
    call.expect(1)
    return [(*call.input(0).shape[:2], *spatial_shape(_windows(call)))]


def _geometry(call: Call, windows: Sequence[Window]) -> dict[str, Attribute]:
    return {
        **spatial_parameters(windows),
        "output_shape": call.output.shape,
        "after": tuple(one.after for one in windows),
    }


def lower_max(call: Call) -> Lowered:
    """As max_pool."""
    windows, shape = _windows(call), call.input(0).shape
    work = call.output.size * tap_count(windows)
    scratch = 2 * spatial_bytes(windows, math.prod(shape[:2]), 8) + 24 * work
    return Lowered(_geometry(call, windows), work=work, scratch=scratch, operator="max_pool")


def lower_average(call: Call) -> Lowered:
    """As qlinear_average_pool or, of real numbers, average_pool; padding counts for whole windows."""
    windows, x, output = _windows(call), call.input(0), call.output
    taps = tap_count(windows)
    counted = bool(call.attribute("count_include_pad"))
    if not counted and any(one.behind for one in windows):
        raise call.invalid(
            "BT-WINDOW", "the last window lies behind the picture: no element counts", "use the convention 'valid'"
        )
    work = output.size * taps
    if "real_sum" in call.rules:
        parameters = _geometry(call, windows) | {"count_include_pad": int(counted), "order": "in_order", "full": True}
        scratch = 2 * spatial_bytes(windows, math.prod(x.shape[:2]), 8) + 24 * work
        return Lowered(parameters, work=work, scratch=scratch, operator="average_pool")
    if taps * max(-x.type.minimum, x.type.maximum) >= 2**31:
        raise call.unsupported("BT-WINDOW", f"sums over {taps} elements do not fit 32 bits")
    rule = affine_average.RULES[call.rules["affine_average"]]
    arrays = rule.prepare((1.0, 0), (1.0, 0), output.type.minimum, output.type.maximum)
    parameters = spatial_parameters(windows) | {
        "channels_last": False,
        "count_include_pad": counted,
        "low": output.type.minimum,
        "high": output.type.maximum,
        "dtype": output.dtype,
        "late": False,
    }
    scratch = spatial_bytes(windows, x.shape[1], 8) + 32 * output.size
    return Lowered(parameters, arrays, work=work, scratch=scratch, operator="qlinear_average_pool")


def _largest(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return reference_max(step, inputs)[:1]


OPERATORS = (
    Operator(
        "convention_max_pool",
        (),
        infer,
        lower_max,
        _largest,
        "largest element of windows by a convention",
        compares=True,
    ),
    Operator(
        "convention_average_pool",
        ("affine_average", "real_sum"),
        infer,
        lower_average,
        reference_average,
        "average of windows by a convention",
    ),
)

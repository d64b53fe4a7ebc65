"""average_levels and max_levels: windows over the stored numbers of [N, C, H, W].

Attributes: `kernel` (height, width; empty: the whole picture), `strides`, `pads` (top, left, bottom, right), `padding`
and `size` (rules: see `geometry`); of averages also `count_padding` and scales and zero points in binary64. A window of
an average ends with the padding behind the picture; padding counts with `count_padding`, and adds stored zeros.
max_levels is done as max_pool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ..graph import DATA_TYPES
from ..rules import window_levels
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import LARGEST, Window, counts, spatial_bytes, spatial_parameters, step_windows, tap_count, windows
from .level_storage import limits, pair, scale_and_zero_point, store, undefined
from .spatial import padded, sliding

_F32 = np.float32
# Which taps count, without and with `count_padding`.
_COUNTED = ("inside", "padded")


def _pair_of(call: Call, name: str, count: int = 2) -> tuple[int, ...]:
    given = tuple(int(v) for v in call.attribute(name))
    if len(given) != count:
        raise call.invalid("BT-WINDOW", f"attribute '{name}' has {len(given)} entries, expected {count}")
    return given


def _windows(call: Call) -> tuple[Window, ...]:
    """The vertical and the horizontal window; typed errors for what the runtime refuses."""
    source = call.input(0)
    call.rank(source, 4)
    extents, pads = source.shape[2:], _pair_of(call, "pads", 4)
    kernel = tuple(call.attribute("kernel")) or extents
    if max(kernel) > LARGEST:
        raise call.invalid("BT-WINDOW", f"window {list(kernel)} is out of range")
    rules = str(call.attribute("padding")), str(call.attribute("size"))
    return windows(call, extents, kernel, _pair_of(call, "strides"), (), pads, *rules)


def infer(call: Call) -> list[Shape]:
    """[N, C, H, W] gives [N, C, H', W']."""
    call.expect(1)
    return [(*call.input(0).shape[:2], *(one.out for one in _windows(call)))]


def lower_average(call: Call) -> Lowered:
    """Geometry and scales."""
    found, padding = _windows(call), bool(call.attribute("count_padding"))
    if not counts(found, _COUNTED[padding]).all():
        raise call.unsupported(
            "BT-WINDOW-EMPTY",
            f"a window over {[one.taps for one in found]} lies beside the picture {list(call.input(0).shape[2:])}",
            "the runtime divides by 0 or by a negative count there; choose ceil_mode or pads without such windows",
        )
    parameters = {
        **spatial_parameters(found),
        **limits(call),
        **scale_and_zero_point(call, "input"),
        **scale_and_zero_point(call, "output"),
        "count_padding": padding,
        "channels_last": False,
    }
    return Lowered(
        parameters,
        work=call.output.size * tap_count(found),
        scratch=spatial_bytes(found, call.input(0).shape[1], 4) + 32 * call.output.size,
    )


def reference_average(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums tap by tap in binary32, picture by picture."""
    x = np.moveaxis(inputs[0], -1, 1) if step["channels_last"] else inputs[0]
    windows = step_windows(step, x.shape[2:])
    count = counts(windows[1:], _COUNTED[step["count_padding"]])
    rule, dtype = window_levels.RULES[step.rules["window_levels"]], DATA_TYPES[step["dtype"]].numpy
    out = np.empty((*x.shape[:2], windows[1].out, windows[2].out), dtype)
    for n in range(x.shape[0] if out.size else 0):
        # What a window reaches behind the padding is left out: nothing is there to be added.
        view = sliding(padded(x[n][:, None].astype(_F32), windows, 0), windows)
        total = np.zeros((x.shape[1], 1, windows[1].out, windows[2].out), _F32)
        with np.errstate(all="ignore"):
            for tap in product(*(range(one.taps) for one in windows)):
                place: tuple[Any, ...] = (..., *tap)
                total += view[place]
        try:
            levels = rule.apply(total[:, 0], count, pair(step, "input"), pair(step, "output"))
        except ValueError as error:
            raise undefined(str(error), step.place) from None
        out[n] = store(levels, step["low"], step["high"], dtype, step.place)
    return [np.ascontiguousarray(np.moveaxis(out, 1, -1)) if step["channels_last"] else out]


def lower_max(call: Call) -> Lowered:
    """The step of max_pool, which takes the lowest number where a window holds nothing."""
    found = _windows(call)
    if call.input(0).type.is_integer and not counts(found).all():
        raise call.unsupported(
            "BT-WINDOW-EMPTY",
            "a window lies beside the picture, where the runtime gives the lowest binary32 number",
            "choose ceil_mode or pads without such windows",
        )
    parameters = {
        **spatial_parameters(found),
        "output_shape": call.output.shape,
        "after": tuple(one.after for one in found),
    }
    work = call.output.size * tap_count(found)
    return Lowered(
        parameters,
        work=work,
        scratch=2 * spatial_bytes(found, math.prod(call.input(0).shape[:2]), 8) + 24 * work,
        operator="max_pool",
    )


def reference_max(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """max_pool carries the step out."""
    from .spatial_pool import reference_max as done

    return done(step, inputs)[:1]


OPERATORS = (
    Operator(
        "average_levels",
        ("window_levels",),
        infer,
        lower_average,
        reference_average,
        "average over windows of stored numbers, as levels of another scale",
    ),
    Operator("max_levels", (), infer, lower_max, reference_max, "largest stored number of a window", compares=True),
)

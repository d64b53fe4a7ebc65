"""average_levels and max_levels: windows over the stored numbers of [N, C, H, W].

Attributes: `kernel` (height, width; empty: the whole picture), `strides`, `pads` (top, left, bottom, right), `same`
(pads by the extent instead), `ceil_mode`; of averages also `count_padding` and scales and zero points in binary64.

span = extent + before + after - taps; out = floor or ceil of f32(span) / f32(stride), plus 1, less one where pads are
given and the last window would begin behind the picture or the padding before it. A window of an average ends with the
padding behind the picture; padding counts with `count_padding`, and adds stored zeros. max_levels is done as max_pool.
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
from .geometry import LARGEST, Window
from .level_storage import limits, pair, scale_and_zero_point, store, undefined
from .spatial import padded, sliding, spatial_bytes, spatial_parameters, step_windows

_F32 = np.float32


def _pair_of(call: Call, name: str, count: int = 2) -> tuple[int, ...]:
    given = tuple(int(v) for v in call.attribute(name))
    if len(given) != count:
        raise call.invalid("BT-WINDOW", f"attribute '{name}' has {len(given)} entries, expected {count}")
    return given


def _same_pads(extent: int, taps: int, stride: int) -> tuple[int, int]:
    total = max(0, taps - (extent % stride or stride))
    return total // 2, total - total // 2


def _windows(call: Call) -> tuple[Window, Window]:
    """The vertical and the horizontal window; typed errors for what the runtime refuses."""
    source = call.input(0)
    call.rank(source, 4)
    extents = source.shape[2:]
    kernel = tuple(int(v) for v in call.attribute("kernel")) or extents
    strides, pads, same = _pair_of(call, "strides"), _pair_of(call, "pads", 4), bool(call.attribute("same"))
    round_up, clips = bool(call.attribute("ceil_mode")), any(pads)
    if len(kernel) != 2 or min(kernel) < 1 or not 1 <= min(strides) <= max(strides) <= LARGEST:
        raise call.invalid("BT-WINDOW", f"a window of {list(kernel)} moved by {list(strides)} is none")
    if min(pads) < 0 or max(pads) > LARGEST or max(kernel) > LARGEST:
        raise call.invalid("BT-WINDOW", f"padding {list(pads)} or window {list(kernel)} is out of range")
    found = []
    for axis, name in enumerate(("height", "width")):
        extent, taps, stride, before, after = extents[axis], kernel[axis], strides[axis], pads[axis], pads[axis + 2]
        if extent < 1:
            raise call.invalid("BT-WINDOW", f"shape {list(source.shape)} has no pixels")
        if same:
            before, after = _same_pads(extent, taps, stride)
            out = -(-extent // stride)
        else:
            steps = _F32(extent + before + after - taps) / _F32(stride)
            out = int(np.ceil(steps) if round_up else np.floor(steps)) + 1
        if clips and (out - 1) * stride >= extent + before:
            out -= 1
            if (out - 1) * stride >= extent + before:
                raise call.invalid("BT-WINDOW", f"two windows begin behind {name} {extent} padded by {before}")
        if out < 1:
            raise call.invalid("BT-WINDOW", f"a window over {taps} does not fit {name} {extent} padded by {before}")
        found.append(Window(extent, taps, stride, 1, before, after, out))
    return found[0], found[1]


def infer(call: Call) -> list[Shape]:
    """[N, C, H, W] gives [N, C, H', W']."""
    call.expect(1)
    return [(*call.input(0).shape[:2], *(one.out for one in _windows(call)))]


def _ends(one: Window) -> tuple[np.ndarray, np.ndarray]:
    """Where windows begin, padding before the picture being negative, and where they end."""
    start = np.arange(one.out, dtype=np.int64) * one.stride - one.before
    return start, np.minimum(start + one.taps, one.extent + one.after)


def _inside(one: Window) -> np.ndarray:
    """Pixels of every window."""
    start, end = _ends(one)
    return np.minimum(end, one.extent) - np.maximum(start, 0)


def _counted(one: Window, padding: bool) -> np.ndarray:
    start, end = _ends(one)
    return end - start if padding else _inside(one)


def lower_average(call: Call) -> Lowered:
    """Geometry and scales."""
    windows, padding = _windows(call), bool(call.attribute("count_padding"))
    if any((_counted(one, padding) < 1).any() for one in windows):
        raise call.unsupported(
            "BT-WINDOW-EMPTY",
            f"a window over {[one.taps for one in windows]} lies beside the picture {list(call.input(0).shape[2:])}",
            "the runtime divides by 0 or by a negative count there; choose ceil_mode or pads without such windows",
        )
    parameters = {
        **spatial_parameters(windows),
        **limits(call),
        **scale_and_zero_point(call, "input"),
        **scale_and_zero_point(call, "output"),
        "count_padding": padding,
        "channels_last": False,
    }
    taps = math.prod(one.taps for one in windows)
    return Lowered(
        parameters,
        work=call.output.size * taps,
        scratch=spatial_bytes(windows, call.input(0).shape[1], 4) + 32 * call.output.size,
    )


def reference_average(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums tap by tap in binary32, picture by picture."""
    x = np.moveaxis(inputs[0], -1, 1) if step["channels_last"] else inputs[0]
    windows = step_windows(step, x.shape)
    count = _counted(windows[1], step["count_padding"])[:, None] * _counted(windows[2], step["count_padding"])
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
    windows = _windows(call)
    if call.input(0).type.is_integer and any((_inside(one) < 1).any() for one in windows):
        raise call.unsupported(
            "BT-WINDOW-EMPTY",
            "a window lies beside the picture, where the runtime gives the lowest binary32 number",
            "choose ceil_mode or pads without such windows",
        )
    parameters = {
        **spatial_parameters(windows),
        "output_shape": call.output.shape,
        "after": tuple(one.after for one in windows),
    }
    taps = math.prod(one.taps for one in windows)
    return Lowered(
        parameters,
        work=call.output.size * taps,
        scratch=2 * spatial_bytes(windows, math.prod(call.input(0).shape[:2]), 8) + 24 * call.output.size * taps,
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
    Operator("max_levels", (), infer, lower_max, reference_max, "largest stored number of a window"),
)

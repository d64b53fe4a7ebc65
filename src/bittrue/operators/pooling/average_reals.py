"""Averages of windows of real numbers by rules of the slot `real_sum`, and lengths of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import real_sum
from ..core.base import Call, Lowered, Step
from ..core.geometry import Window, counts, spatial_bytes, tap_count
from ..core.spatial import padded, sliding
from .pooling import Images, counted, pool_windows, step_geometry

# Largest window of the vector kernels along an axis, and the largest padded row that they hold.
_SMALL, _ROW = 32, 2048 - 8
# Of a block, where a node does not say otherwise.
CHANNELS = 16
# From this version of the operator on, windows may be dilated, and only images in blocks of channels use vectors.
_LATEST_VECTORS = 18


def _way(call: Call, windows: Sequence[Window]) -> tuple[str, str]:
    """The order of a rule that has one, and which taps count."""
    x, which = call.input(0), counted(call)
    block = call.node.attributes.get("block", CHANNELS)
    assert isinstance(block, int)
    blocked = x.rank == 4 and block != 0 and x.shape[1] % block == 0 and not call.node.attributes.get("planes")
    # Padding counts where windows reach beyond it.
    ends_late = call.attribute("size") == "ceil_clipped" and which == "padded"
    rule = real_sum.RULES[call.rules["real_sum"]]
    if rule.every_tap:
        return ("wide", which) if ends_late else ("in_order", "taps" if which == "padded" else which)
    if not rule.ordered:
        return "in_order", which
    if not call.attribute("kernel"):
        return "in_order" if blocked else "lanes", which
    vectors = not blocked and call.node.version <= _LATEST_VECTORS and not ends_late
    order = "in_order"
    if vectors and is_plain_whole(windows):
        order = "lanes"
    elif vectors and fits_vectors(windows):
        order = "columns"
    full = which == "padded" and (vectors or (blocked and not ends_late))
    return order, "taps" if full else which


def is_plain_whole(windows: Sequence[Window]) -> bool:
    """Whether the only window is the image, without steps and padding."""
    return all(one.taps == one.size and one.stride == 1 and not one.before and not one.after for one in windows)


def fits_vectors(windows: Sequence[Window]) -> bool:
    """Whether vector kernels, which know neither single axes nor long steps, hold windows and a padded row."""
    last = windows[-1]
    small = len(windows) > 1 and last.stride <= 2 and all(one.taps <= _SMALL for one in windows)
    return small and last.before + last.after + last.size <= _ROW


def lower(call: Call) -> Lowered:
    """Geometry, the order of sums, and what they are divided by."""
    windows = pool_windows(call)
    order, which = _way(call, windows)
    return lowered(call, windows, {"order": order, "counted": which})


def lowered(call: Call, windows: Sequence[Window], more: dict[str, str | int]) -> Lowered:
    """A step that looks at all taps of all windows at once."""
    work = call.output.size * tap_count(windows)
    return Lowered(
        {**step_geometry(call, windows), **more},
        work=work,
        scratch=2 * spatial_bytes(windows, math.prod(call.input(0).shape[:2]), 8) + 24 * work,
    )


def _from_first(step: Step, x: np.ndarray) -> bool:
    """Whether sums of columns begin with their first row: in planes, not in volumes."""
    return step.parameters.get("order") == "columns" and x.ndim == 4


def rows(step: Step, x: np.ndarray) -> tuple[np.ndarray, tuple[Window, ...]]:
    """The taps of every window of every channel, [windows, taps], and the windows."""
    images = Images(step, x)
    columns = _from_first(step, x)
    # Missing rows change no sum of columns, not even one of -0; missing columns are 0.
    planes = padded(images.planes(), images.windows, -0.0 if columns else 0)
    if columns:
        first = max(0, images.windows[-1].before)
        planes[..., :first] = 0
        planes[..., first + images.windows[-1].size :] = 0
    view = sliding(planes, images.windows)
    return view.reshape(-1, tap_count(images.windows)), images.windows


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's sum of what lies inside, over the number of taps that count."""
    images = Images(step, inputs[0])
    out = images.empty(inputs[0].dtype)
    if out.size:
        taps, windows = rows(step, inputs[0])
        planes = out.shape[0] * out.shape[-1 if step["channels_last"] else 1]
        divisors = np.broadcast_to(counts(windows, step["counted"]), (planes, *(one.out for one in windows))).reshape(
            -1
        )
        total = real_sum.RULES[step.rules["real_sum"]].reductions["sum"]
        way = real_sum.Way(step["order"], width=windows[2].taps)
        if not _from_first(step, inputs[0]):
            # Sums begin with 0, which only -0 alone shows.
            taps = taps + taps.dtype.type(0)
        out = images.of_planes(total(taps, divisors.astype(np.float64), way))
    return [images.result(out)]

"""max_pool: the largest element of every window, and where it is.

Attributes are those of `pooling`, and `storage_order` for positions. `outside` ``"edge"``: windows beside the image
read its edge. With the attribute `grid`, images hold smaller ones (`max_over_grid`). With a rule of the slot `extreme`,
which of NaN and equal zeros is kept follows from the way that `ordered_maxima` finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import plain_range
from ..core.base import Call, Lowered, Operator, Role, Shape, Step
from ..core.geometry import Window, spatial_bytes, step_windows, tap_count
from ..core.spatial import padded, sliding
from . import max_over_grid, ordered_maxima, pooling
from .pooling import Images, image_scratch, limits, met, pool_windows, step_geometry


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] gives [N, C, ...'], and [N, ..., C] gives [N, ...', C], for each output."""
    return max_over_grid.infer(call) if "grid" in call.node.attributes else pooling.infer(call)


def lower(call: Call) -> Lowered:
    """Geometry and clamps."""
    if "grid" in call.node.attributes:
        return max_over_grid.lower(call)
    found, shape = pool_windows(call), call.input(0).shape
    parameters = {**step_geometry(call, found), **limits(call, wraps=True)}
    for name in ("outside", "storage_order"):
        if call.node.attributes.get(name):
            parameters[name] = call.attribute(name)
    if "extreme" in call.rules:
        parameters["way"] = ordered_maxima.way(call, found)
    # Maxima have the type of what they are found in.
    scratch, taps = image_scratch(call) // 8 * call.output.type.numpy.itemsize, tap_count(found)
    if len(call.outputs) > 1:
        if parameters["channels_last"]:
            raise call.unsupported("BT-POOL-POSITIONS", "positions of largest elements where channels lie last")
        scratch += 2 * spatial_bytes(found, math.prod(shape[:2]), 8) + 24 * call.output.size * taps
    return Lowered(parameters, work=call.output.size * taps, scratch=scratch)


def _least(dtype: np.dtype) -> float | int:
    return np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Along one axis after the other from the lowest finite number on; of equal values the first, NaN never wins.

    A rule of the slot `extreme` may say otherwise.
    """
    if "rows" in step.arrays:
        return max_over_grid.reference(step, inputs)
    x = inputs[0]
    images = Images(step, x)
    out = images.empty(x.dtype)
    for number, (image, result) in enumerate(zip(images, out, strict=True)):
        if not result.size:
            break
        if "extreme" in step.rules and ordered_maxima.matters(image):
            largest = ordered_maxima.largest(step, images, image, number)
        else:
            largest = image
            for axis in (2, 1, 0):
                largest = _along(step, images, largest, axis)
        limit = plain_range.CLAMPS[step.rules.get("plain_range", "type_limits")]
        result[...] = limit(largest, step["low"], step["high"])
    values = images.result(out)
    return [values] if len(step.outputs) == 1 else [values, _positions(step, x, values)]


def _along(step: Step, images: Images, image: np.ndarray, axis: int) -> np.ndarray:
    one = images.windows[axis]
    shape = list(image.shape)
    shape[images.axes[axis]] = one.out
    largest = np.full(shape, _least(image.dtype), image.dtype)
    for to, positions in met(one):
        _keep_larger(largest[images.along(axis, to)], image[images.along(axis, positions)])
    if step.parameters.get("outside") == "edge":
        for at in np.flatnonzero(one.counts() == 0):
            nearest = 0 if at * one.stride < one.before else one.size - 1
            largest[images.along(axis, at)] = image[images.along(axis, nearest)]
    return largest


def _keep_larger(kept: np.ndarray, candidates: np.ndarray) -> None:
    if kept.dtype.kind == "f":
        np.copyto(kept, candidates, where=kept < candidates)
    else:
        np.maximum(kept, candidates, out=kept)


def _rows(windows: Sequence[Window]) -> tuple[np.ndarray, np.ndarray]:
    """Row-major position of every tap in an image, and whether it lies inside: [windows of every axis, taps]."""
    found = []
    for one in windows:
        at = np.arange(one.out)[:, None] * one.stride + np.arange(one.taps) * one.dilation - one.before
        found.append(np.where((at >= 0) & (at < one.size), at, -1))
    d, h, w = found
    d = d[:, None, None, :, None, None]
    h = h[None, :, None, None, :, None]
    w = w[None, None, :, None, None, :]
    shape = np.broadcast_shapes(d.shape, h.shape, w.shape)
    inside = np.broadcast_to((d >= 0) & (h >= 0) & (w >= 0), shape)
    count = (*shape[:3], -1)
    row = (d * windows[1].size + h) * windows[2].size + w
    return np.broadcast_to(row, shape).reshape(count), inside.reshape(count)


def _positions(step: Step, x: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Where the largest elements of [N, C, ...] stand first, in row-major order; -1 for the lowest finite number.

    Positions count the whole tensor in row-major order; within an image by columns with `storage_order` 1.
    """
    if not largest.size:
        return np.zeros(largest.shape, np.int64)
    windows = step_windows(step, x.shape[2:])
    sizes = [one.size for one in windows]
    lowest = _least(x.dtype)
    view = sliding(padded(x.reshape(-1, *sizes), windows, lowest), windows)
    best = largest.reshape(*view.shape[:4], 1)
    row, inside = _rows(windows)
    hit = (view.reshape(*view.shape[:4], -1) == best) & inside
    if "extreme" in step.rules:
        # A NaN that is kept stood first.
        hit |= inside & np.isnan(best)
    elif x.dtype.kind == "f":
        hit &= best > lowest
    first = hit.argmax(axis=-1)[..., None]
    places = np.take_along_axis(np.broadcast_to(row, hit.shape), first, axis=-1)[..., 0]
    if step.parameters.get("storage_order"):
        d, rest = np.divmod(places, sizes[1] * sizes[2])
        h, w = np.divmod(rest, sizes[2])
        places = d + sizes[0] * h + sizes[0] * sizes[1] * w if x.ndim == 5 else d * sizes[1] + h + w * sizes[1]
    places = places + np.arange(places.shape[0])[:, None, None, None] * math.prod(sizes)
    places = np.where(hit.any(axis=-1), places, -1)
    return places.astype(np.int64).reshape(largest.shape)


OPERATOR = Operator(
    "max_pool",
    ("activation_range", "extreme", "plain_range"),
    infer,
    lower,
    reference,
    "largest element of every window",
    compares=True,
    largest=True,
    mistaken_for=("average_pool",),
    unread=("output_zero_point", "pad_bottom", "pad_right", "storage_order"),
    roles=(Role("input", 0), Role("output", -1)),
    layout="largest of windows",
    writes_rows=True,
)

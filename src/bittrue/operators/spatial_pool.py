"""Pools over one to three spatial axes, channels first: max_pool (with positions), average_pool, lp_pool, global
ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..rules import real_sum
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import Window, counts, spatial_bytes, spatial_parameters, spatial_shape, step_windows, tap_count
from .spatial import padded, sliding, spatial_windows


def _windows(call: Call) -> tuple[Window, ...]:
    x = call.input(0)
    call.rank(x, 3, 5)
    return spatial_windows(call, x.shape, call.attribute("kernel_shape"), pooling=True)


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] gives [N, C, ...], for each output."""
    call.expect(1, None)
    shape = (*call.input(0).shape[:2], *spatial_shape(_windows(call)))
    return [shape] * len(call.outputs)


def lower(call: Call) -> Lowered:
    """Geometry, and what is counted."""
    windows, shape = _windows(call), call.input(0).shape
    taps = tap_count(windows)
    parameters = {
        **spatial_parameters(windows),
        "output_shape": call.output.shape,
        "after": tuple(one.after for one in windows),
    }
    for name in ("count_include_pad", "storage_order", "p"):
        if name in call.node.attributes:
            parameters[name] = int(call.attribute(name))
    return Lowered(
        parameters=parameters,
        work=call.output.size * taps,
        scratch=2 * spatial_bytes(windows, math.prod(shape[:2]), 8) + 24 * call.output.size * taps,
    )


def _patches(step: Step, x: np.ndarray, value: object) -> tuple[np.ndarray, tuple[Window, ...]]:
    """[planes, D', H', W', taps] of x [N, C, ...] with `value` around it."""
    windows = step_windows(step, x.shape[2:])
    picture = x.reshape(-1, *(one.extent for one in windows))
    view = sliding(padded(picture, windows, value), windows)
    return view.reshape(*view.shape[:4], -1), windows


def _positions(windows: Sequence[Window]) -> tuple[np.ndarray, np.ndarray]:
    """Position of every tap in a picture, -1 outside of it, by axis: [outputs of the axis, taps of the axis]."""
    found = []
    for one in windows:
        at = np.arange(one.out)[:, None] * one.stride + np.arange(one.taps) * one.dilation - one.before
        found.append(np.where((at >= 0) & (at < one.extent), at, -1))
    d, h, w = found
    d = d[:, None, None, :, None, None]
    h = h[None, :, None, None, :, None]
    w = w[None, None, :, None, None, :]
    shape = np.broadcast_shapes(d.shape, h.shape, w.shape)
    inside = np.broadcast_to((d >= 0) & (h >= 0) & (w >= 0), shape)
    count = (*shape[:3], -1)
    row = (d * windows[1].extent + h) * windows[2].extent + w
    return np.broadcast_to(row, shape).reshape(count), inside.reshape(count)


def reference_max(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The first of the largest elements in row-major order that a chain of `>` finds; NaN is never taken.

    It begins with the lowest finite number, whose position counts as -1. Positions count the whole tensor in row-major
    order; within a picture by columns with `storage_order` 1.
    """
    x, shape = inputs[0], tuple(step["output_shape"])
    lowest = np.finfo(x.dtype).min if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    if not math.prod(shape):
        return [np.zeros(shape, x.dtype), np.zeros(shape, np.int64)]
    patches, windows = _patches(step, x, lowest)
    with np.errstate(invalid="ignore"):
        ordered = np.where(np.isnan(patches), lowest, patches) if x.dtype.kind == "f" else patches
        best = ordered.argmax(axis=-1)[..., None]
        largest = np.maximum(np.take_along_axis(ordered, best, axis=-1)[..., 0], lowest)
    values = largest.astype(x.dtype).reshape(shape)
    row, inside = _positions(windows)
    # The first position that holds the maximum and lies inside of the picture.
    hit = (ordered == largest[..., None]) & inside
    if x.dtype.kind == "f":
        hit &= largest[..., None] > lowest
    first = hit.argmax(axis=-1)[..., None]
    places = np.take_along_axis(np.broadcast_to(row, hit.shape), first, axis=-1)[..., 0]
    extents = [one.extent for one in windows]
    if step.parameters.get("storage_order"):
        d, rest = np.divmod(places, extents[1] * extents[2])
        h, w = np.divmod(rest, extents[2])
        places = (
            d + extents[0] * h + extents[0] * extents[1] * w if x.ndim == 5 else d * extents[1] + h + w * extents[1]
        )
    places = places + np.arange(places.shape[0])[:, None, None, None] * math.prod(extents)
    places = np.where(hit.any(axis=-1), places, -1)
    return [values, places.astype(np.int64).reshape(shape)]


def _reference_max_one(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return reference_max(step, inputs)[: len(step.outputs)]


# Largest window of the vector kernels along an axis, and the largest padded row that they hold.
_SMALL, _ROW = 32, 2048 - 8
_CHANNELS = 16
# From this version of the operator on, windows may be dilated, and only pictures in blocks of channels use vectors.
_LATEST_VECTORS = 18


def lower_average(call: Call) -> Lowered:
    """Geometry, and for rules that have an order: which, and whether padding counts where windows reach beyond it."""
    lowered, windows, x = lower(call), _windows(call), call.input(0)
    blocked = len(windows) == 2 and x.shape[1] % _CHANNELS == 0
    ordered = real_sum.RULES[call.rules["real_sum"]].ordered
    ends_late = call.attribute("ceil_mode") and call.attribute("count_include_pad")
    vectors = ordered and not blocked and call.node.version <= _LATEST_VECTORS and not ends_late
    order = "in_order"
    if vectors and all(
        one.taps == one.extent and one.stride == 1 and not one.before and not one.after for one in windows
    ):
        order = "lanes"
    elif vectors and len(windows) > 1 and windows[-1].stride <= 2 and all(one.taps <= _SMALL for one in windows):
        last = windows[-1]
        order = "columns" if last.before + last.after + last.extent <= _ROW else order
    full = ordered and (vectors or (blocked and not ends_late))
    return Lowered({**lowered.parameters, "order": order, "full": full}, work=lowered.work, scratch=lowered.scratch)


def reference_average(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's sum of what lies inside, over the number of taps inside (or with padding, where that counts)."""
    x, shape = inputs[0], tuple(step["output_shape"])
    if not math.prod(shape):
        return [np.zeros(shape, x.dtype)]
    patches, windows = _patches(step, x, 0)
    counted = ("taps" if step["full"] else "padded") if step["count_include_pad"] else "inside"
    divisors = np.broadcast_to(counts(windows, counted), patches.shape[:4]).reshape(-1).astype(np.float64)
    total = real_sum.RULES[step.rules["real_sum"]].reductions["sum"]
    way = real_sum.Way(step["order"], width=windows[2].taps)
    return [total(patches.reshape(-1, patches.shape[-1]), divisors, way).reshape(shape)]


def reference_lp(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(sum of |x|^p)^(1 / p) of every window, p = 1 or 2."""
    x, shape = inputs[0], tuple(step["output_shape"])
    if not math.prod(shape):
        return [np.zeros(shape, x.dtype)]
    rows = _patches(step, x, 0)[0]
    rule = real_sum.RULES[step.rules["real_sum"]].reductions[f"lp_{step['p']}"]
    return [rule(rows.reshape(-1, rows.shape[-1]), None, real_sum.Way()).reshape(shape)]


def lower_lp(call: Call) -> Lowered:
    """The same; only absolute and Euclidean lengths."""
    if int(call.attribute("p")) not in (1, 2):
        raise call.unsupported("BT-LP-POOL", f"p is {call.attribute('p')}, 1 and 2 are possible")
    return lower(call)


def infer_global(call: Call) -> list[Shape]:
    """[N, C, ...] gives [N, C, 1, ...]."""
    call.expect(1)
    x = call.input(0)
    call.rank(x, 3, 8)
    return [(*x.shape[:2], *(1,) * (x.rank - 2))]


def lower_global(call: Call) -> Lowered:
    """The output's shape, and whether pictures are in planes where rewrites say so."""
    x, planes = call.input(0), bool(call.node.attributes.get("planes", False))
    return Lowered(parameters={"output_shape": call.output.shape, "planes": planes}, work=x.size, scratch=24 * x.size)


def reference_global_average(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's mean of every picture."""
    shape = tuple(step["output_shape"])
    rows = inputs[0].reshape(math.prod(shape), -1)
    total = real_sum.RULES[step.rules["real_sum"]].reductions["sum"]
    blocked = len(shape) == 4 and shape[1] % _CHANNELS == 0 and not step["planes"]
    way = real_sum.Way("in_order" if blocked else "lanes")
    return [total(rows, np.full(len(rows), float(rows.shape[1])), way).reshape(shape)]


def reference_global_max(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """As max_pool."""
    x, shape = inputs[0], tuple(step["output_shape"])
    rows = x.reshape(math.prod(shape), -1)
    lowest = np.finfo(x.dtype).min
    ordered = np.where(np.isnan(rows), lowest, rows)
    return [np.maximum(ordered.max(axis=1, initial=lowest), lowest).astype(x.dtype).reshape(shape)]


OPERATORS = (
    Operator(
        "max_pool", (), infer, lower, _reference_max_one, "largest element of a window, channels first", compares=True
    ),
    Operator(
        "average_pool", ("real_sum",), infer, lower_average, reference_average, "average of a window, channels first"
    ),
    Operator("lp_pool", ("real_sum",), infer, lower_lp, reference_lp, "length of a window, channels first"),
    Operator(
        "global_average_pool", ("real_sum",), infer_global, lower_global, reference_global_average, "mean of a picture"
    ),
    Operator(
        "global_max_pool",
        (),
        infer_global,
        lower_global,
        reference_global_max,
        "largest element of a picture",
        compares=True,
    ),
)

"""Convolutions and fully-connected layers on binary32 numbers: the order of the additions decides the last bits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic.tiled_products import TiledProduct
from ...graph import Attribute
from ...records import replace
from ...rules import plain_range, sum_of_products
from ..core.base import Call, Lowered, Step
from ..core.geometry import Window, spatial_parameters, step_windows
from ..core.roles import turned
from ..core.spatial import padded, sliding
from ..core.stopping import check_stop
from .conv_geometry import convolution_windows, filter_layout

# Slots that a row for real numbers fills.
# Sums held at a time, so that the passes over the terms stay in cache.
_SUMS = 1 << 15
# Elements of a matrix that are transposed at a time.
_WEIGHTS = 1 << 20


def real_range(call: Call) -> dict[str, Attribute]:
    """`low` and `high` of the fused activation."""
    rule = plain_range.RULES[call.rules["plain_range"]]
    low, high = rule(str(call.attribute("activation")), call.output.type.numpy)
    return {"low": low, "high": high}


def chain_count(step: Step) -> int:
    """How many chains the terms of a step's sums take turns in."""
    return int(step.parameters.get("chains", 1))  # type: ignore[arg-type]


def product_chains(call: Call, columns: int, single: bool) -> dict[str, Attribute]:
    """How many `chains` the terms of a product of matrices take turns in, where the rule has several."""
    rule = sum_of_products.RULES[call.rules["sum_of_products"]]
    return {"chains": sum_of_products.chains_of_product(columns, single)} if rule.in_chains else {}


def _window_chains(call: Call, windows: Sequence[Window], groups: int) -> dict[str, Attribute]:
    """How many `chains` terms take turns in, where the rule has several."""
    rule = sum_of_products.RULES[call.rules["sum_of_products"]]
    if not rule.in_chains:
        return {}
    taps, places = (math.prod(getattr(one, of) for one in windows) for of in ("taps", "out"))
    columns = call.output.shape[-1 if call.node.attributes.get("channels_last", True) else 1] // groups
    if rule.by_columns:
        return {"chains": sum_of_products.chains_of_taps(taps)}
    if taps == 1 and groups == 1 and all(one.stride == 1 for one in windows):
        return product_chains(call, columns, call.output.shape[0] * places == 1)
    return {"chains": sum_of_products.chains_of_windows(columns, places == 1)}


def lower_windows(call: Call, windows: Sequence[Window], groups: int) -> Lowered:
    """Geometry and limits of a convolution; output channels fall into `groups` of neighbours."""
    weights, axis = call.input(1), -1 if call.node.attributes.get("channels_last", True) else 1
    given, channels = call.input(0).shape[axis], call.output.shape[axis]
    if min(given, channels) < 1:
        raise call.invalid("BT-CONV-CHANNELS", f"there are {given} input and {channels} output channels")
    terms = weights.size // channels
    return Lowered(
        parameters={
            **spatial_parameters(windows),
            **real_range(call),
            **_window_chains(call, windows, groups),
            "groups": groups,
        },
        work=call.output.size * terms,
        scratch=4 * weights.computed_size + 8 * max(_SUMS, windows[-1].out * channels),
    )


def lower(call: Call) -> Lowered:
    """The same for the operator `conv`, whose channels and filters lie as the node says."""
    lowered = lower_windows(call, *convolution_windows(call))
    layout: dict[str, Attribute] = {
        "channels_last": bool(call.attribute("channels_last")),
        "filter_layout": filter_layout(call),
    }
    return replace(lowered, parameters={**lowered.parameters, **layout})


# Numbers of taps whose kernels leave no room; elsewhere products of zeros follow the last tap.
_FULL = (3, 4, 9, 25)


def _start(rule: sum_of_products.SumRule, shape: tuple[int, ...], bias: np.ndarray | None) -> np.ndarray:
    """What sums begin with; the last axes of `shape` hold all channels."""
    total = np.zeros(shape, np.float32)
    if rule.from_bias and bias is not None:
        total.reshape(-1, bias.size)[...] = bias.reshape(-1)
    return total


def finish(step: Step, total: np.ndarray, bias: np.ndarray | None, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """clamp(f32(total + bias)), or what began with the bias, clamped: NaN stays NaN."""
    rule = sum_of_products.RULES[step.rules["sum_of_products"]]
    with np.errstate(all="ignore"):
        if bias is not None and not rule.from_bias:
            total = total + bias.reshape(-1)
        if rule.by_columns and step["filter_h"] * step["filter_w"] not in _FULL:
            total = total + np.float32(0)
    total = sum_of_products.invalid_as_on_x86(total, x, weights, bias)
    return plain_range.CLAMPS[step.rules["plain_range"]](total, step["low"], step["high"])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The convolution with its channels and filters brought into order."""
    last = step["channels_last"]
    x = inputs[0] if last else np.moveaxis(inputs[0], 1, -1)
    found = convolve(step, [x, *inputs[1:]], turned(inputs[1], step["filter_layout"], "SIO"))
    return found if last else [np.ascontiguousarray(np.moveaxis(one, -1, 1)) for one in found]


def convolve(step: Step, inputs: Sequence[np.ndarray], filters: np.ndarray) -> list[np.ndarray]:
    """A convolution with filters[taps..., depth, outputs]: one pass per tap and channel over blocks of rows.

    Taps outside of the image add nothing, not even the product of 0 with an infinite weight, unless the rule says so.
    """
    x, bias = inputs[0], inputs[2] if len(inputs) > 2 else None
    rule = sum_of_products.RULES[step.rules["sum_of_products"]]
    if rule.tiles is not None:
        return [_in_tiles(step, rule.tiles, x, filters, bias)]
    depth, channels, groups = *filters.shape[-2:], step["groups"]
    deep, vertical, horizontal = step_windows(step, x.shape[1:-1])
    grouped = np.ascontiguousarray(filters).reshape(
        deep.taps, vertical.taps, horizontal.taps, depth, groups, channels // groups
    )
    images = x.reshape(x.shape[0], deep.size, vertical.size, horizontal.size, groups, 1, depth)
    out_h, out_w = vertical.out, horizontal.out
    out = np.empty((x.shape[0], deep.out, out_h, out_w, channels), np.float32)
    shape = (x.shape[0], *(one.out for one in (deep, vertical, horizontal)[5 - x.ndim :]), channels)
    if not out.size:
        return [out.reshape(shape)]
    rows = max(1, _SUMS // (out_w * channels))
    columns = [horizontal.met(tap) for tap in range(horizontal.taps)]
    taps = list(itertools.product(range(deep.taps), range(vertical.taps), range(horizontal.taps)))
    if rule.by_columns:
        taps.sort(key=lambda tap: tap[::-1])
    nothing = np.zeros((1, 1, groups, 1), np.float32)
    for n, z, top in itertools.product(range(x.shape[0]), range(deep.out), range(0, out_h, rows)):
        check_stop()
        bottom = min(top + rows, out_h)
        total = _start(rule, (bottom - top, out_w, groups, channels // groups), bias)
        room, chains = np.empty_like(total), sum_of_products.Chains(total, chain_count(step))
        for t, (d, i, j) in enumerate(taps):
            plane, lines, across = (
                z * deep.stride + d * deep.dilation - deep.before,
                vertical.met(i, top, bottom),
                columns[j],
            )
            if not 0 <= plane < deep.size:
                lines = slice(0, 0), slice(0, 0)
            if rule.from_bias and not rule.inside:
                for where in _outside(lines, across, *total.shape[:2]):
                    for c in range(depth):
                        chain = chains.of(t if rule.by_columns else c, len(taps) if rule.by_columns else depth)
                        rule(chain[where], nothing, grouped[d, i, j, c], room[where])
            if not lines[0].stop or not across[0].stop:
                continue
            met = images[n, plane, lines[1], across[1]]
            products = room[lines[0], across[0]]
            for c in range(depth):
                chain = chains.of(t if rule.by_columns else c, len(taps) if rule.by_columns else depth)
                rule.term(c, depth)(chain[lines[0], across[0]], met[..., c], grouped[d, i, j, c], products)
        sums = chains.folded().reshape(bottom - top, out_w, channels)
        out[n, z, top:bottom] = finish(step, sums, bias, x, filters)
    return [out.reshape(shape)]


def _in_tiles(
    step: Step, tiles: TiledProduct, x: np.ndarray, filters: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """The same as a product of matrices: a row for every window of all images, in one group."""
    windows, (depth, channels) = step_windows(step, x.shape[1:-1]), filters.shape[-2:]
    places = (len(x), *(one.out for one in windows))
    images = np.moveaxis(x.reshape(len(x), *(one.size for one in windows), depth), -1, 1)
    view = np.moveaxis(sliding(padded(images, windows, 0), windows), 1, -1)
    weights = np.ascontiguousarray(np.moveaxis(filters, -1, 0)).reshape(channels, -1)
    count = math.prod(places)
    out = np.empty((count, channels), np.float32)
    some = 8 * max(1, _SUMS // (8 * max(channels, weights.shape[1])))
    for first in range(0, count, some):
        check_stop()
        part = np.unravel_index(np.arange(first, min(first + some, count)), places)
        sums = tiles(weights, view[part].reshape(-1, weights.shape[1]), count, first)
        out[first : first + some] = finish(step, sums, bias, x, filters)
    return out.reshape(len(x), *places[6 - x.ndim :], channels)


def _outside(
    lines: tuple[slice, slice], across: tuple[slice, slice], height: int, width: int
) -> list[tuple[slice, slice]]:
    """The up to four parts of a block of the output where a tap lies outside of the image."""
    rows, columns = lines[0], across[0]
    parts = [
        (slice(0, rows.start), slice(0, width)),
        (slice(rows.stop, height), slice(0, width)),
        (rows, slice(0, columns.start)),
        (rows, slice(columns.stop, width)),
    ]
    return [(r, c) for r, c in parts if r.start < r.stop and c.start < c.stop]


def multiply(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A matrix product over blocks of units: one pass per column."""
    x, weights = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    rule = sum_of_products.RULES[step.rules["sum_of_products"]]
    units, depth = weights.shape
    if rule.tiles is not None:
        rows_of_x = x.reshape(-1, depth)
        sums = rule.tiles(weights, rows_of_x, len(rows_of_x), 0)
        return [finish(step, sums, bias, x, weights).reshape(step["output_shape"])]
    columns = np.ascontiguousarray(x.reshape(-1, depth).T)[:, :, None]
    out = np.empty((columns.shape[1], units), np.float32)
    rows = max(1, min(columns.shape[1], _SUMS // max(1, units)))
    block = max(1, _WEIGHTS // depth)
    for left in range(0, units, block):
        part = np.ascontiguousarray(weights[left : left + block].T)
        some = None if bias is None else bias.reshape(-1)[left : left + block]
        for top in range(0, columns.shape[1], rows):
            check_stop()
            total = _start(rule, (min(rows, columns.shape[1] - top), part.shape[1]), some)
            room, chains = np.empty_like(total), sum_of_products.Chains(total, chain_count(step))
            for k in range(depth):
                rule.term(k, depth)(chains.of(k, depth), columns[k, top : top + rows], part[k], room)
            out[top : top + rows, left : left + block] = finish(step, chains.folded(), some, x, weights)
    return [out.reshape(step["output_shape"])]

"""Convolutions of real numbers, whose sums follow a rule of `real_product`; an addend is what they begin with."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import real_product
from ..core.base import Call, Lowered, Step
from ..core.geometry import Window, counts, spatial_bytes, spatial_parameters, step_windows, tap_count
from ..core.spatial import padded, sliding
from .conv_geometry import ADDEND, channels_first, convolution_windows
from .window_sums import grouped_products, positions_together

# Bytes that products hold at a time beside unfolded windows.
_BYTES = 8 << 20


# Channels of a block of a convolution without neighbours.
_POINT_CHANNELS = 128
# Channels come in multiples of this, or stay in planes.
_ALIGNED = 4


def can_block(outputs: int, channels: int, groups: int, block: int) -> bool:
    """Whether filters of so many channels can be held in blocks of `block` channels, which are none if that is 0."""
    if not block:
        return False
    if groups > 1:
        whole = channels % block == 0 and outputs // groups % block == 0
        return whole or (channels == 1 and outputs == groups and outputs % _ALIGNED == 0)
    return channels < block or channels % _ALIGNED == 0


def _split(call: Call, windows: tuple[Window, ...]) -> tuple[int, int]:
    """(channels of a block, terms of a sum) of a convolution whose channels are blocked; zeros for one that is not.

    Asked for are two spatial axes, constant weights and bias, and what `can_block` says.
    """
    block = real_product.RULES[call.rules["real_product"]].blocked_channels or 0
    weights, groups = call.input(1), int(call.attribute("groups"))
    if block == real_product.ALL_CHANNELS:
        return int(weights.shape[1]), 0
    known = call.is_stored(1) and (not call.has(2) or call.is_stored(2))
    if len(windows) != 2 or not known:
        return 0, 0
    outputs, channels = weights.shape[:2]
    taps = math.prod(weights.shape[2:])
    if not can_block(outputs, channels, groups, block):
        return 0, 0
    if channels < block:
        return 1, taps
    # Strides that leave out a single position of an axis count as no padding, those that leave out more do not.
    if taps == 1 and all(one.before == 0 and -1 <= one.after <= 0 for one in windows):
        return channels, _POINT_CHANNELS
    return block, block * taps


def _spans_rows(call: Call, windows: tuple[Window, ...]) -> bool:
    """Filters of one channel with one plain window along the last of at most two axes: windows lie in the image itself,
    one row each, so that products of single rows and columns take other ways.
    """
    plain = all(one.stride == 1 and one.dilation == 1 and not one.before and not one.after for one in windows)
    return plain and len(windows) <= 2 and call.input(1).shape[1] == 1 and windows[-1].taps == windows[-1].size


def lower(call: Call) -> Lowered:
    """Geometry."""
    (windows, groups), weights = convolution_windows(call), call.input(1)
    terms = math.prod(weights.shape[1:])
    block, split = _split(call, windows)
    single, source = weights.shape[0] == groups, call.input(0)
    wide = _wide(terms, weights.shape[0] // groups)
    # With its channels first, and with zeros around it.
    copies = bool(call.attribute("channels_last")) + any(one.before or one.reached > one.size for one in windows)
    planes = source.size // max(1, source.shape[0] * math.prod(one.size for one in windows))
    return Lowered(
        parameters={
            **spatial_parameters(windows),
            "block": block,
            "split": split,
            "turned": not split
            and _spans_rows(call, windows)
            and (single or math.prod(one.out for one in windows) == 1),
            "groups": groups,
            "channels_last": bool(call.attribute("channels_last")),
            "output_shape": channels_first(call, call.output.shape),
        },
        work=call.output.size * terms,
        scratch=copies * spatial_bytes(windows, planes, 4) + 16 * wide * positions_together(windows, wide)[1] + _BYTES,
    )


def _wide(terms: int, filters: int) -> int:
    """Numbers held for a position: its window, and more than one for each filter of a group."""
    return max(terms, 8 * filters)


def _by_blocks(array: np.ndarray, axis: int, block: int) -> np.ndarray:
    """[..., C, taps, ...] as [..., C / block, taps, block, ...], the last block filled with zeros."""
    lacking = -array.shape[axis] % block
    if lacking:
        array = np.pad(array, [(0, lacking if i == axis else 0) for i in range(array.ndim)])
    shape = array.shape
    split = array.reshape(*shape[:axis], shape[axis] // block, block, *shape[axis + 1 :])
    return np.ascontiguousarray(np.swapaxes(split, axis + 1, axis + 2))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's product of the weights with unfolded images.

    Terms go by channel, then row, then column of the filter; with blocks by block, row, column, and channel of the
    block.
    """
    last = step["channels_last"]
    x, w = np.moveaxis(inputs[0], -1, 1) if last else inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    begin = inputs[ADDEND] if len(inputs) > ADDEND else None
    if 0 in step["output_shape"]:
        return [_laid_out(step, np.empty(step["output_shape"], np.float32))]
    filters, groups = len(w), step["groups"]
    windows = step_windows(step, x.shape[2:])
    rule = real_product.RULES[step.rules["real_product"]]
    block = step["block"] or 1
    weights = _by_blocks(w.reshape(*w.shape[:2], tap_count(windows)), 1, block)
    weights = weights.reshape(groups, filters // groups, math.prod(weights.shape[1:]))
    layout = real_product.Layout(
        added_last=begin is None,
        split=step["split"],
        turned_b=step["turned"],
        columns=math.prod(one.out for one in windows),
    )
    started = None if begin is None else begin.reshape(len(x), *weights.shape[:2], -1)
    added = None if bias is None else bias.reshape(groups, -1, 1)

    # Windows that lie inside of the image.
    within = None if rule.inside is None else (counts(windows) == tap_count(windows)).reshape(-1)

    # Blocks of channels leave out what meets padding, which only numbers times 0 that are not 0 show.
    met = _taps_inside(windows) if step["split"] and not np.isfinite(weights).all() else None

    def product(filters: np.ndarray, part: slice, columns: np.ndarray, more: np.ndarray | None) -> np.ndarray:
        if met is not None:
            result = np.empty((len(filters), columns.shape[1]), np.float32)
            taps, kind = np.unique(met[part], axis=0, return_inverse=True)
            for number, inside in enumerate(taps):
                chosen = np.flatnonzero(kind.reshape(-1) == number)
                own = None if more is None else np.broadcast_to(more, result.shape)[:, chosen]
                by_taps = filters.reshape(len(filters), -1, inside.size, block)
                counted = np.where(inside[:, None], by_taps, np.float32(0)).reshape(filters.shape)
                result[:, chosen] = rule.apply(counted, columns[:, chosen], own, 1.0, 1.0, layout)
            return result
        result = rule.apply(filters, columns, more, 1.0, 1.0, layout)
        if rule.inside is not None and within is not None:
            inner = within[part]
            own = None if more is None else np.broadcast_to(more, result.shape)[:, inner]
            result[:, inner] = rule.inside(filters, columns[:, inner], own)
        return result

    def times(n: int, g: int, part: slice, columns: np.ndarray) -> np.ndarray:
        columns = _by_blocks(columns, 0, block).reshape(weights.shape[2], columns.shape[-1])
        more = None if added is None else added[g]
        if started is None:
            return product(weights[g], part, columns, more)
        total = product(weights[g], part, columns, started[n, g, :, part])
        with np.errstate(all="ignore"):
            return total if more is None else total + more

    wide = _wide(math.prod(w.shape[1:]), filters // groups)
    return [_laid_out(step, grouped_products(x, filters, windows, groups, times, wide))]


def _taps_inside(windows: tuple[Window, ...]) -> np.ndarray:
    """[positions, taps]: whether the tap of a window lies in the image."""
    image = np.ones((1, *(one.size for one in windows)), bool)
    return sliding(padded(image, windows, 0), windows).reshape(-1, tap_count(windows))


def _laid_out(step: Step, out: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(out, 1, -1)) if step["channels_last"] else out

"""Loops over windows that convolutions of several arithmetics share: unfolded images, and filters of one channel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...arithmetic.matmul import exact_matmul, product_type
from ..core.geometry import Window, spatial_shape, tap_count
from ..core.spatial import padded, sliding
from ..core.stopping import check_stop

# Bytes of unfolded input held at a time: stays inside the last-level cache and bounds memory on any input.
PATCH_BYTES = 4 << 20
# Sums held at a time by a pass per tap, so that the passes stay in cache.
_BLOCK = 1 << 16

# What is added to the sums [groups, O / groups, positions] of unfolded windows [groups, K, positions].
Addend = Callable[[np.ndarray], np.ndarray]


def integer_sums(
    pixels: np.ndarray, matrices: np.ndarray, windows: Sequence[Window], limit: int, more: Addend | None = None
) -> Iterator[tuple[int, slice, np.ndarray]]:
    """(depth, rows) of the result and its sums [O, rows, W'] in 64 bits, block by block.

    Args:
        pixels: [C, D, H, W], integers less their zero point.
        matrices: filters [groups, O / groups, K] with K = C / groups times taps, less theirs.
        windows: along all three axes.
        limit: what no partial sum exceeds, so that floats hold them.
        more: what is added to the exact sums.
    """
    groups, filters, terms = matrices.shape
    work_type = product_type(limit)
    matrices = matrices.astype(work_type, copy=False)
    out_d, out_h, out_w = spatial_shape(windows)
    rows = max(1, PATCH_BYTES // max(1, out_w * terms * groups * work_type.itemsize))
    # [C, taps, D', H', W']: unfolding copies whole rows of pixels.
    view = sliding(padded(pixels.astype(work_type, copy=False), windows, 0), windows).transpose(0, 4, 5, 6, 1, 2, 3)
    for d, top in ((d, top) for d in range(out_d) for top in range(0, out_h, rows)):
        check_stop()
        block = view[..., d, top : top + rows, :]
        columns = block.reshape(groups, terms, block.shape[-2] * out_w)
        sums = exact_matmul(matrices, columns, limit).astype(np.int64)
        if more is not None:
            sums += more(columns)
        yield d, slice(top, top + block.shape[-2]), sums.reshape(groups * filters, -1, out_w)


def depthwise_sums(
    pixels: np.ndarray, filters: np.ndarray, vertical: Window, horizontal: Window
) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows of the result and their sums [rows, W', C] of pixels [H, W, C] and filters [h, w, C], in their type.

    One multiply-add pass per tap over blocks of rows; taps outside of the image add nothing.
    """
    out_h, out_w, channels = vertical.out, horizontal.out, filters.shape[2]
    rows = max(1, _BLOCK // max(1, out_w * channels))
    for top in range(0, out_h, rows):
        check_stop()
        bottom = min(top + rows, out_h)
        acc = np.zeros((bottom - top, out_w, channels), pixels.dtype)
        for i in vertical.taps_met():
            lines = vertical.met(i, top, bottom)
            for j in horizontal.taps_met():
                across = horizontal.met(j)
                acc[lines[0], across[0]] += pixels[lines[1], across[1]] * filters[i, j]
        yield slice(top, bottom), acc


def positions_together(windows: Sequence[Window], wide: int) -> tuple[int, int]:
    """How many planes (of volumes) or rows of positions are worked on together, `wide` numbers of binary32 for each
    position, and how many positions these are: a multiple of four, or all. `wide` 0: all.
    """
    depth, height, width = (1,) * (3 - len(windows)) + spatial_shape(windows)
    lines, each = (depth, height * width) if depth > 1 else (height, width)
    unit = 4 // math.gcd(each, 4)
    some = lines if not wide else min(lines, max(1, PATCH_BYTES // max(1, 4 * wide * each * unit)) * unit)
    return some, some * each


def grouped_products(
    x: np.ndarray,
    filters: int,
    windows: Sequence[Window],
    groups: int,
    times: Callable[[int, int, slice, np.ndarray], np.ndarray],
    wide: int = 0,
) -> np.ndarray:
    """[N, O, sizes of the windows] of binary32 numbers.

    Args:
        x: [N, C, spatial...]; positions outside hold 0.
        filters: O.
        windows: along all three axes.
        groups: of channels.
        times: makes [O / groups, positions] of the number of the image, of the group, which positions these are, and
            their unfolded windows [C / groups, taps, positions].
        wide: as `positions_together` has it.
    """
    depth, shape = x.shape[1] // groups, spatial_shape(windows)
    out = np.empty((x.shape[0], groups, filters // groups, math.prod(shape)), np.float32)
    some, together = positions_together(windows, wide)
    for n, image in enumerate(x if out.size else ()):
        image = image.reshape(x.shape[1], *(one.size for one in windows))
        view = sliding(padded(image, windows, 0), windows).transpose(0, 4, 5, 6, 1, 2, 3)
        view = view if shape[0] > 1 else view[..., 0, :, :]
        for g, line in itertools.product(range(groups), range(0, view.shape[4], some)):
            check_stop()
            unfolded = view[g * depth : (g + 1) * depth, :, :, :, line : line + some]
            own = slice(line // some * together, line // some * together + math.prod(unfolded.shape[4:]))
            out[n, g, :, own] = times(n, g, own, unfolded.reshape(depth, tap_count(windows), own.stop - own.start))
    return out.reshape(x.shape[0], filters, *shape[5 - x.ndim :])

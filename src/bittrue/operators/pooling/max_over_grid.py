"""Largest elements of windows over images that hold a grid of smaller images.

Attributes, each for height and width: `kernel` (empty: the whole image), `strides`, `grid` (small images, at least
2), `batch` (their dimension), `skip`; `pads` (top, left, bottom, right), some of them above 0. Along an axis of size n
with g small images of size b, k taps, stride s, pads p and q, skip d:

    gap = floor((n - b g) / (g - 1)), out = floor((n + p + q - k - (g - 1) d) / s) + 1
    out_b = floor((b + p + q - k) / s) + 1, out_gap = floor((out - out_b g) / (g - 1))

Outputs i with j (out_b + out_gap) <= i < (j + 1)(out_b + out_gap) belong to small image j, which begins at
j (b + gap): taps from i s - p + j d on, those before the small image left out, those behind it stored zeros as far as
the padding reaches, or all of them with a skip. Other outputs are the lowest binary32 number. Taps behind a row read
the row below, as memory lies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Shape, Step
from ..core.geometry import LARGEST, SIZES, Window, numbers, windows
from ..core.stopping import check_stop

_F32 = np.float32
# In place of a position: nothing is read, or a stored zero is.
_ABSENT, _ZERO = -2, -1


def _floor(value: int, divisor: int) -> int:
    return int(np.floor(_F32(value) / _F32(divisor)))


def _axes(call: Call) -> list[tuple[Window, int, int, int]]:
    """The window, small images, their dimension, and skip: of height and width. A window ends before what is
    skipped.
    """
    source = call.input(0)
    call.rank(source, 4)
    kernel = numbers(call, "kernel", 2, 1) if call.attribute("kernel") else source.shape[2:]
    strides, pads = numbers(call, "strides", 2, 1), numbers(call, "pads", 4, 0)
    grid, batch, skip = numbers(call, "grid", 2, 2), numbers(call, "batch", 2, 1), numbers(call, "skip", 2, 0)
    if not any(pads):
        raise call.unsupported(
            "BT-WINDOW", "no pads: the runtime leaves the sizes of small images undefined", "give one of the pads"
        )
    skipped = [(small - 1) * each for small, each in zip(grid, skip, strict=True)]
    sides = (*pads[:2], pads[2] - skipped[0], pads[3] - skipped[1])
    rules = ("explicit_or_cropping", "floor_binary32_clipped")
    found = windows(call, source.shape[2:], kernel, strides, (), sides, *rules)
    return list(zip(found, grid, batch, skip, strict=True))


def infer(call: Call) -> list[Shape]:
    """[N, C, H, W] gives [N, C, H', W']."""
    call.expect(1)
    return [(*call.input(0).shape[:2], *(one.out for one, *_ in _axes(call)))]


def _positions(one: Window, grid: int, batch: int, skip: int) -> np.ndarray:
    """Position of every tap of every output, [outputs, taps], or what stands in its place."""
    size, taps, stride, before, out = one.size, one.taps, one.stride, one.before, one.out
    after, count = one.after + (grid - 1) * skip, SIZES["floor_binary32"].count
    # As many as there were before the last window was left out.
    whole = count(size + before + one.after - taps, stride)
    gap = _floor(size - batch * grid, grid - 1)
    out_batch = count(batch + before + after - taps, stride)
    share = out_batch + _floor(whole - out_batch * grid, grid - 1)
    found = np.full((out, taps), _ABSENT, np.int64)
    for image in range(grid if share > 0 else 0):
        begin = image * (batch + gap)
        end = begin + batch
        for place in range(image * share, min(out, (image + 1) * share)):
            first = place * stride - before + skip * image
            at = first + np.arange(taps)
            zero = (at >= end) & ((at < end + after) | bool(skip))
            # A position before the image's memory is as far outside as one behind it.
            read = np.where(at < 0, size * LARGEST, at)
            found[place] = np.where(at < begin, _ABSENT, np.where(zero, _ZERO, read))
    return found


def lower(call: Call) -> Lowered:
    """Positions of taps; those outside of the image's memory are refused."""
    sides = _axes(call)
    (height, *_), (width, *_) = sides
    rows, columns = (_positions(*side) for side in sides)
    last = rows.max(initial=0) * width.size + columns.max(initial=0)
    if last >= height.size * width.size:
        raise call.unsupported(
            "BT-WINDOW",
            f"windows read element {int(last)} of an image of {height.size * width.size}",
            "the runtime reads past the image; give pads behind it, or a skip",
        )
    size = math.prod(call.output.shape)
    return Lowered(
        {"width": width.size},
        {"rows": rows, "columns": columns},
        work=size * height.taps * width.taps,
        scratch=32 * size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Tap by tap; a number that is not greater than what is there changes nothing, so NaN is never taken."""
    x, rows, columns = inputs[0], step.arrays["rows"], step.arrays["columns"]
    planes = x.reshape(*x.shape[:2], -1).astype(_F32)
    best = np.full((*x.shape[:2], rows.shape[0], columns.shape[0]), np.finfo(_F32).min, _F32)
    for i in range(rows.shape[1] if best.size else 0):
        for j in range(columns.shape[1]):
            check_stop()
            row, column = rows[:, i, None], columns[None, :, j]
            zero = (row == _ZERO) | (column == _ZERO)
            absent = (row == _ABSENT) | (column == _ABSENT)
            place = np.where(zero | absent, 0, row * step["width"] + column)
            value = np.where(zero, _F32(0), planes[:, :, place])
            best = np.where(~absent & (value > best), value, best)
    return [best]

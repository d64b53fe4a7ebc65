"""region_bins: regions of images [N, C, H, W] as averages, or largest products, over bins sampled between pixels.

Inputs: x, regions [R, 4] (left, top, right, bottom) in units of 1 / `spatial_scale` pixels, and their images [R]. Every
bin has `sampling_ratio`^2 samples (ceil(size of a bin) per side where it is 0); a sample is the sum of four neighbours
times their weights, and for `maximum` each product counts by itself. Products and sums go by slot `multiply_add`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from ..core.stopping import check_stop

_MOST_SAMPLES = 1 << 12


def infer(call: Call) -> list[Shape]:
    """[R, C, bins down, bins across]."""
    call.expect(3)
    x, regions, images = call.input(0), call.input(1, "regions"), call.input(2, "images")
    call.rank(x, 4)
    call.rank(regions, 2)
    if regions.shape[1] != 4 or images.shape != regions.shape[:1]:
        shapes = f"{list(regions.shape)} and {list(images.shape)}"
        raise call.invalid("BT-ROI-BOXES", f"regions and their images have shapes {shapes}, expected [R, 4] and [R]")
    bins = tuple(call.attribute("bins"))
    if min(bins) < 1 or int(call.attribute("sampling_ratio")) < 0:
        raise call.invalid("BT-ROI-BINS", f"{bins} bins: there must be at least 1, and at least 0 samples")
    if 0 in x.shape[2:] and regions.shape[0]:
        raise call.invalid("BT-SHAPE-EMPTY", f"images of shape {list(x.shape)} have no pixel to read")
    return [bounded(call, (regions.shape[0], x.shape[1], *bins))]


def lower(call: Call) -> Lowered:
    """The attributes."""
    return Lowered(
        {
            "bins": tuple(call.attribute("bins")),
            "sampling_ratio": int(call.attribute("sampling_ratio")),
            "spatial_scale": float(np.float32(call.attribute("spatial_scale"))),
            "half_pixel": bool(call.attribute("half_pixel")),
            "maximum": bool(call.attribute("maximum")),
        },
        work=4 * call.output.size,
    )


def _count(step: Step, bin_size: np.floating) -> int:
    """Samples along a side of a bin; regions whose ends are exchanged have none."""
    return step["sampling_ratio"] or max(int(np.ceil(bin_size)), 0)


def _samples(step: Step, start: np.floating, length: np.floating, axis: int, size: int) -> tuple[np.ndarray, ...]:
    """Whether samples lie near the image, their two pixels and the weight of the second: [bins, samples] each."""
    bins, real = step["bins"][axis], type(start)
    bin_size = length / real(bins)
    if not abs(bin_size) <= _MOST_SAMPLES:
        raise RunError(
            "BT-ROI-BINS", f"a bin is {bin_size} pixels long", place=step.place, advice="regions must be smaller"
        )
    count = _count(step, bin_size)
    add = multiply_add.RULES[step.rules["multiply_add"]].apply
    offsets = (np.arange(count, dtype=real) + real(0.5)) * bin_size / real(max(count, 1))
    at = add(np.arange(bins, dtype=real), bin_size, start)[:, None] + offsets
    near = ~((at < -1) | (at > size))
    at = np.where(near & (at > 0), at, real(0))
    low = at.astype(np.int64)
    last = low >= size - 1
    low = np.where(last, size - 1, low)
    high = np.where(last, low, low + 1)
    return near, low, high, np.where(last, real(0), at - low.astype(real))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Region by region; samples outside of an image count as four products of its first pixel and 0."""
    x, regions, images = inputs
    height, width = x.shape[2:]
    real = x.dtype.type
    scale, offset = real(step["spatial_scale"]), real(0.5 if step["half_pixel"] else 0)
    out = np.zeros((regions.shape[0], x.shape[1], *step["bins"]), real)
    rule = multiply_add.RULES[step.rules["multiply_add"]]
    if ((images < 0) | (images >= x.shape[0])).any():
        raise RunError(
            "BT-ROI-IMAGE",
            f"a region lies in image {int(images[(images < 0) | (images >= x.shape[0])][0])} of {x.shape[0]}",
            place=step.place,
            advice="number the images from 0",
        )
    for number, (region, image) in enumerate(zip(regions, images, strict=True)):
        check_stop()
        with np.errstate(all="ignore"):
            left, top, right, bottom = rule.apply(region, scale, -offset)
            across, down = right - left, bottom - top
            if not step["half_pixel"]:
                across, down = max(across, real(1)), max(down, real(1))
            if not step["sampling_ratio"] and across * down < 0:
                sizes = [math.ceil(across / real(step["bins"][1])), math.ceil(down / real(step["bins"][0]))]
                if min(sizes) < 0 < max(sizes):
                    raise RunError(
                        "BT-ROI-BOXES",
                        f"region {number} has one side of negative length",
                        place=step.place,
                        advice="give left before right and top before bottom, or a sampling ratio",
                    )
            near_y, low_y, high_y, part_y = _samples(step, top, down, 0, height)
            near_x, low_x, high_x, part_x = _samples(step, left, across, 1, width)
            total: np.ndarray = np.zeros((x.shape[1], *step["bins"]), real)
            first = True
            for iy in range(near_y.shape[1]):
                for ix in range(near_x.shape[1]):
                    near = near_y[:, iy, None] & near_x[None, :, ix]
                    ly, lx = part_y[:, iy, None], part_x[None, :, ix]
                    factors = []
                    for y, wy in ((low_y, real(1) - ly), (high_y, ly)):
                        for column, wx in ((low_x, real(1) - lx), (high_x, lx)):
                            rows = np.where(near, y[:, iy, None], 0)
                            columns = np.where(near, column[None, :, ix], 0)
                            weights = np.where(near, wy * wx, real(0))
                            factors.append((weights, x[image][:, rows, columns]))
                    if step["maximum"]:
                        products = [weights * pixels for weights, pixels in factors]
                        best = products[0]
                        for product in products[1:]:
                            best = np.where(best < product, product, best)
                        total = best if first else np.where(total < best, best, total)
                    else:
                        pair = rule.pair(*factors[0], *factors[1])
                        total = total + rule.apply(*factors[3], rule.apply(*factors[2], pair))
                    first = False
            count = max(near_y.shape[1] * near_x.shape[1], 1)
            out[number] = total if step["maximum"] else total / real(count)
    return [out]


OPERATOR = Operator(
    "region_bins", ("multiply_add",), infer, lower, reference, "regions of images as averages over bins"
)

"""region_maxima: regions of images [N, C, H, W] as the largest pixels of bins.

Inputs: x, regions [R, 5] (image, left, top, right, bottom), in units of 1 / `spatial_scale` pixels, rounded to pixels,
halves away from 0. Bins overlap where pixels are shared; one without pixels is 0. A maximum begins with the lowest
finite number of binary32, and takes every pixel, in row-major order, that is not below it.

Source: ONNX Runtime 1.31.1, onnxruntime/core/providers/cpu/nn/roi_pool.cc, and what it computes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from ..core.stopping import check_stop

_F32 = np.float32
_LOWEST = np.finfo(_F32).min
# Pixels count as int in the runtime.
_MOST = _F32(1 << 24)


def infer(call: Call) -> list[Shape]:
    """[R, C, bins down, bins across]."""
    call.expect(2)
    x, regions = call.input(0), call.input(1, "regions")
    call.rank(x, 4)
    call.rank(regions, 2)
    bins = tuple(int(size) for size in call.attribute("bins"))
    if regions.shape[1] != 5 or len(bins) != 2 or min(bins) < 1:
        raise call.invalid(
            "BT-ROI-BOXES", f"regions of shape {list(regions.shape)} in {list(bins)} bins, expected [R, 5] and 2 sizes"
        )
    scale = float(call.attribute("spatial_scale"))
    if not scale > 0:
        raise call.invalid("BT-ROI-SCALE", f"spatial_scale is {scale!r}, it must be above 0")
    return [bounded(call, (regions.shape[0], x.shape[1], *bins))]


def lower(call: Call) -> Lowered:
    """The attributes."""
    bins = tuple(int(size) for size in call.attribute("bins"))
    scale = float(_F32(call.attribute("spatial_scale")))
    return Lowered({"bins": bins, "spatial_scale": scale}, work=call.output.size)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Halves away from 0."""
    whole = np.trunc(values)
    return whole + np.sign(values) * (np.abs(values - whole) >= _F32(0.5))


def _bins(first: int, last: int, bins: int, size: int) -> list[tuple[int, int]]:
    """Begin and end of every bin, within the image."""
    length = _F32(max(last - first + 1, 1)) / _F32(bins)
    numbers = np.arange(bins + 1, dtype=_F32) * length
    begins, ends = np.floor(numbers[:-1]).astype(int), np.ceil(numbers[1:]).astype(int)
    return [
        tuple(np.clip((begin + first, end + first), 0, size).tolist()) for begin, end in zip(begins, ends, strict=True)
    ]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Region by region."""
    x, regions = inputs
    out = np.zeros((regions.shape[0], x.shape[1], *step["bins"]), _F32)
    for number, region in enumerate(regions):
        check_stop()
        with np.errstate(all="ignore"):
            places = _rounded(region[1:] * _F32(step["spatial_scale"]))
        if not (-1 < region[0] < x.shape[0]) or not (np.abs(places) < _MOST).all():
            raise RunError(
                "BT-ROI-IMAGE",
                f"region {number} is {region.tolist()} of {x.shape[0]} images",
                place=step.place,
                advice="number the images from 0, and give finite regions",
            )
        left, top, right, bottom = (int(place) for place in places)
        rows, columns = _bins(top, bottom, step["bins"][0], x.shape[2]), _bins(left, right, step["bins"][1], x.shape[3])
        for i, (begin, end) in enumerate(rows):
            for j, (start, stop) in enumerate(columns):
                if end > begin and stop > start:
                    pixels = x[int(region[0]), :, begin:end, start:stop].reshape(
                        x.shape[1], (end - begin) * (stop - start)
                    )
                    kept = np.full(x.shape[1], _LOWEST)
                    for pixel in pixels.T:
                        kept = np.where(pixel < kept, kept, pixel)
                    out[number, :, i, j] = kept
    return [out]


OPERATOR = Operator("region_maxima", (), infer, lower, reference, "regions of images as largest pixels of bins")

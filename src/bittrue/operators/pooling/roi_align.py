"""roi_align: boxes of an image [N, H, W, C] as averages over bins, which are sampled between pixels.

Inputs: x u8, boxes f32 [R, 4] (left, top, right, bottom) or [R, 5] (image, left, top, right, bottom), in units of
1 / `spatial_scale` pixels. Every bin is the average of `sampling_ratio`^2 samples (ceil(size of a bin) of them per
side where it is 0); every sample is the sum of four neighbours times 8-bit weights, less 255 times the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import accumulate, corner_weights, rescale, store
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from ..core.stopping import check_stop

_F32 = np.float32
# Samples along one side of one bin.
_MOST_SAMPLES = 1 << 12
_MOST_BINS = 1 << 16


def infer(call: Call) -> list[Shape]:
    """[R, pooled_h, pooled_w, C]."""
    call.expect(2)
    source, boxes = call.input(0), call.input(1, "boxes")
    call.rank(source, 4)
    call.rank(boxes, 2)
    if boxes.shape[1] not in (4, 5):
        raise call.invalid("BT-ROI-BOXES", f"boxes have shape {list(boxes.shape)}, expected 4 or 5 numbers each")
    height, width = int(call.attribute("pooled_h")), int(call.attribute("pooled_w"))
    scale, samples = float(call.attribute("spatial_scale")), int(call.attribute("sampling_ratio"))
    if not (1 <= height <= _MOST_BINS and 1 <= width <= _MOST_BINS and 0 <= samples <= _MOST_SAMPLES):
        raise call.invalid(
            "BT-ROI-BINS", f"{height} x {width} bins of {samples} samples per side: bins must be at least 1, samples 0"
        )
    if not (0 < scale < float("inf")):
        raise call.invalid("BT-ROI-SCALE", f"spatial_scale is {scale!r}, it must be finite and above 0")
    if 0 in source.shape[:3] and boxes.shape[0]:
        raise call.invalid("BT-SHAPE-EMPTY", f"images of shape {list(source.shape)} have no pixel to read")
    return [bounded(call, (boxes.shape[0], height, width, source.shape[3]))]


def lower(call: Call) -> Lowered:
    """Geometry and zero points; multipliers depend on the boxes and are made while running."""
    source, output = call.input(0), call.output
    height, width = int(call.attribute("pooled_h")), int(call.attribute("pooled_w"))
    return Lowered(
        parameters={
            "pooled_h": height,
            "pooled_w": width,
            "spatial_scale": float(call.attribute("spatial_scale")),
            "sampling_ratio": int(call.attribute("sampling_ratio")),
            "input_scale": float(source.scale),
            "output_scale": float(output.scale),
            "input_zero_point": source.zero_point,
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
        },
        work=output.size * 4 * max(1, int(call.attribute("sampling_ratio"))) ** 2,
        scratch=64 * height * width * (source.shape[3] + 8),
    )


def _places(start: np.float32, size: np.float32, bins: int, samples: int) -> np.ndarray:
    """start + bin * size + (sample + 1/2) * size / samples, each operation in binary32, [bins, samples]."""
    bin_at = start + np.arange(bins).astype(_F32) * size
    inside = (np.arange(samples).astype(_F32) + _F32(0.5)) * size / _F32(samples)
    return bin_at[:, None] + inside


def _neighbours(places: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions below and above, the fraction between them, and whether the place counts."""
    counts = ~((places < -1) | (places > size))
    at = np.where(counts, np.where(places <= 0, _F32(0), places), _F32(0))
    low = at.astype(np.int64)
    last = low >= size - 1
    low = np.where(last, size - 1, low)
    high = np.where(last, size - 1, low + 1)
    fraction = np.where(last, _F32(0), at - low.astype(_F32))
    return low, high, fraction, counts


def _samples(step: Step, size: np.float32, bins: int) -> int:
    """Samples along one side of a bin."""
    given = int(step["sampling_ratio"])
    wanted = float(np.ceil(size / _F32(bins))) if not given else float(given)
    if not 1 <= wanted <= _MOST_SAMPLES:
        raise RunError(
            "BT-RUN-ROI",
            f"a box of {float(size)!r} pixels takes {wanted!r} samples per bin, at most {_MOST_SAMPLES} are made",
            place=step.place,
            advice="check the boxes",
        )
    return int(wanted)


def _prepared(step: Step, count: int) -> rescale.Prepared:
    """The multiplier f64(input scale) / (f64(output scale) * 255 * samples), which must lie below 1."""
    real = step["input_scale"] / (step["output_scale"] * float(corner_weights.ONE) * float(_F32(count)))
    prepared = rescale.prepare(step.rules["rescale"], real) if 0 < real < 1 else None
    if prepared is None or int(prepared["exponent"]) > 0:
        raise RunError(
            "BT-RUN-ROI", f"the multiplier of a box is {real!r}, it must lie above 0 and below 1", place=step.place
        )
    return prepared


def _box(step: Step, x: np.ndarray, box: np.ndarray) -> np.ndarray:
    """One box, [pooled_h, pooled_w, C]."""
    image = 0
    if box.size == 5:
        number = float(box[0])
        if not -1 < number < x.shape[0]:
            raise RunError("BT-RUN-ROI", f"a box of image {number!r}, there are {x.shape[0]}", place=step.place)
        image, box = int(number), box[1:]
    if not np.isfinite(box).all():
        raise RunError("BT-RUN-ROI", f"a box of {box.tolist()}", place=step.place, advice="boxes must be finite")
    with np.errstate(over="ignore", invalid="ignore"):
        left, top, right, bottom = (box * _F32(step["spatial_scale"])).astype(_F32)
        height, width = max(bottom - top, _F32(1)), max(right - left, _F32(1))
        samples_h, samples_w = _samples(step, height, step["pooled_h"]), _samples(step, width, step["pooled_w"])
        rows = _places(top, height / _F32(step["pooled_h"]), step["pooled_h"], samples_h)
        columns = _places(left, width / _F32(step["pooled_w"]), step["pooled_w"], samples_w)
    if np.isnan(rows).any() or np.isnan(columns).any():
        raise RunError("BT-RUN-ROI", f"a box of {box.tolist()} has no finite dimension", place=step.place)
    count = samples_h * samples_w
    prepared = _prepared(step, count)
    weigh = corner_weights.RULES[step.rules["corner_weights"]]
    acc = np.zeros((step["pooled_h"], step["pooled_w"], x.shape[3]), np.int64)
    for i in range(samples_h):
        y_low, y_high, down, y_counts = _neighbours(rows[:, i], x.shape[1])
        for j in range(samples_w):
            x_low, x_high, across, x_counts = _neighbours(columns[:, j], x.shape[2])
            grid = np.broadcast_arrays(down[:, None], across[None, :])
            weights = weigh(*grid) * (y_counts[:, None] & x_counts[None, :])[..., None]
            corners = ((y_low, x_low), (y_low, x_high), (y_high, x_low), (y_high, x_high))
            for corner, (at_y, at_x) in enumerate(corners):
                acc += weights[..., corner, None] * x[image][at_y[:, None], at_x[None, :]].astype(np.int64)
            acc -= corner_weights.ONE * step["input_zero_point"]
    acc = accumulate.RULES[step.rules["accumulate"]].finish(acc)
    rescaled = rescale.apply(step.rules["rescale"], acc, prepared)
    finish = store.RULES[step.rules["store"]]
    return finish(rescaled, step["output_zero_point"], step["low"], step["high"]).astype(x.dtype)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Box by box."""
    x, boxes = inputs
    out = np.empty((boxes.shape[0], step["pooled_h"], step["pooled_w"], x.shape[3]), x.dtype)
    for number, box in enumerate(boxes):
        check_stop()
        out[number] = _box(step, x, box)
    return [out]


OPERATOR = Operator(
    "roi_align",
    ("corner_weights", "accumulate", "rescale", "store"),
    infer,
    lower,
    reference,
    "boxes as averages over bins",
)

"""mel_weights: triangles that gather the bins of a spectrum to bands of the mel scale.

Inputs, one number each: bands, samples of the transform, samples per second, the lowest and the highest frequency. The
result is [samples / 2 + 1, bands].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import DATA_TYPES
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

_F32 = np.float32


def _corners(call: Call) -> tuple[int, int, list[int]]:
    """Bins, bands, and the bins at which triangles begin, peak and end, in binary64."""
    for position in range(5):
        if call.input(position).size != 1:
            raise call.invalid("BT-MEL", f"input {position} must be one number")
    bands, samples, rate = (call.integers(position, "count")[0] for position in range(3))
    low, high = (float(_F32(call.value(position, "frequency").reshape(-1)[0])) for position in (3, 4))
    bins = samples // 2 + 1
    if bands < 1 or samples < 1 or rate < 1 or bands > 1 << 16 or not (math.isfinite(low) and math.isfinite(high)):
        raise call.invalid("BT-MEL", f"{bands} bands of {samples} samples at {rate} per second from {low} to {high}")
    ends = [math.floor(_F32(_F32(samples + 1) * _F32(end)) / _F32(rate)) for end in (low, high)]
    if not all(0 <= end < bins for end in ends) or low > high:
        raise call.invalid("BT-MEL", f"frequencies from {low} to {high} are outside of the {bins} bins")
    first, last = (2595 * math.log10(1 + end / 700) for end in (low, high))
    step = (last - first) / (bands + 2)
    hertz = [700 * (math.pow(10, (first + step * i) / 2595) - 1) for i in range(bands + 2)]
    corners = [math.floor((samples + 1) * value / rate) for value in hertz]
    if not 0 <= min(corners) <= max(corners) < bins:
        raise call.invalid("BT-MEL", f"triangles reach bin {max(corners)} of {bins}")
    return bins, bands, corners


def infer(call: Call) -> list[Shape]:
    """[bins, bands]."""
    call.expect(5)
    return [bounded(call, _corners(call)[:2])]


def lower(call: Call) -> Lowered:
    """The corners."""
    bins, bands, corners = _corners(call)
    return Lowered({"bins": bins, "bands": bands, "corners": tuple(corners), "type": call.output.dtype}, inputs=())


def reference(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Quotients in the type of the result; a triangle without a left side is 1 at its peak."""
    dtype = DATA_TYPES[step["type"]].numpy
    out = np.zeros((step["bins"], step["bands"]), dtype)
    corners = step["corners"]
    for band, (left, peak, right) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
        if left == peak:
            out[peak, band] = 1
        else:
            out[left : peak + 1, band] = (np.arange(peak + 1 - left).astype(dtype) / dtype.type(peak - left)).astype(
                dtype
            )
        if right > peak:
            out[peak:right, band] = (np.arange(right - peak, 0, -1).astype(dtype) / dtype.type(right - peak)).astype(
                dtype
            )
    return [out]


OPERATOR = Operator("mel_weights", (), infer, lower, reference, "triangles of the mel scale")

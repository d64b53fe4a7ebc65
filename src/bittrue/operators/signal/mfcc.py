"""mfcc: mel-frequency cepstral coefficients of squared-magnitude spectra, computed in binary64 and rounded once.

    m[c]   = sum over bins of sqrt(in[bin]) * weight of the bin in channel c
    out[i] = sum over c of sqrt(2 / channels) * cos(pi / channels * i * (c + 1/2)) * log(max(m[c], 1e-12))

Channels are triangles that overlap by halves, evenly spaced by mel(f) = 1127 log(1 + f / 700). With the rule
`rounded_once` the products of their distances, and of cosines that fill no whole four, are joined with their sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ...arithmetic.floats import fused_multiply_add_64
from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step

_FLOOR = 1e-12
# Spectra per block: an array of them per bin or per channel stays small.
_BLOCK = 4096
_MOST_COSINES = 1 << 20


def infer(call: Call) -> list[Shape]:
    """Spectra [channels, times, bins] and a sample rate give [channels, times, coefficients]."""
    call.expect(2)
    source, rate = call.input(0), call.input(1)
    call.rank(source, 3)
    if rate.size != 1:
        raise call.invalid(
            "BT-MFCC", f"the sample rate '{rate.name}' must be one number, found shape {list(rate.shape)}"
        )
    coefficients = call.attribute("dct_coefficient_count")
    if coefficients < 0:
        raise call.invalid("BT-MFCC", f"dct_coefficient_count is {coefficients}")
    return [(*source.shape[:2], coefficients)]


def _mel(frequency: float) -> float:
    return 1127.0 * math.log1p(frequency / 700.0)


@lru_cache(maxsize=16)
def _filters(
    bins: int, rate: int, channels: int, low: float, high: float, joined: bool
) -> tuple[int, list[float], list[int]] | None:
    """First used bin; for every used bin its weight and the channel on whose falling side it lies (-1: none yet).

    None where bins are used that the spectra do not have.
    """
    start_of = _mel(low)
    spacing = (_mel(high) - start_of) / float(channels + 1)
    places_of = np.arange(1, channels + 2)
    centers = (
        fused_multiply_add_64(spacing, places_of, start_of) if joined else start_of + spacing * places_of
    ).tolist()
    width = 0.5 * rate / float(bins - 1)
    start, end = int(1.5 + low / width), int(high / width)
    if end >= bins:
        return None
    weights, places, channel = [], [], 0
    for i in range(start, end + 1):
        mel = _mel(i * width)
        while channel < channels and centers[channel] < mel:
            channel += 1
        below = centers[channel - 1] if channel else start_of
        weights.append((centers[channel] - mel) / (centers[channel] - below))
        places.append(channel - 1)
    return start, weights, places


def lower(call: Call) -> Lowered:
    """The limits, and the cosines."""
    source = call.input(0)
    bins, coefficients = source.shape[2], call.output.shape[2]
    channels = call.attribute("filterbank_channel_count")
    if not call.output.size:
        return Lowered(parameters={"shape": tuple(call.output.shape)}, work=0)
    # The kernel reads the limits as integers and keeps them in binary32.
    low, high = (float(np.float32(call.attribute(f"{end}_frequency_limit"))) for end in ("lower", "upper"))
    if channels < coefficients:
        raise call.invalid("BT-MFCC", f"{coefficients} coefficients of {channels} channels are not possible")
    if channels * coefficients > _MOST_COSINES:
        raise call.unsupported("BT-MFCC", f"{coefficients} coefficients of {channels} channels are too many")
    if bins < 2:
        raise call.invalid("BT-MFCC", f"'{source.name}' has spectra of {bins} bins, expected 2 or more")
    if not 0 <= low < high:
        raise call.invalid("BT-MFCC", f"the frequency limits {low} and {high} enclose nothing")
    norm, angle = math.sqrt(2.0 / channels), math.atan(1.0) * 4.0 / channels
    cosines = [[norm * math.cos(i * angle * (j + 0.5)) for j in range(channels)] for i in range(coefficients)]
    return Lowered(
        parameters={"channels": channels, "low": low, "high": high, "shape": tuple(call.output.shape)},
        arrays={"cosines": np.array(cosines, np.float64)},
        work=source.size + call.output.size * channels,
        scratch=8 * _BLOCK * (bins + 2 * channels + coefficients),
    )


def _joined(step: Step) -> bool:
    return step.rules["multiply_add"] == "rounded_once"


def _coefficients(step: Step, spectra: np.ndarray, filters: tuple[int, list[float], list[int]]) -> np.ndarray:
    (start, weights, places), channels = filters, step["channels"]
    sums = np.zeros((len(spectra), channels), np.float64)
    for position, (weight, falling) in enumerate(zip(weights, places, strict=True)):
        magnitude = np.sqrt(spectra[:, start + position].astype(np.float64))
        weighted = magnitude * weight
        if falling >= 0:
            sums[:, falling] += weighted
        if falling + 1 < channels:
            sums[:, falling + 1] += magnitude - weighted
    floored = np.where(sums < _FLOOR, _FLOOR, sums)
    # NumPy's logarithm depends on the processor.
    logs = np.array([math.log(v) if 0 < v < math.inf else v for v in floored.reshape(-1).tolist()]).reshape(sums.shape)
    out = np.zeros((len(spectra), len(step.arrays["cosines"])), np.float64)
    joined_from = channels // 4 * 4 if _joined(step) else channels
    for channel in range(channels):
        cosines, log = step.arrays["cosines"][:, channel], logs[:, channel : channel + 1]
        out = out + cosines * log if channel < joined_from else fused_multiply_add_64(cosines, log, out)
    return out.astype(np.float32)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Bins, then channels, one after the other; all spectra of a block at once.

    Without the bins that the upper limit asks for, the coefficients are 0.
    """
    x, rate = inputs[0], int(inputs[1].reshape(-1)[0])
    if 0 in step["shape"]:
        return [np.zeros(step["shape"], np.float32)]
    if rate <= 0 or 2 * step["high"] * (x.shape[-1] - 1) / rate >= 2**31 - 2:
        raise RunError(
            "BT-RUN-MFCC",
            f"the sample rate is {rate}, which gives no bins for frequencies up to {step['high']}",
            place=step.place,
            advice="pass the sample rate of the recording",
        )
    filters = _filters(x.shape[-1], rate, step["channels"], step["low"], step["high"], _joined(step))
    if filters is None:
        return [np.zeros(step["shape"], np.float32)]
    spectra = x.reshape(-1, x.shape[-1])
    out = np.empty((len(spectra), step["shape"][2]), np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, len(spectra), _BLOCK):
            out[start : start + _BLOCK] = _coefficients(step, spectra[start : start + _BLOCK], filters)
    return [out.reshape(step["shape"])]


OPERATOR = Operator(
    "mfcc", ("multiply_add",), infer, lower, reference, "mel-frequency cepstral coefficients of spectra"
)

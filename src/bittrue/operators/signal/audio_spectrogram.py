"""audio_spectrogram: squared magnitudes, or magnitudes, of the frequencies in windows of samples.

Each window of `window_size` samples is multiplied by 1/2 - 1/2 cos(2 pi j / window_size), filled up with zeros to a
power of two and transformed in binary64; re^2 + im^2 is rounded to binary32, and so is its root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic import fourier
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step

# Bytes of intermediate results at a time.
_BLOCK = 1 << 22
_LONGEST = 1 << 20


def infer(call: Call) -> list[Shape]:
    """Samples [times, channels] give [channels, windows, frequencies]."""
    call.expect(1)
    source = call.input(0)
    call.rank(source, 2)
    window, stride = call.attribute("window_size"), call.attribute("stride")
    if window < 2 or stride < 1:
        raise call.invalid("BT-SPECTROGRAM", f"windows of {window} samples, {stride} apart, are not possible")
    if window > _LONGEST:
        raise call.unsupported("BT-SPECTROGRAM", f"windows of {window} samples are too long, at most {_LONGEST}")
    times, channels = source.shape
    windows = 0 if times < window else 1 + (times - window) // stride
    return [(channels, windows, _length(window) // 2 + 1)]


def _length(window: int) -> int:
    return 1 << (window - 1).bit_length()


def lower(call: Call) -> Lowered:
    """The window's weights."""
    window = call.attribute("window_size")
    pi = math.atan(1.0) * 4.0
    weights = [0.5 - 0.5 * math.cos((2.0 * pi * j) / window) for j in range(window)]
    length = _length(window)
    return Lowered(
        parameters={
            "stride": call.attribute("stride"),
            "length": length,
            "squared": bool(call.attribute("magnitude_squared")),
            "shape": tuple(call.output.shape),
        },
        arrays={"weights": np.array(weights, np.float64)},
        work=call.output.size * length.bit_length(),
        scratch=8 * max(_BLOCK, 16 * length),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Some windows at a time, of one channel or of several."""
    weights, length = step.arrays["weights"], step["length"]
    channels, windows, frequencies = step["shape"]
    rule = multiply_add.RULES[step.rules["multiply_add"]]
    out = np.zeros(step["shape"], np.float32)
    if not out.size:
        return [out]
    per_block = max(1, _BLOCK // (16 * length))
    together = max(1, per_block // windows)
    samples = np.ascontiguousarray(inputs[0].T)
    taken = np.lib.stride_tricks.sliding_window_view(samples, len(weights), axis=1)[:, :: step["stride"]]
    with np.errstate(all="ignore"):
        for channel in range(0, channels, together):
            for start in range(0, windows, per_block):
                part = taken[channel : channel + together, start : start + per_block]
                block = np.zeros((*part.shape[:2], length), np.float64)
                block[..., : len(weights)] = part * weights
                z = fourier.real_transform(block, rule is multiply_add.RULES["rounded_once"])
                power = np.zeros((*part.shape[:2], frequencies), np.float64)
                power[..., :-1] = rule.apply(z[0], z[0], z[1] * z[1])
                power[..., 0], power[..., -1] = z[0, ..., 0] * z[0, ..., 0], z[1, ..., 0] * z[1, ..., 0]
                out[channel : channel + together, start : start + per_block] = power.astype(np.float32)
        return [out if step["squared"] else np.sqrt(out)]


OPERATOR = Operator(
    "audio_spectrogram", ("multiply_add",), infer, lower, reference, "magnitudes of frequencies in windows of samples"
)

"""Layers for the faulty device, and the faults that are planted into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from . import faulty_device as device


def layer_of(kind: str, seed: int = 0, **fields: Any) -> tuple[device.Layer, tuple[int, ...]]:
    """A layer with odd padding and different channels, and the shape of its input."""
    rng = np.random.default_rng(seed)
    channels, filters, size, stride, taps, dilation = 4, 6, (9, 8), (2, 2), (3, 3), (1, 1)
    stride = fields.pop("stride", stride)
    dilation = fields.pop("dilation", dilation)
    size = fields.pop("size", size)
    filters = fields.pop("filters", filters)
    channels = fields.pop("channels", channels)
    shapes = {"conv": (filters, *taps, channels), "depthwise": (1, *taps, channels), "dense": (filters, 40)}
    weights = rng.integers(-128, 128, shapes[kind]).astype(np.int8)
    weights.reshape(-1)[::13] = -128
    outs = channels if kind == "depthwise" else filters
    scales = rng.uniform(0.004, 0.012, outs).astype(np.float32)
    bias = rng.integers(-3000, 3000, outs).astype(np.int32)
    out_size, pads = [], []
    for axis in range(2):
        reach = (taps[axis] - 1) * dilation[axis] + 1
        out = -(-size[axis] // stride[axis])
        total = max(0, (out - 1) * stride[axis] + reach - size[axis])
        out_size.append(out)
        pads += [total // 2, total - total // 2]
    layer = device.Layer(
        kind,
        weights,
        bias,
        0.05,
        -11,
        scales,
        *(0.11, 9) if kind != "dense" else (0.21, 9),
        stride=stride,
        dilation=dilation,
        pads=tuple(pads) if kind != "dense" else (0, 0, 0, 0),
        out_size=tuple(out_size),
    )
    layer = replace(layer, **fields)
    return layer, (2, *size, channels) if kind != "dense" else (7, 40)


def wrong(**fields: Any) -> Callable[[device.Layer, np.ndarray], np.ndarray]:
    """The device with wrong parameters: values, or functions of the right ones."""

    def run(layer: device.Layer, x: np.ndarray) -> np.ndarray:
        changed = {k: v(getattr(layer, k)) if callable(v) else v for k, v in fields.items()}
        return device.run(replace(layer, **changed), x)

    return run


def way(**ways: Any) -> Callable[[device.Layer, np.ndarray], np.ndarray]:
    """The device with another way to compute."""
    return lambda layer, x: device.run(layer, x, **ways)


def _minus_128(layer: device.Layer, x: np.ndarray) -> np.ndarray:
    return device.run(replace(layer, weights=np.maximum(layer.weights, -127)), x)


def _unsigned_weights(layer: device.Layer, x: np.ndarray) -> np.ndarray:
    return device.run(replace(layer, weights=layer.weights.view(np.uint8).astype(np.int64)), x)


def _edges(layer: device.Layer, x: np.ndarray) -> np.ndarray:
    top, bottom, left, right = layer.pads
    wide = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), mode="edge")
    return device.run(replace(layer, pads=(0, 0, 0, 0)), wide)


def _clamp_first(layer: device.Layer, value: np.ndarray) -> np.ndarray:
    low, high = device.ends(layer)
    return np.clip(np.clip(value, low, high) + layer.out_zero, -128, 127)


def _saturate_first(layer: device.Layer, value: np.ndarray) -> np.ndarray:
    return np.clip(np.clip(value, -128, 127) + layer.out_zero, *device.ends(layer))


def _wraps(layer: device.Layer, value: np.ndarray) -> np.ndarray:
    return value + layer.out_zero


def seven_bits(layer: device.Layer, value: np.ndarray) -> np.ndarray:
    return np.clip(value + layer.out_zero, -64, 63)


def _symmetric(layer: device.Layer, value: np.ndarray) -> np.ndarray:
    return np.clip(value + layer.out_zero, -127, 127)


def _high_then_floor(acc: int, m: int, e: int) -> int:
    """The doubling high product, and a right shift that forgets to round."""
    return ((acc * m + (1 << 30)) >> 31) >> -e


def _bias_behind(layer: device.Layer, x: np.ndarray) -> np.ndarray:
    ms = device.multipliers(layer)
    rounding = device.usual_rounding(layer)
    value = device.each(rounding, device.sums(layer, x), ms)
    value = value + device.each(rounding, layer.bias.astype(np.int64)[None], ms)
    return np.clip(value + layer.out_zero, *device.ends(layer)).astype(np.int8)


def _ohwi_as_hwio(w: np.ndarray) -> np.ndarray:
    o, h, v, i = w.shape
    return w.reshape(h, v, i, o).transpose(3, 0, 1, 2)


# name of the cause, kind of layer, what differs in the layer itself, the device
LAYERS: list[tuple[str, str, dict[str, Any], Any]] = [
    ("input zero point ignored", "conv", {}, wrong(in_zero=0)),
    ("input zero point ignored", "conv", {}, lambda layer, x: device.run(replace(layer, in_zero=0), x, pad_with=-11)),
    ("input zero point one too large", "depthwise", {}, wrong(in_zero=lambda z: z + 1)),
    ("input zero point negated", "conv", {}, wrong(in_zero=lambda z: -z)),
    ("input zero point 128 too large", "dense", {}, wrong(in_zero=lambda z: z + 128)),
    ("input zero point taken from the output", "depthwise", {}, wrong(in_zero=9)),
    ("output zero point ignored", "conv", {}, wrong(out_zero=0)),
    ("output zero point ignored", "conv", {"activation": "relu"}, wrong(out_zero=0)),
    ("output zero point negated", "dense", {}, wrong(out_zero=lambda z: -z)),
    ("output zero point one too small", "depthwise", {}, wrong(out_zero=lambda z: z - 1)),
    ("padding with quantized value 0", "conv", {}, way(pad_with=0)),
    ("padding with quantized value 0", "depthwise", {}, way(pad_with=0)),
    ("padding with quantized value -128", "conv", {}, way(pad_with=-128)),
    ("padding swapped: left and right", "conv", {}, wrong(pads=lambda p: (p[0], p[1], p[3], p[2]))),
    ("padding swapped: left and right", "depthwise", {}, wrong(pads=lambda p: (p[0], p[1], p[3], p[2]))),
    ("padding all at the end", "conv", {"stride": (1, 1)}, wrong(pads=(0, 2, 0, 2))),
    ("padding all at the beginning", "depthwise", {"stride": (1, 1)}, wrong(pads=(2, 0, 2, 0))),
    ("dilation ignored", "conv", {"stride": (1, 1), "dilation": (2, 2)}, wrong(dilation=(1, 1))),
    ("bias dropped", "conv", {}, wrong(bias=lambda b: b * 0)),
    ("bias dropped", "dense", {}, wrong(bias=lambda b: b * 0)),
    ("bias added twice", "depthwise", {}, wrong(bias=lambda b: 2 * b)),
    ("bias shifted by one channel", "conv", {}, wrong(bias=lambda b: np.roll(b, 1))),
    ("bias shifted by one channel", "dense", {}, wrong(bias=lambda b: np.roll(b, -1))),
    ("bias added after rescaling", "conv", {}, _bias_behind),
    ("bias negated", "dense", {}, wrong(bias=lambda b: -b)),
    ("weights transposed in height and width", "conv", {}, wrong(weights=lambda w: w.swapaxes(1, 2))),
    ("weights transposed in height and width", "depthwise", {}, wrong(weights=lambda w: w.swapaxes(1, 2))),
    ("weights rotated by 180 degrees", "conv", {}, wrong(weights=lambda w: w[:, ::-1, ::-1])),
    ("weights OHWI read as HWIO", "conv", {}, wrong(weights=_ohwi_as_hwio)),
    ("weights transposed", "dense", {}, wrong(weights=lambda w: w.reshape(w.shape[::-1]).T)),
    ("input channels of weights reversed", "conv", {}, wrong(weights=lambda w: w[..., ::-1])),
    ("last input channel left out", "conv", {}, wrong(weights=lambda w: w * np.int8([1, 1, 1, 0]))),
    ("weights shifted by one output channel", "depthwise", {}, wrong(weights=lambda w: np.roll(w, 1, -1))),
    ("fused activation ignored", "conv", {"activation": "relu"}, wrong(activation="none")),
    ("fused activation ignored", "depthwise", {"activation": "relu6"}, wrong(activation="none")),
    ("upper end of the activation ignored", "conv", {"activation": "relu6"}, wrong(activation="relu")),
    ("relu taken for relu6", "conv", {"activation": "relu", "out_scale": 0.09}, wrong(activation="relu6")),
    ("clamp before the zero point", "conv", {"activation": "relu"}, way(finish=_clamp_first)),
    ("clamp before the zero point", "dense", {"out_scale": 0.06}, way(finish=_saturate_first)),
    ("wraps instead of saturating", "conv", {"out_scale": 0.03}, way(finish=_wraps)),
    ("weights -128 read as -127", "dense", {}, _minus_128),
    ("weights read as unsigned", "conv", {}, _unsigned_weights),
    ("padding repeats the edge", "conv", {}, _edges),
    ("saturates to 7 bits", "depthwise", {"out_scale": 0.03}, way(finish=seven_bits)),
    ("saturates to [-127, 127]", "dense", {"out_scale": 0.06}, way(finish=_symmetric)),
    ("multiplier of channel 0 for all channels", "conv", {}, wrong(weight_scales=lambda s: s * 0 + s[0])),
    ("multipliers shifted by one channel", "depthwise", {}, wrong(weight_scales=lambda s: np.roll(s, 1))),
    ("exponent one too large", "conv", {}, way(scaled=lambda ms: [(m, e + 1) for m, e in ms])),
    ("exponent one too small", "dense", {}, wrong(weight_scales=lambda s: s / 2)),
    ("input and output scales swapped", "conv", {}, wrong(in_scale=0.11, out_scale=0.05)),
    ("accumulator wraps at 16 bits", "conv", {}, way(register=lambda a: (a + 32768) % 65536 - 32768)),
    ("accumulator saturates at 16 bits", "depthwise", {}, way(register=lambda a: np.clip(a, -32768, 32767))),
    ("exact product, floor", "conv", {}, way(rounding=device.floored)),
    ("exact product, trunc", "depthwise", {}, way(rounding=device.truncated)),
    ("two steps, ties up then floor", "conv", {"size": (17, 16)}, way(rounding=_high_then_floor)),
    ("multiplier truncated to 8 bits", "conv", {"size": (33, 40)}, way(bits=8)),
]  # fmt: skip

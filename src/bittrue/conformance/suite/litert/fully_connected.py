"""FULLY_CONNECTED: rescaling, clamps, zero points, rows of every length, kept dimensions, long sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import aiming
from ..draft import Draft, generator
from .convolution import spread_out
from .layer_models import Layer, draft, limits, zero_point
from .layer_rescaling import rescaling_cases, saturation_cases
from .layer_sums import long_sums, lowest_pairs

OPERATORS = {"FULLY_CONNECTED": ("s8", "u8", "s16", "s16-s32")}
# Shape of the input, output channels, whether there is a bias, whether dimensions are kept.
_SHAPES: tuple[tuple[tuple[int, ...], int, bool, bool], ...] = (
    ((1, 1), 1, True, False),
    ((1, 3), 4, True, False),
    ((2, 4), 3, True, False),
    ((1, 5), 8, True, False),
    ((3, 8), 5, True, False),
    ((1, 17), 17, True, False),
    ((5, 16), 16, True, False),
    ((1, 31), 9, True, False),
    ((2, 33), 33, True, False),
    ((4, 64), 1, True, False),
    ((7, 7), 7, False, False),
    ((1, 20), 13, False, False),
    ((2, 3, 5), 4, True, True),
    ((2, 3, 5), 4, True, False),
    ((2, 2, 2, 6), 3, True, True),
    ((1, 2, 3, 4), 5, False, False),
    ((1, 9), 65, True, False),
)
_POINTS = ((-128, 127), (127, -128), (127, 127), (-128, -128), (0, 0), (-5, 9))
# Input shape, channels and activation.
_RANDOM: tuple[tuple[tuple[int, int], int, str], ...] = (
    ((1, 64), 10, "NONE"),
    ((4, 32), 32, "RELU"),
    ((1, 128), 64, "RELU6"),
    ((8, 16), 16, "NONE"),
    ((2, 100), 50, "RELU"),
    ((1, 256), 100, "NONE"),
    ((4, 10), 10, "NONE"),
    ((1, 192), 64, "RELU6"),
    ((3, 48), 24, "NONE"),
    ((16, 8), 8, "RELU"),
    ((1, 400), 40, "NONE"),
    ((2, 64), 96, "NONE"),
    ((6, 24), 20, "RELU6"),
    ((1, 84), 10, "NONE"),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Rescaling, clamps, zero points, shapes, long sums, all values of weights, random ones, and what must be
    refused.
    """
    yield from rescaling_cases(operator, types)
    yield from saturation_cases(operator, types)
    for number, points in enumerate(_POINTS if limits(types)[0] != -32768 else ()):
        layer = _layer(types, (3, 11), 6, True, False, ("zero points", number), points)
        yield draft(layer, "zero points", f"zero points {layer.input_zero_point} and {layer.output_zero_point}")
    for number, (shape, channels, bias, kept) in enumerate(_SHAPES):
        if types == "s16-s32" and not bias:
            # Without a bias the accumulator has 64 bits.
            continue
        points = ((-7, 0), (-128, 30), (127, -99))[number % 3]
        layer = _layer(types, shape, channels, bias, kept, ("shapes", number), points)
        note = f"{list(shape)} to {channels}" + ("" if bias else ", no bias") + (", dimensions kept" if kept else "")
        yield draft(layer, "shapes", note)
    yield from long_sums(operator, types)
    yield _quantized_weights(types)
    yield lowest_pairs(operator, types)
    for number, (rows, channels, activation) in enumerate(_RANDOM):
        yield draft(_ordinary(types, rows, channels, activation, number), "random", f"{list(rows)} to {channels}")
    yield from _rejects(types)


def _layer(
    types: str,
    shape: tuple[int, ...],
    channels: int,
    bias: bool,
    kept: bool,
    words: tuple[object, ...],
    points: tuple[int, int],
) -> Layer:
    random = generator("FULLY_CONNECTED", types, *words)
    low, high = limits(types)
    x = random.integers(low, high + 1, shape)
    weights = random.integers(-127, 128, (channels, shape[-1]))
    first, output = aiming.generic_scales(random, 2)
    # The older version of the specification has one scale for all weights, today's one per channel.
    one = types == "u8" or words[-1] in (1, 2, 4, 7, 11)
    second = aiming.generic_scales(random, 1 if one else channels)
    weight_point = 0
    if types == "u8":
        weight_point = int(random.integers(100, 156))
        weights = np.clip(weights + weight_point, 0, 255)
    input_point, output_point = (zero_point(types, p) for p in points)
    rows = (*shape[:-1], channels) if kept else ()
    layer = Layer(
        "FULLY_CONNECTED",
        types,
        x,
        weights,
        None,
        float(first),
        second if len(second) > 1 else float(second[0]),
        float(output),
        input_point,
        weight_point,
        output_point,
        output_shape=rows,
        options={"keep_num_dims": True} if kept else {},
    )
    return spread_out(layer, bias, random)


def _quantized_weights(types: str) -> Draft:
    random = generator("FULLY_CONNECTED", types, "weights")
    low, high = limits(types)
    weights = random.permutation(256).reshape(8, 32) - (0 if types == "u8" else 128)
    x = np.where(random.integers(0, 2, (4, 32)) == 1, low, high)
    second = aiming.generic_scales(random, 1 if types == "u8" else 8)
    scale = second if len(second) > 1 else float(second[0])
    layer = Layer(
        "FULLY_CONNECTED",
        types,
        x,
        weights,
        None,
        0.5,
        scale,
        1.0,
        zero_point(types, -128),
        127 if types == "u8" else 0,
        zero_point(types, 0),
    )
    return draft(spread_out(layer, True, random), "codes", "every quantized value of the weights, inputs at both ends")


def _ordinary(types: str, rows: tuple[int, int], channels: int, activation: str, number: int) -> Layer:
    """What a random suite has: uniform quantized values, weights and biases, scales of an ordinary network."""
    random = generator("FULLY_CONNECTED", types, "random", number)
    low, high = limits(types)
    x = random.integers(low, high + 1, rows)
    weights = random.integers(-127, 128, (channels, rows[1]))
    symmetric = types.startswith("s16")
    weight_point = int(random.integers(118, 138)) if types == "u8" else 0
    if types == "u8":
        weights = np.clip(weights + weight_point, 0, 255)
    first = np.float32(random.integers(1000, 50000) / 1e6)
    second = (random.integers(2000, 12000, 1 if number % 2 or types == "u8" else channels) / 1e6).astype(np.float32)
    deviation = (high - low) / 3.5 * 73 * np.sqrt(rows[1])
    output = np.float32(float(first) * float(second.max()) * deviation * 6 / (high - low))
    return Layer(
        "FULLY_CONNECTED",
        types,
        x,
        weights,
        random.integers(-int(deviation), int(deviation) + 1, channels),
        float(first),
        second if len(second) > 1 else float(second[0]),
        float(output),
        0 if symmetric else int(random.integers(low, high + 1)),
        weight_point,
        0 if symmetric else int(random.integers(low, high + 1)),
        activation,
    )


def _rejects(types: str) -> Iterator[Draft]:
    """Models without a meaning."""
    good = _layer(types, (2, 6), 3, True, False, ("rejects", 0), (-3, 5))
    assert good.bias is not None
    why = "the bias has one element more than there are output channels"
    yield draft(replace(good, bias=np.append(good.bias, 0)), "rejects", why, rejects=why)
    why = "weights of rank 3"
    layer = replace(good, weights=good.weights.reshape(3, 2, 3), output_shape=(2, 3))
    yield draft(layer, "rejects", why, rejects=why)

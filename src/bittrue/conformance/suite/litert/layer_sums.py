"""Sums that narrow accumulators lose on the way: products of one sign first, those of the other behind them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import aiming
from ..draft import Draft, generator
from .layer_models import Layer, draft, limits, zero_point

Array = np.ndarray
# Largest products in a row: beyond 16, 18, 20 and 24 bits; the last also beyond 2^24, where binary32 loses odd sums.
_LENGTHS = {"CONV_2D": (3, 10, 40, 1300), "FULLY_CONNECTED": (3, 10, 40, 1300), "DEPTHWISE_CONV_2D": (3, 9, 40, 1225)}
CHANNELS = 12


def long_sums(operator: str, types: str) -> Iterator[Draft]:
    """Sums up to the longest, and back to where every unit counts."""
    for number, length in enumerate(_LENGTHS[operator]):
        for back in (True, False):
            random = generator(operator, types, "sums", number, back)
            layer, reached = _layer(operator, types, length, back, random)
            note = f"{length} products, partial sums up to {reached}" + (", and back to small ones" if back else "")
            yield draft(layer, "saturation", note, {"largest partial sum": reached})


def lowest_pairs(operator: str, types: str) -> Draft:
    """Neighbouring products of the lowest quantized values, whose sums of two 16 bits do not hold."""
    low, high = limits(types)
    x: Array = np.full((1, 1, 1, 4), low)
    weights: Array = np.full((CHANNELS, 1, 1, 4), 0 if types == "u8" else -128)
    if operator == "FULLY_CONNECTED":
        x, weights = x.reshape(1, 4), weights.reshape(-1, 4)
    point = high if not types.startswith("s16") else 0
    weight_point = 255 if types == "u8" else 0
    total = int(((x.reshape(-1) - point) * (int(weights.reshape(-1)[0]) - weight_point)).sum())
    bias = 1 - total + np.arange(CHANNELS) - CHANNELS // 2
    note = "neighbouring quantized values and weights are the lowest of their types; every unit of the sum counts"
    output = zero_point(types, 0)
    layer = Layer(operator, types, x, weights, bias, 0.5, 0.5, 0.5, point, weight_point, output)
    return draft(layer, "codes", note)


def _layer(operator: str, types: str, length: int, back: bool, random: np.random.Generator) -> tuple[Layer, int]:
    high = limits(types)[1]
    point = zero_point(types, -128)
    x = np.full(length, high, np.int64)
    x[1::5] = high - 1
    # Odd products make odd partial sums.
    wide_point = 128 if types == "u8" else 0
    weights = np.full((CHANNELS, length), 127, np.int64)
    weights -= random.integers(0, 4, weights.shape)
    if back:
        half = length - length // 2
        weights[:, half:] = -weights[:, : length - half]
        x[half:] = x[: length - half]
    sign = np.where(np.arange(CHANNELS) % 2 == 0, 1, -1)[:, None]
    weights *= sign
    partial = np.cumsum(weights * (x - point), axis=1)
    total, reached = partial[:, -1], int(np.abs(partial).max())
    # The bias brings the sum of every channel to a few units beside a place where the quantized value changes.
    first = float(aiming.generic_scales(random, 1)[0])
    second = float(aiming.generic_scales(random, 1)[0])
    exponent = max(2, int(np.abs(total).max()) // 60).bit_length() if not back else 1
    output = float(np.float32(first * second * 2.0**exponent))
    real = first * second / output
    code = np.trunc(np.clip(total * real, -100, 100))
    edge = np.round((code + 0.5) / real).astype(np.int64)
    bias = edge - total + np.arange(CHANNELS) - CHANNELS // 2
    shape = {"FULLY_CONNECTED": (CHANNELS, length), "CONV_2D": (CHANNELS, 1, 1, length)}
    if operator == "DEPTHWISE_CONV_2D":
        side = int(np.sqrt(length))
        kernel = (side, side) if side * side == length else (1, length)
        filters = (weights + wide_point).T.reshape(1, *kernel, CHANNELS)
        image = np.repeat(x.reshape(1, *kernel, 1), CHANNELS, axis=3)
    else:
        filters = (weights + wide_point).reshape(shape[operator])
        image = x.reshape((1, length) if operator == "FULLY_CONNECTED" else (1, 1, 1, length))
    layer = Layer(
        operator,
        types,
        image,
        filters,
        bias,
        first,
        second,
        output,
        point,
        wide_point,
        zero_point(types, 0),
    )
    return layer, reached

"""TRANSPOSE_CONV: rescaling, clamps, overlapping windows, cropped borders, channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .. import aiming
from ..draft import Draft, generator
from .convolution import spread_out
from .layer_models import Layer, draft, limits, zero_point
from .layer_rescaling import rescaling_cases

OPERATORS = {"TRANSPOSE_CONV": ("s8", "u8", "s16")}


@dataclass(frozen=True)
class _Spread:
    """Image (batch, height, width, channels), kernel, output channels, strides, padding."""

    image: tuple[int, int, int, int]
    kernel: tuple[int, int]
    channels: int
    strides: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    bias: bool = True

    def __str__(self) -> str:
        shapes = f"{'x'.join(map(str, self.image))} by {self.kernel[0]}x{self.kernel[1]} to {self.channels} channels"
        return f"{shapes}, {self.padding}, strides {self.strides[0]}, {self.strides[1]}" + (
            "" if self.bias else ", no bias"
        )


_WINDOWS = (
    _Spread((1, 4, 4, 2), (3, 3), 2),
    _Spread((1, 4, 5, 2), (3, 3), 2, padding="VALID"),
    _Spread((1, 3, 3, 2), (3, 3), 2, (2, 2)),
    _Spread((1, 3, 3, 2), (2, 2), 2, (2, 2)),
    _Spread((1, 3, 2, 2), (4, 4), 2, (2, 2)),
    _Spread((1, 3, 2, 2), (4, 3), 2, (2, 1), "VALID"),
    _Spread((1, 2, 3, 2), (2, 2), 2, (3, 3)),
    _Spread((1, 2, 2, 2), (5, 3), 2, (1, 2)),
    _Spread((1, 2, 2, 2), (3, 3), 2, (3, 2), "VALID"),
    _Spread((1, 1, 1, 3), (3, 3), 3, (2, 2)),
)
_CHANNELS = (
    _Spread((1, 2, 3, 1), (2, 2), 1),
    _Spread((2, 2, 2, 3), (2, 2), 5, (2, 2)),
    _Spread((1, 2, 2, 5), (3, 3), 8, (2, 2)),
    _Spread((1, 2, 2, 17), (1, 1), 17),
    _Spread((1, 2, 3, 8), (3, 3), 33, (2, 2)),
    _Spread((1, 3, 2, 4), (2, 3), 4, bias=False),
)
_RANDOM = (
    _Spread((1, 4, 4, 8), (3, 3), 8, (2, 2)),
    _Spread((1, 4, 4, 4), (2, 2), 8, (2, 2), "VALID"),
    _Spread((2, 3, 3, 8), (3, 3), 4),
    _Spread((1, 5, 5, 3), (4, 4), 6, (2, 2)),
    _Spread((1, 4, 6, 16), (1, 1), 8),
    _Spread((1, 3, 3, 8), (5, 5), 4, (2, 2)),
    _Spread((1, 6, 6, 2), (3, 3), 4, (2, 2), "VALID"),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Rescaling, zero points, windows, channels, random ones, and what must be refused."""
    yield from rescaling_cases(operator, types)
    for aim, spreads in (("padding", _WINDOWS), ("shapes", _CHANNELS)):
        for number, spread in enumerate(spreads):
            points = ((-128, 3), (127, -20), (-3, 127), (11, -128))[number % 4]
            yield draft(_layer(types, spread, (aim, number), points), aim, str(spread))
    for number, spread in enumerate(_RANDOM):
        random = generator(operator, types, "random", number)
        low, high = limits(types)
        layer = _layer(types, spread, ("random layer", number), (0, 0))
        if not types.startswith("s16"):
            first, second = (int(v) for v in random.integers(low, high + 1, 2))
            layer = replace(layer, input_zero_point=first, output_zero_point=second)
        yield draft(layer, "random", str(spread))
    good = _layer(types, _Spread((1, 3, 3, 2), (2, 2), 2), ("rejects", 0), (0, 0))
    why = "filters with more input channels than the image has"
    weights = np.concatenate([good.weights, good.weights[..., :1]], axis=3)
    yield draft(replace(good, weights=weights), "rejects", why, rejects=why)


def _layer(types: str, spread: _Spread, words: tuple[object, ...], points: tuple[int, int]) -> Layer:
    random = generator("TRANSPOSE_CONV", types, *words)
    low, high = limits(types)
    x = random.integers(low, high + 1, spread.image)
    weights = random.integers(-127, 128, (spread.channels, *spread.kernel, spread.image[3]))
    first, output = aiming.generic_scales(random, 2)
    second = aiming.generic_scales(random, spread.channels if types != "u8" else 1)
    weight_point = 0
    if types == "u8":
        weight_point = int(random.integers(100, 156))
        weights = np.clip(weights + weight_point, 0, 255)
    size = [
        dimension * stride if spread.padding == "SAME" else (dimension - 1) * stride + taps
        for dimension, stride, taps in zip(spread.image[1:3], spread.strides, spread.kernel, strict=True)
    ]
    layer = Layer(
        "TRANSPOSE_CONV",
        types,
        x,
        weights,
        None,
        float(first),
        second if len(second) > 1 else float(second[0]),
        float(output),
        zero_point(types, points[0]),
        weight_point,
        zero_point(types, points[1]),
        padding=spread.padding,
        strides=spread.strides,
        output_shape=(spread.image[0], size[0], size[1], spread.channels),
    )
    return spread_out(layer, spread.bias, random)

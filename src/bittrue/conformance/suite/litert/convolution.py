"""CONV_2D and DEPTHWISE_CONV_2D: rescaling, clamps, zero points in the padding, windows, channels, long sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .. import aiming
from ..draft import Draft, generator
from .layer_models import Layer, draft, limits, output_shape, zero_point
from .layer_rescaling import rescaling_cases, saturation_cases
from .layer_sums import long_sums, lowest_pairs

OPERATORS = {
    "CONV_2D": ("s8", "u8", "s16", "s16-s32"),
    "DEPTHWISE_CONV_2D": ("s8", "u8", "s16"),
}
Array = np.ndarray


@dataclass(frozen=True)
class Geometry:
    """One layer's shapes.

    Attributes:
        image: batch, height, width, input channels.
        kernel: height, width.
        channels: output channels.
        strides, dilations, padding: of the windows.
        groups: input channels of a filter are those of the image over this.
        activation: fused.
        bias: whether there is one.
    """

    image: tuple[int, int, int, int]
    kernel: tuple[int, int] = (3, 3)
    channels: int = 2
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    groups: int = 1
    activation: str = "NONE"
    bias: bool = True

    def __str__(self) -> str:
        words = [f"{'x'.join(map(str, self.image))} by {self.kernel[0]}x{self.kernel[1]}", self.padding]
        if self.strides != (1, 1):
            words.append(f"strides {self.strides[0]}, {self.strides[1]}")
        if self.dilations != (1, 1):
            words.append(f"dilations {self.dilations[0]}, {self.dilations[1]}")
        if self.groups > 1:
            words.append(f"{self.groups} groups")
        words.append(f"{self.channels} channels" + ("" if self.bias else ", no bias"))
        return ", ".join(words)


# Even and odd images, kernels and strides, so that padding splits evenly, unevenly, and not at all.
_WINDOWS = (
    Geometry((1, 5, 5, 2)),
    Geometry((1, 5, 5, 2), padding="VALID"),
    Geometry((1, 6, 6, 2), strides=(2, 2)),
    Geometry((1, 7, 7, 2), strides=(2, 2)),
    Geometry((1, 6, 5, 2), (2, 2)),
    Geometry((1, 7, 6, 2), (3, 2), strides=(2, 1)),
    Geometry((1, 6, 9, 2), (2, 5), strides=(1, 3)),
    Geometry((1, 8, 7, 2), (3, 3), strides=(3, 2)),
    Geometry((1, 11, 9, 2), (3, 3), strides=(3, 3), padding="VALID"),
    Geometry((1, 3, 4, 2), (5, 7)),
    Geometry((1, 2, 3, 2), (4, 4), strides=(2, 2)),
    Geometry((1, 9, 1, 2), (4, 1), strides=(2, 1)),
    Geometry((1, 1, 9, 2), (1, 3), strides=(1, 2)),
    Geometry((1, 1, 1, 3), (3, 3)),
    Geometry((1, 7, 8, 2), dilations=(2, 2)),
    Geometry((1, 9, 8, 2), (3, 2), dilations=(3, 1)),
    Geometry((1, 8, 9, 2), (2, 3), dilations=(1, 2), padding="VALID"),
    Geometry((1, 5, 6, 2), (3, 3), dilations=(2, 3)),
)
# Strides beside dilations, which some kernels do not take together.
_CONV_WINDOWS = (Geometry((1, 9, 10, 2), (3, 3), strides=(2, 3), dilations=(2, 1)),)
_CONV_CHANNELS = (
    Geometry((1, 3, 4, 1), (3, 3), 1),
    Geometry((2, 3, 3, 3), (3, 3), 5),
    Geometry((1, 3, 3, 4), (2, 2), 4),
    Geometry((1, 3, 2, 5), (1, 1), 8),
    Geometry((3, 2, 3, 8), (1, 1), 3),
    Geometry((1, 2, 3, 17), (1, 3), 17),
    Geometry((2, 1, 5, 33), (1, 1), 9),
    Geometry((1, 4, 4, 16), (3, 3), 16),
    Geometry((1, 3, 4, 6), (3, 3), 6, groups=2),
    Geometry((1, 4, 3, 4), (2, 2), 8, groups=4),
)
_DEPTHWISE_CHANNELS = (
    Geometry((1, 3, 4, 1), (3, 3), 1),
    Geometry((1, 3, 4, 1), (3, 3), 5),
    Geometry((2, 3, 3, 3), (3, 3), 3),
    Geometry((1, 3, 3, 4), (2, 2), 4),
    Geometry((1, 3, 2, 5), (3, 1), 10),
    Geometry((3, 2, 3, 8), (2, 2), 8),
    Geometry((1, 3, 3, 8), (3, 3), 16),
    Geometry((1, 2, 3, 17), (1, 3), 17),
    Geometry((1, 3, 3, 2), (3, 3), 16),
    Geometry((2, 2, 2, 4), (2, 2), 12),
    Geometry((1, 3, 4, 33), (3, 3), 33),
)
_POINTS = ((-128, 127), (127, -128), (127, 127), (-128, -128), (0, 0), (-5, 9))
_RANDOM = (
    Geometry((1, 8, 8, 3), (3, 3), 8, (2, 2), activation="RELU6"),
    Geometry((1, 8, 8, 8), (3, 3), 8, activation="RELU"),
    Geometry((1, 6, 6, 16), (1, 1), 16),
    Geometry((2, 6, 6, 4), (3, 3), 4),
    Geometry((1, 9, 9, 4), (5, 5), 4, padding="VALID"),
    Geometry((1, 8, 8, 8), (3, 3), 8, (2, 2), activation="RELU6"),
    Geometry((1, 7, 7, 8), (1, 1), 16, activation="RELU"),
    Geometry((1, 8, 6, 8), (3, 3), 8, dilations=(2, 2)),
    Geometry((1, 10, 10, 3), (3, 3), 6, (2, 2), activation="RELU"),
    Geometry((1, 5, 5, 12), (1, 1), 24, activation="RELU6"),
    Geometry((1, 7, 7, 4), (5, 5), 8, activation="RELU"),
    Geometry((1, 12, 5, 1), (10, 4), 8, (2, 2)),
    Geometry((1, 4, 4, 32), (1, 1), 32),
    Geometry((2, 5, 5, 8), (3, 3), 8, (2, 2), activation="RELU"),
    Geometry((1, 6, 6, 6), (3, 3), 12, padding="VALID"),
    Geometry((1, 9, 9, 2), (7, 7), 4, (2, 2), activation="RELU6"),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Rescaling, clamps, zero points, padding, shapes, long sums, random ones, and what must be refused."""
    yield from rescaling_cases(operator, types)
    yield from saturation_cases(operator, types)
    for number, points in enumerate(_POINTS if limits(types)[0] != -32768 else ()):
        geometry = Geometry((1, 4, 5, 3), (3, 3), 4 if operator == "CONV_2D" else 3)
        layer = layer_of(operator, types, geometry, ("zero points", number), points)
        yield draft(layer, "zero points", f"zero points {layer.input_zero_point} and {layer.output_zero_point}")
    windows = (*_WINDOWS, *(_CONV_WINDOWS if operator == "CONV_2D" else ()))
    for number, geometry in enumerate(windows):
        points = ((-128, 3), (127, -20), (-3, 0), (11, 127))[number % 4]
        layer = layer_of(operator, types, geometry, ("padding", number), points)
        yield draft(layer, "padding", str(geometry))
    for number, geometry in enumerate(_CONV_CHANNELS if operator == "CONV_2D" else _DEPTHWISE_CHANNELS):
        points = ((-7, 0), (-128, 30), (127, -99))[number % 3]
        layer = layer_of(operator, types, geometry, ("shapes", number), points)
        yield draft(layer, "shapes", str(geometry))
    yield from long_sums(operator, types)
    yield _quantized_weights(operator, types)
    if operator == "CONV_2D":
        yield lowest_pairs(operator, types)
    for number, geometry in enumerate(_RANDOM):
        layer = _ordinary(operator, types, geometry, number)
        yield draft(layer, "random", str(geometry))
    yield from _rejects(operator, types)


def layer_of(
    operator: str, types: str, geometry: Geometry, words: tuple[object, ...], points: tuple[int, int]
) -> Layer:
    """Quantized values and weights of the whole range, results of the whole range, generic scales of one or several
    exponents.
    """
    random = generator(operator, types, *words)
    low, high = limits(types)
    x = random.integers(low, high + 1, geometry.image)
    weights = random.integers(-127, 128, _filters(operator, geometry))
    channels = _channels(operator, geometry)
    input_point, output_point = (zero_point(types, p) for p in points)
    first, output = aiming.generic_scales(random, 2)
    second = aiming.generic_scales(random, channels if types != "u8" else 1)
    per_axis = len(second) > 1
    weight_point = 0
    if types == "u8":
        weight_point = int(random.integers(100, 156))
        weights = np.clip(weights + weight_point, 0, 255)
    layer = Layer(
        operator,
        types,
        x,
        weights,
        None,
        float(first),
        second if per_axis else float(second[0]),
        float(output),
        input_point,
        weight_point,
        output_point,
        geometry.activation,
        geometry.padding,
        geometry.strides,
        geometry.dilations,
    )
    return spread_out(layer, geometry.bias, random)


def spread_out(layer: Layer, with_bias: bool, random: np.random.Generator) -> Layer:
    """The layer with a bias and an output scale that bring its results into the middle of the quantized values."""
    low, high = limits(layer.types)
    weights = layer.weights.astype(np.int64) - layer.weight_zero_point
    summands = weights.size // layer.channels
    # Standard deviation of uniform quantized values times weights, and the mean that the zero point makes.
    axes = tuple(i for i in range(weights.ndim) if weights.shape[i] != layer.channels or i != _axis(layer))
    sums = weights.sum(axis=axes).reshape(-1)
    bias = None
    reach = int((high - low) * 73 * max(1, int(np.sqrt(summands)))) // 3
    if with_bias:
        centre = -((high + low + 1) // 2 - layer.input_zero_point) * sums
        bias = centre + random.integers(-reach // 2, reach // 2 + 1, layer.channels)
    second = np.atleast_1d(np.asarray(layer.weight_scale, np.float32))
    largest = np.float32(second.max())
    output = np.float32(layer.input_scale) * largest * np.float32(reach * 2) / np.float32((high - low) // 2)
    return replace(layer, bias=bias, output_scale=float(output * np.float32(layer.output_scale)))


def _axis(layer: Layer) -> int:
    return 3 if layer.operator == "DEPTHWISE_CONV_2D" else 0


def _channels(operator: str, geometry: Geometry) -> int:
    if operator == "CONV_2D":
        return geometry.channels
    return geometry.channels if geometry.channels % geometry.image[3] == 0 else geometry.image[3]


def _filters(operator: str, geometry: Geometry) -> tuple[int, int, int, int]:
    if operator == "CONV_2D":
        return (geometry.channels, *geometry.kernel, geometry.image[3] // geometry.groups)
    return (1, *geometry.kernel, _channels(operator, geometry))


def _quantized_weights(operator: str, types: str) -> Draft:
    """Every quantized value of the weights once, -128 among them, and the largest inputs."""
    random = generator(operator, types, "weights")
    low, high = limits(types)
    channels = 16
    weights = random.permutation(256).reshape(channels, 4, 4, 1) - (0 if types == "u8" else 128)
    image = (1, 4, 4, 1)
    if operator == "DEPTHWISE_CONV_2D":
        weights = weights.reshape(1, 4, 4, channels)
        image = (1, 4, 4, channels)
    x = np.where(random.integers(0, 2, image) == 1, low, high)
    second = aiming.generic_scales(random, channels if types != "u8" else 1)
    layer = Layer(
        operator,
        types,
        x,
        weights,
        None,
        0.5,
        second if len(second) > 1 else float(second[0]),
        1.0,
        zero_point(types, -128),
        127 if types == "u8" else 0,
        zero_point(types, 0),
        padding="SAME",
    )
    return draft(spread_out(layer, True, random), "codes", "every quantized value of the weights, inputs at both ends")


def _ordinary(operator: str, types: str, geometry: Geometry, number: int) -> Layer:
    """What a random suite has: uniform quantized values, weights and biases, scales of an ordinary network."""
    random = generator(operator, types, "random", number)
    low, high = limits(types)
    x = random.integers(low, high + 1, geometry.image)
    channels = _channels(operator, geometry)
    weights = random.integers(-127, 128, _filters(operator, geometry))
    second = (random.integers(2000, 12000, channels if types != "u8" else 1) / 1e6).astype(np.float32)
    first = np.float32(random.integers(1000, 50000) / 1e6)
    summands = weights.size // channels
    deviation = (high - low) / 3.5 * 73 * np.sqrt(summands)
    output = np.float32(float(first) * float(second.max()) * deviation * 6 / (high - low))
    bias = random.integers(-int(deviation), int(deviation) + 1, channels)
    symmetric = types.startswith("s16")
    weight_point = int(random.integers(118, 138)) if types == "u8" else 0
    if types == "u8":
        weights = np.clip(weights + weight_point, 0, 255)
    return Layer(
        operator,
        types,
        x,
        weights,
        bias,
        float(first),
        second if len(second) > 1 else float(second[0]),
        float(output),
        0 if symmetric else int(random.integers(low, high + 1)),
        weight_point,
        0 if symmetric else int(random.integers(low, high + 1)),
        geometry.activation,
        geometry.padding,
        geometry.strides,
        geometry.dilations,
    )


def _rejects(operator: str, types: str) -> Iterator[Draft]:
    """Models without a meaning."""
    good = layer_of(operator, types, Geometry((1, 4, 4, 2), (3, 3), 2), ("rejects", 0), (-3, 5))
    assert good.bias is not None
    why = "the bias has one element more than there are output channels"
    yield draft(replace(good, bias=np.append(good.bias, 0)), "rejects", why, rejects=why)
    yield _narrow(good)


def _narrow(good: Layer) -> Draft:
    why = "filters with more input channels than the image has"
    if good.operator == "DEPTHWISE_CONV_2D":
        why = "filters with channels that are no multiple of the image's"
    weights = np.concatenate([good.weights, good.weights[..., :1]], axis=3)
    shape = output_shape(good)
    bias = good.bias
    layer = replace(good, weights=weights, output_shape=shape)
    if good.operator == "DEPTHWISE_CONV_2D" and bias is not None:
        second = np.asarray(good.weight_scale)
        scale = np.append(second, second[:1]) if second.ndim else good.weight_scale
        layer = replace(layer, bias=np.append(bias, 0), weight_scale=scale, output_shape=(*shape[:3], shape[3] + 1))
    return draft(layer, "rejects", why, rejects=why)

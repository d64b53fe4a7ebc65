"""Layers whose accumulators are chosen one by one: ties, near ties, saturation.

One input channel and weights of 1 or -1: the bias of a channel decides where its accumulators begin, and eight
elements of the input step through eight neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....rules import activation_range
from .. import aiming
from ..aiming import Rescaling
from ..draft import Draft, generator
from .layer_models import TYPES, Layer, draft, limits, zero_point

Array = np.ndarray
CHANNELS, STEPS = 64, np.arange(8)
_CANDIDATES = 32
# Zero points of input and output, as s8.
_POINTS = ((-128, 5), (127, -128), (0, 3), (-1, 127), (17, -4), (-128, -128), (3, -77), (126, 0))
_ONE = np.float32(1)


def rescaling_cases(operator: str, types: str) -> Iterator[Draft]:
    """Ties and near ties of every magnitude."""
    for number, (aim, note, first, second, output) in enumerate(_scales(operator, types)):
        input_point, output_point = (zero_point(types, p) for p in _POINTS[number % len(_POINTS)])
        low, high = limits(types)
        to = Rescaling(
            float(first),
            second,
            float(output),
            output_point,
            low,
            high,
            TYPES[types].base,
            TYPES[types].wide,
        )
        random = generator(operator, types, "rescaling", number)
        yield _aimed(operator, types, to, input_point, aim, note, random)


def _scales(operator: str, types: str) -> Iterator[tuple[str, str, np.float32, Array, np.float32]]:
    """Aim, note, and the scales of input, weights and output."""
    random = generator(operator, types, "scales")
    per_axis = types != "u8"
    wide = TYPES[types].wide

    def generic(low: int, high: int) -> tuple[np.float32, Array, np.float32]:
        first, output = aiming.generic_scales(random, 2)
        second = aiming.generic_scales(random, CHANNELS)
        exponents = aiming.spread(low, high, CHANNELS)
        return first, np.ldexp(second, exponents).astype(np.float32), output

    def one(low: int) -> tuple[np.float32, Array, np.float32]:
        first, second, output = generic(low, low)
        return first, second[:1], output

    half = np.float32(0.5)
    if per_axis:
        powers = np.ldexp(_ONE, aiming.spread(-29, 1, CHANNELS)).astype(np.float32)
        yield "ties", "multipliers are powers of two, 2^-30 to 1", half, powers, _ONE
        odd = np.array([3, 5, 7, 9, 11, 13, 25, 127], np.float32)[np.arange(CHANNELS) % 8]
        fractions = np.ldexp(odd, aiming.spread(-23, -2, CHANNELS)).astype(np.float32)
        yield "ties", "multipliers are small odd numbers over powers of two", _ONE, fractions, _ONE
        yield "near ties", "multipliers below 2^-17: accumulators beyond 2^24", *generic(-30, -18)
        yield "near ties", "multipliers from 2^-18 to 2^-9", *generic(-18, -10)
        yield "near ties", "multipliers from 2^-10 to 1", *generic(-10, -1)
        top = 4 if wide else 6
        yield "near ties", f"multipliers from 1/2 to 2^{top}", *generic(0, top)
        if not wide:
            yield "ties", "multipliers of 2^8 and more: few accumulators stay within the type", *_large()
        carried = aiming.spread(-14, -1, CHANNELS)
        nearly = (1 + np.ldexp(_ONE, -np.array([16, 17, 18, 15])[np.arange(CHANNELS) % 4])).astype(np.float32)
        first = np.float32(1 - 2.0**-17)
        note = "multipliers a hair below powers of two: some round up to the next exponent"
        yield "near ties", note, first, np.ldexp(nearly, carried).astype(np.float32), _ONE
        # 1 / (2 m) for odd m is no binary number, and yet its products tie.
        parts = np.array([30030 // k for k in (3, 5, 7, 11, 13, 15, 21, 33)])
        parts = parts[np.arange(CHANNELS) % 8] // 2
        tops = 2 * (np.arange(CHANNELS) // 8) + 1
        quotients = np.ldexp((parts * tops).astype(np.float32), -(np.arange(CHANNELS) % 5)).astype(np.float32)
        note = "multipliers with odd denominators: exact ties of quotients that no multiplier holds"
        yield "near ties", note, _ONE, quotients, np.float32(30030)
    for power in (-8, -1, -20):
        second = np.array([np.ldexp(_ONE, power + 1)], np.float32)
        yield "ties", f"one multiplier for all channels, 2^{power}", half, second, _ONE
    yield "ties", "one multiplier for all channels, 3/8", _ONE, np.array([0.375], np.float32), _ONE
    for power in (-24, -17, -12, -7, -3):
        yield "near ties", f"one multiplier for all channels, about 2^{power}", *one(power)


def _large() -> tuple[np.float32, Array, np.float32]:
    """Exponents up to that of the longest left shift."""
    fractions = np.array([1.5, 1.25, 1.75, 1.0], np.float32)[np.arange(CHANNELS) % 4]
    return _ONE, np.ldexp(fractions, aiming.spread(8, 12, CHANNELS)).astype(np.float32), np.float32(1.0)


def _aimed(
    operator: str, types: str, to: Rescaling, input_point: int, aim: str, note: str, random: np.random.Generator
) -> Draft:
    wide = Rescaling(
        to.first,
        np.broadcast_to(to.second, (CHANNELS,)),
        to.output,
        to.zero_point,
        to.low,
        to.high,
        to.base,
        to.wide,
    )
    limit = 2**44 if to.wide else 2**31 - 2**12
    centres = aiming.candidates(wide, _CANDIDATES, STEPS, limit, random)
    chosen = aiming.choose(wide, centres, STEPS)
    layer = layer_of(operator, types, to, input_point, chosen, random)
    return draft(layer, aim, note, {"accumulators from": chosen.tolist()})


def layer_of(
    operator: str, types: str, to: Rescaling, input_point: int, first_acc: Array, random: np.random.Generator
) -> Layer:
    """A layer in which channel c has the accumulators first_acc[c] + `STEPS`."""
    channels = len(first_acc)
    # Beside the upper end of the quantized values inputs step downward.
    down = input_point > limits(types)[1] - len(STEPS)
    x = input_point - STEPS if down else input_point + STEPS
    signs = np.where(random.integers(0, 2, channels) == 1, 1, -1)
    bias = np.where((signs == -1) != down, first_acc + STEPS[-1], first_acc)
    weight_point = 128 + int(random.integers(-3, 4)) if TYPES[types].weights == "u8" else 0
    weights = weight_point + signs
    scale = to.second if len(to.second) > 1 else float(to.second[0])
    return Layer(
        operator,
        types,
        *_shaped(operator, x, weights),
        bias,
        to.first,
        scale,
        to.output,
        input_point,
        weight_point,
        to.zero_point,
    )


def _shaped(operator: str, x: Array, weights: Array) -> tuple[Array, Array]:
    if operator == "FULLY_CONNECTED":
        return x.reshape(-1, 1), weights.reshape(-1, 1)
    if operator == "DEPTHWISE_CONV_2D":
        image = np.broadcast_to(x.reshape(1, 2, -1, 1), (1, 2, len(x) // 2, len(weights)))
        return image, weights.reshape(1, 1, 1, -1)
    return x.reshape(1, 2, -1, 1), weights.reshape(-1, 1, 1, 1)


ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def saturation_cases(operator: str, types: str) -> Iterator[Draft]:
    """Quantized values up to both ends of every clamp, one beyond, and far beyond."""
    low, high = limits(types)
    number = 0
    for activation in ACTIVATIONS:
        for scale, point in _clamped(activation, types):
            random = generator(operator, types, "saturation", number)
            second = np.ldexp(aiming.generic_scales(random, 1), -6).astype(np.float32)
            first = np.float32(scale) * aiming.generic_scales(random, 1)[0]
            output_point = zero_point(types, point)
            ends = activation_range.RULES["binary32_quotient_away"](activation.lower(), scale, output_point, low, high)
            to = Rescaling(float(first), second, scale, output_point, *ends, TYPES[types].base, TYPES[types].wide)
            input_point = zero_point(types, _POINTS[number % len(_POINTS)][0])
            layer = layer_of(operator, types, to, input_point, _beyond(to, low, high), random)
            layer = Layer(**{**layer.__dict__, "activation": activation})
            note = f"{activation}: quantized values {ends[0]} to {ends[1]}, and beyond both ends"
            yield draft(layer, "saturation", note, {"ends": list(ends)})
            number += 1


def _beyond(to: Rescaling, low: int, high: int) -> Array:
    """Accumulators at, beside, inside of and far beyond the ends of the clamp, of the type, and of half of the type."""
    quantized = {
        code + by
        for code in (to.low, to.high, low, high, low // 2, high // 2, to.zero_point, (to.low + to.high) // 2)
        for by in (-1, 0, 1)
    }
    span = high - low + 1
    quantized |= {low - 9, high + 9, low - span // 2, high + span // 2, low - span, high + span, low - 40 * span}
    quantized |= {high + 40 * span, low - 3000 * span, high + 3000 * span}
    real = float(to.real[0])
    return np.array([round((code - to.zero_point) / real) for code in sorted(quantized)], np.int64)


def _clamped(activation: str, types: str) -> list[tuple[float, int]]:
    """Output scales and zero points: ends inside of the quantized values, and ends that are ties."""
    if types.startswith("s16"):
        plain = {"NONE": 1.0, "RELU": 0.75, "RELU6": 6 / 20000, "RELU_N1_TO_1": 1 / 20000}[activation]
        return [(float(np.float32(plain)), 0)]
    if activation == "NONE":
        return [(float(np.float32(0.7)), 0), (float(np.float32(0.3)), -128), (float(np.float32(0.11)), 127)]
    if activation == "RELU":
        return [(float(np.float32(0.7)), -128), (float(np.float32(0.3)), -20), (float(np.float32(0.11)), 127)]
    bound = 6.0 if activation == "RELU6" else 1.0
    found = [(float(np.float32(bound / 91.3)), -17), (float(np.float32(bound / 60.0)), -128)]
    return [*found, *tied(bound)]


def tied(bound: float) -> list[tuple[float, int]]:
    """Scales by which `bound` is a tie, and s8 zero points, even and odd ones."""
    found = []
    for point in (-40, 21, -127):
        for steps in range(20 + 2 * abs(point) // 3, 200):
            scale = np.float32(bound / (steps + 0.5))
            if np.float32(bound) / scale == np.float32(steps + 0.5) and point + steps + 1 < 127 and steps - point < 127:
                found.append((float(scale), point))
                break
    return found

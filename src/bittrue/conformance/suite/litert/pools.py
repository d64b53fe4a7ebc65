"""AVERAGE_POOL_2D and MAX_POOL_2D: every tie of averages, padding that must not count, clamps, windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ....rules import activation_range
from ..draft import Draft, generator, values_of_sum
from ..tflite import Operand, one_operator
from .layer_rescaling import tied

OPERATORS = {"AVERAGE_POOL_2D": ("s8", "u8", "s16"), "MAX_POOL_2D": ("s8", "u8", "s16")}
Array = np.ndarray
_RANGES = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767)}
_VERSIONS = {"s8": 2, "u8": 1, "s16": 3}


@dataclass(frozen=True)
class Pool:
    """One pool's shapes: image (batch, height, width, channels), kernel, strides, padding, activation."""

    image: tuple[int, int, int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "NONE"

    def __str__(self) -> str:
        words = [f"{'x'.join(map(str, self.image))} by {self.kernel[0]}x{self.kernel[1]}", self.padding]
        if self.strides != (1, 1):
            words.append(f"strides {self.strides[0]}, {self.strides[1]}")
        return ", ".join(words)


_WINDOWS = (
    Pool((1, 5, 5, 2), (3, 3)),
    Pool((1, 5, 5, 2), (3, 3), padding="VALID"),
    Pool((1, 6, 6, 3), (2, 2), (2, 2)),
    Pool((1, 7, 7, 3), (2, 2), (2, 2)),
    Pool((1, 6, 7, 2), (3, 3), (2, 2)),
    Pool((1, 7, 6, 2), (3, 2), (2, 1)),
    Pool((1, 6, 9, 2), (2, 5), (1, 3)),
    Pool((1, 8, 7, 2), (3, 3), (3, 2)),
    Pool((1, 11, 9, 2), (3, 3), (3, 3), "VALID"),
    Pool((1, 3, 4, 2), (5, 7)),
    Pool((1, 2, 3, 2), (4, 4), (2, 2)),
    Pool((1, 9, 1, 2), (4, 1), (2, 1)),
    Pool((1, 1, 9, 2), (1, 3), (1, 2)),
    Pool((1, 1, 1, 3), (3, 3)),
    Pool((1, 10, 11, 1), (2, 3), (5, 4)),
    # One row or column less per stride gives as many windows.
    Pool((1, 6, 6, 2), (3, 3), (4, 4)),
)
_CHANNELS = (
    Pool((1, 3, 4, 1), (2, 2)),
    Pool((2, 3, 3, 3), (2, 2)),
    Pool((1, 4, 3, 4), (3, 3)),
    Pool((1, 3, 3, 5), (3, 2)),
    Pool((3, 2, 3, 8), (2, 2), padding="VALID"),
    Pool((1, 2, 4, 17), (2, 3)),
    Pool((1, 3, 3, 33), (3, 3), padding="VALID"),
    Pool((1, 2, 2, 70), (2, 2)),
)
_RANDOM = (
    Pool((1, 8, 8, 8), (2, 2), (2, 2), "VALID"),
    Pool((1, 7, 7, 16), (7, 7), (1, 1), "VALID"),
    Pool((1, 8, 8, 4), (3, 3), (2, 2)),
    Pool((1, 6, 6, 8), (3, 3)),
    Pool((2, 8, 8, 3), (2, 2), (2, 2)),
    Pool((1, 4, 4, 32), (4, 4), (4, 4), "VALID"),
    Pool((1, 9, 9, 4), (3, 3), (3, 3), "VALID"),
    Pool((1, 12, 6, 4), (2, 2), (2, 2), activation="RELU6"),
    Pool((1, 5, 25, 4), (5, 5), (5, 5), "VALID"),
    Pool((1, 10, 10, 2), (3, 3), (2, 2), "VALID"),
)
# Kernels whose averages end in every fraction of so many.
_COUNTS = (
    (1, 2),
    (3, 1),
    (2, 2),
    (5, 1),
    (2, 3),
    (1, 7),
    (4, 2),
    (3, 3),
    (2, 5),
    (3, 4),
    (4, 4),
    (5, 5),
    (6, 6),
    (7, 7),
)
# Sums beyond 16, 18 and 20 bits.
_LONG = ((17, 16), (33, 32), (66, 64))


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Ties, sums, clamps, zero points, windows, channels, random ones, and what must be refused."""
    if operator == "AVERAGE_POOL_2D":
        yield from _ties(types)
        yield from _long(types)
        yield _longest(types)
    else:
        yield _quantized(types)
    yield from _clamps(operator, types)
    low, high = _RANGES[types]
    for number, pool in enumerate(_WINDOWS):
        points = _points(types)
        point = points[number % len(points)]
        random = generator(operator, types, "padding", number)
        # Quantized values on one side of the zero point, so that padding that counts is seen.
        ends = ((low, high), (low, min(point, low + 40) or low + 1), (max(point, high - 40), high))[number % 3]
        x = random.integers(min(ends), max(ends) + 1, pool.image)
        yield _draft(operator, types, pool, x, point, "padding", str(pool))
    for number, pool in enumerate(_CHANNELS):
        x = generator(operator, types, "shapes", number).integers(low, high + 1, pool.image)
        yield _draft(operator, types, pool, x, _points(types)[number % len(_points(types))], "shapes", str(pool))
    for number, pool in enumerate(_RANDOM):
        random = generator(operator, types, "random", number)
        x = random.integers(low, high + 1, pool.image)
        point = 0 if types == "s16" else int(random.integers(low, high + 1))
        scale = float(np.float32(random.integers(1000, 90000) / 1e6))
        yield _draft(operator, types, pool, x, point, "random", str(pool), scale)
    yield from _rejects(operator, types)


def _points(types: str) -> tuple[int, ...]:
    low, high = _RANGES[types]
    return (0,) if types == "s16" else (low, high, (low + high + 1) // 2 + 3, low + 77)


def _ties(types: str) -> Iterator[Draft]:
    """Windows side by side whose sums are k * count + r: ties, their neighbours, integers, of both signs."""
    low, high = _RANGES[types]
    for number, (height, width) in enumerate(_COUNTS):
        random = generator("AVERAGE_POOL_2D", types, "ties", number)
        count, channels, across = height * width, 8, 8
        rests = (count // 2, (count + 1) // 2, count // 2 - 1, count // 2 + 1, 0, 1, count - 1)
        x = np.empty((1, height, across * width, channels), np.int64)
        for column in range(across):
            for channel in range(channels):
                whole = int(random.integers(low, high))
                # The quantized values around 0 and at both ends are where signs and clamps change.
                near = (whole, 0, -1, low, high - 1, 1, whole, -2)[column]
                whole = near if low <= near < high else whole
                total = whole * count + rests[channel % len(rests)]
                block = values_of_sum(total, count, low, high, random)
                x[0, :, column * width : (column + 1) * width, channel] = block.reshape(height, width)
        pool = Pool((1, height, across * width, channels), (height, width), (height, width), "VALID")
        note = f"sums of {count} that are halves, beside halves, and whole"
        points = _points(types)
        yield _draft("AVERAGE_POOL_2D", types, pool, x, points[number % len(points)], "ties", note)


def _long(types: str) -> Iterator[Draft]:
    """Sums that 16, 18 and 20 bits do not hold."""
    low, high = _RANGES[types]
    for number, (height, width) in enumerate(_LONG):
        random = generator("AVERAGE_POOL_2D", types, "long", number)
        # The channels at both ends reach the largest sums; the others end beside a tie.
        x = random.integers(low, high + 1, (1, height, width, 4))
        x[..., 0], x[..., 1] = low, high
        x[0, 0, : width // 2, 0] += 1
        x[..., 2] = high - 1
        x[0, : height // 2, :, 2] += 1
        pool = Pool((1, height, width, 4), (height, width), (1, 1), "VALID")
        note = f"sums of {height * width} quantized values, up to {max(abs(low), high) * height * width}"
        yield _draft("AVERAGE_POOL_2D", types, pool, x, _points(types)[0], "saturation", note)


def _longest(types: str) -> Draft:
    """One sum beyond 2^24, a tie that is 4 k + 1, of which binary32 makes 4 k."""
    low, _ = _RANGES[types]
    height, width, code = {"s8": (350, 379, 126), "u8": (190, 347, 254), "s16": (34, 31, 16387)}[types]
    count = height * width
    sign = 1 if types == "u8" else -1
    x = np.full(count, sign * code)
    x[: count // 2] += sign
    pool = Pool((1, height, width, 1), (height, width), (1, 1), "VALID")
    x = x.reshape(pool.image)
    return _draft(
        "AVERAGE_POOL_2D", types, pool, x, low if types != "s16" else 0, "saturation", f"{count} quantized values"
    )


def _quantized(types: str) -> Draft:
    """Every quantized value is the largest of a window once; s16: 256 of them."""
    low, high = _RANGES[types]
    random = generator("MAX_POOL_2D", types, "codes")
    largest = random.permutation(np.linspace(low, high, 256).astype(np.int64)).reshape(1, 8, 8, 4)
    x = np.repeat(np.repeat(largest, 2, axis=1), 2, axis=2)
    less = low + (random.random(x.shape) * (x - low)).astype(np.int64)
    place = random.integers(0, 4, largest.shape).repeat(2, axis=1).repeat(2, axis=2)
    here = (np.arange(16)[:, None] % 2 * 2 + np.arange(16)[None] % 2)[None, :, :, None]
    x = np.where(place == here, x, less)
    note = "every quantized value is the largest of a window once"
    return _draft("MAX_POOL_2D", types, Pool((1, 16, 16, 4), (2, 2), (2, 2), "VALID"), x, low, "codes", note)


def _clamps(operator: str, types: str) -> Iterator[Draft]:
    low, high = _RANGES[types]
    number = 0
    for activation, bound in (("RELU", 0.0), ("RELU6", 6.0), ("RELU_N1_TO_1", 1.0)):
        ways = [(bound / 90.3 if bound else 0.3, 0), (bound / 40 if bound else 0.7, -108)]
        for scale, signed in (*ways, *(tied(bound) if bound else ())):
            if types == "s16" and number % 2:
                number += 1
                continue
            point = 0 if types == "s16" else low + 128 + signed
            ends = activation_range.RULES["binary32_quotient_away"](activation.lower(), scale, point, low, high)
            wanted = sorted({e + by for e in (*ends, point, low, high) for by in (-1, 0, 1)} | {low + 9, high - 9})
            quantized = np.array([c for c in wanted if low <= c <= high], np.int64)
            # Windows of equal quantized values: averages and maxima are these values.
            random = generator(operator, types, "clamps", number)
            chosen = np.concatenate([quantized, random.integers(low, high + 1, -len(quantized) % 8 + 8)])
            x = chosen.reshape(1, 1, -1, 8).repeat(2, axis=1).repeat(2, axis=2)
            pool = Pool(x.shape, (2, 2), (2, 2), "VALID", activation)
            note = f"{activation}: quantized values {ends[0]} to {ends[1]}, and beyond both ends"
            yield _draft(operator, types, pool, x, point, "saturation", note, float(np.float32(scale)))
            number += 1


def _draft(
    operator: str, types: str, pool: Pool, x: Array, point: int, aim: str, note: str, scale: float = 0.5
) -> Draft:
    y = Operand(types, _output(pool), scale, point)
    content = one_operator(operator, [Operand(types, x.shape, scale, point)], [y], _options(pool), _VERSIONS[types])
    return Draft(
        aim, content, {"input0": x.astype(f"{'u' if types == 'u8' else 'i'}{2 if types == 's16' else 1}")}, note
    )


def _options(pool: Pool) -> dict[str, object]:
    return {
        "padding": pool.padding,
        "stride_h": pool.strides[0],
        "stride_w": pool.strides[1],
        "filter_height": pool.kernel[0],
        "filter_width": pool.kernel[1],
        "fused_activation_function": pool.activation,
    }


def _output(pool: Pool) -> tuple[int, int, int, int]:
    size = []
    for position in (0, 1):
        free = pool.image[1 + position] - (pool.kernel[position] - 1 if pool.padding == "VALID" else 0)
        size.append(-(-free // pool.strides[position]))
    return (pool.image[0], size[0], size[1], pool.image[3])


def _rejects(operator: str, types: str) -> Iterator[Draft]:
    """Models without a meaning."""
    pool = Pool((1, 4, 4, 2), (2, 2))
    x = np.zeros(pool.image, f"{'u' if types == 'u8' else 'i'}{2 if types == 's16' else 1}")
    why = "an image of rank 3"
    content = one_operator(
        operator,
        [Operand(types, (4, 4, 2), 0.5)],
        [Operand(types, (4, 4, 2), 0.5)],
        _options(pool),
        _VERSIONS[types],
    )
    yield Draft("rejects", content, {"input0": x[0]}, why, why)
    why = "an output of another type than the input"
    other = "u8" if types != "u8" else "s8"
    content = one_operator(
        operator,
        [Operand(types, pool.image, 0.5)],
        [Operand(other, pool.image, 0.5)],
        _options(pool),
        _VERSIONS[types],
    )
    yield Draft("rejects", content, {"input0": x}, why, why)

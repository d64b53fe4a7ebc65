"""BATCH_MATMUL: products of two fed matrices, whose sums are chosen one by one; transposed and broadcast operands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import aiming
from ..aiming import Rescaling
from ..draft import Draft, generator
from ..tflite import Operand, one_operator

OPERATORS = {"BATCH_MATMUL": ("s8", "s16")}
Array = np.ndarray
_RANGES = {"s8": (-128, 127), "s16": (-32768, 32767)}
_DTYPES = {"s8": np.int8, "s16": np.int16}
_VERSIONS = {"s8": 2, "s16": 3}
_BASES = {"s8": "q31_two_step_up_away", "s16": "q15_one_step_up"}
# Zero points of both operands and of the output.
_POINTS = ((0, 0, 5), (-128, 0, -128), (127, -3, 127), (3, -5, 0), (0, 64, -77))
_CHOSEN = 64
# Shapes as they are stored, and which are transposed.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], bool, bool], ...] = (
    ((3, 4), (4, 5), False, False),
    ((2, 3, 4), (2, 4, 5), False, False),
    ((2, 3, 4), (4, 5), False, False),
    ((1, 3, 4), (2, 4, 5), False, False),
    ((2, 1, 3, 4), (1, 3, 4, 2), False, False),
    ((2, 3, 4), (2, 5, 4), False, True),
    ((2, 4, 3), (2, 4, 5), True, False),
    ((4, 3), (5, 4), True, True),
    ((1, 17), (17, 1), False, False),
    ((5, 1), (1, 7), False, False),
    ((1, 8, 33), (1, 33, 9), False, False),
    ((4, 4), (4, 4), False, True),
    ((1, 1, 1), (1, 1, 1), False, False),
)
_RANDOM: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 8, 16), (1, 16, 8)),
    ((2, 4, 32), (2, 32, 4)),
    ((16, 16), (16, 16)),
    ((1, 2, 8, 8), (1, 2, 8, 8)),
    ((4, 3, 20), (4, 20, 6)),
    ((1, 64), (64, 20)),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Ties and near ties, shapes, long sums, random ones, and what must be refused."""
    random = generator(operator, types, "scales")
    generic = aiming.generic_scales(random, 12)
    scales = [
        ("ties", "the multiplier is 2^-8", 0.125, 0.25, 8.0),
        ("ties", "the multiplier is 3/16", 0.75, 0.25, 1.0),
        ("near ties", "the multiplier's denominator is odd", 1.0, 5.0, 198.0),
    ]
    for k, power in enumerate((8, 5, 2)):
        first, second, output = (float(g) for g in generic[3 * k : 3 * k + 3])
        scales.append(("near ties", f"generic scales, about 2^-{power}", first, second, output * 2.0**power))
    for number, (aim, note, first, second, output) in enumerate(scales):
        points = _POINTS[number % len(_POINTS)] if types == "s8" else (0, 0, 0)
        yield _chosen(types, (first, second, output * (256.0 if types == "s16" else 1.0)), points, aim, note, number)
    low, high = _RANGES[types]
    for number, (left, right, first_turned, second_turned) in enumerate(_SHAPES):
        random = generator(operator, types, "shapes", number)
        x, y = (random.integers(low, high + 1, shape) for shape in (left, right))
        points = _POINTS[number % len(_POINTS)] if types == "s8" else (0, 0, 0)
        note = f"{list(left)}{' transposed' * first_turned} by {list(right)}{' transposed' * second_turned}"
        yield _spread(types, x, y, points, (first_turned, second_turned), "shapes", note, random)
    for number, length in enumerate((3, 12, 70, 1100)):
        yield _long(types, length, number)
    for number, (left, right) in enumerate(_RANDOM):
        random = generator(operator, types, "random", number)
        x, y = (random.integers(low, high + 1, shape) for shape in (left, right))
        drawn = [int(v) for v in random.integers(low, high + 1, 3)]
        points = (drawn[0], drawn[1], drawn[2]) if types == "s8" else (0, 0, 0)
        yield _spread(types, x, y, points, (False, False), "random", f"{list(left)} by {list(right)}", random)
    why = "rows of another length than columns"
    x, y = np.zeros((2, 3), np.int64), np.zeros((4, 2), np.int64)
    yield _draft(types, x, y, (0.5, 0.5, 1.0), (0, 0, 0), (False, False), "rejects", why, why)


def _chosen(
    types: str,
    scales: tuple[float, float, float],
    points: tuple[int, int, int],
    aim: str,
    note: str,
    number: int,
) -> Draft:
    """Matrices of one element each: their sums of three products are what is wanted."""
    random = generator("BATCH_MATMUL", types, "chosen", number)
    low, high = _RANGES[types]
    second = np.full(_CHOSEN, scales[1], np.float32)
    to = Rescaling(scales[0], second, scales[2], points[2], low, high, _BASES[types], types == "s16")
    # What two products and a rest reach with the signs that the zero points leave.
    reach = (low - points[0], high - points[0]), (low - points[1], high - points[1])
    limit = (high // 2) * high
    steps = np.zeros(1, np.int64)
    sums = aiming.choose(to, aiming.candidates(to, 32, steps, limit, random), steps)
    pairs = np.array([_products(int(s), *reach) for s in sums])
    x = pairs[:, :, 0].reshape(_CHOSEN, 1, 3) + points[0]
    y = pairs[:, :, 1].reshape(_CHOSEN, 3, 1) + points[1]
    return _draft(types, x, y, scales, points, (False, False), aim, note)


def _products(total: int, first: tuple[int, int], second: tuple[int, int]) -> list[tuple[int, int]]:
    """Three pairs (a, b) with a in `first` and b in `second` whose products sum up to `total`."""
    side = 1 if first[1] >= -first[0] else -1
    largest = second[1] if total * side >= 0 else second[0]
    found = []
    for _ in range(2):
        most = max(abs(first[0]), first[1])
        a = max(-most, min(most, int(abs(total) // abs(largest)))) * side
        a = max(first[0], min(first[1], a))
        found.append((a, largest))
        total -= a * largest
    # What is left is less than a quantized value.
    b = 1 if total * side >= 0 else -1
    a = total * b
    if not first[0] <= a <= first[1]:
        a = max(first[0], min(first[1], a))
    return [*found, (a, b)]


def _spread(
    types: str,
    x: Array,
    y: Array,
    points: tuple[int, int, int],
    turned: tuple[bool, bool],
    aim: str,
    note: str,
    random: np.random.Generator,
) -> Draft:
    """Generic scales by which the results spread over the quantized values."""
    low, high = _RANGES[types]
    first, second, output = aiming.generic_scales(random, 3)
    left, right = (np.swapaxes(v, -1, -2) if t else v for v, t in zip((x, y), turned, strict=True))
    acc = np.matmul(left - points[0], right - points[1])
    reach = max(1, int(np.abs(acc).max()))
    scale = float(output * first * second * np.float32(1.6 * reach / (high - low)))
    return _draft(types, x, y, (float(first), float(second), scale), points, turned, aim, note)


def _long(types: str, length: int, number: int) -> Draft:
    """Sums up to the largest of the type, and back, so that narrow accumulators lose them."""
    random = generator("BATCH_MATMUL", types, "long", number)
    low, high = _RANGES[types]
    points = (low, 0, 0) if types == "s8" else (0, 0, 0)
    x = np.full((6, 1, length), high)
    y = np.full((6, length, 1), high)
    half = length - length // 2
    y[:, half:] = -high
    x[:, 0, -1] -= np.arange(6)
    y[3:, 0] -= np.arange(3)[:, None]
    note = f"{length} products of the largest quantized values, and back"
    first = float(aiming.generic_scales(random, 1)[0])
    span = abs(int(np.matmul(x - points[0], y).max()))
    output = first * float(np.float32(max(2, span) / (high * 0.7)))
    return _draft(types, x, y, (first, 1.0, output), points, (False, False), "saturation", note)


def _draft(
    types: str,
    x: Array,
    y: Array,
    scales: tuple[float, float, float],
    points: tuple[int, int, int],
    turned: tuple[bool, bool],
    aim: str,
    note: str,
    rejects: str = "",
) -> Draft:
    left, right = (np.swapaxes(v, -1, -2) if t else v for v, t in zip((x, y), turned, strict=True))
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    inputs = [Operand(types, v.shape, s, p) for v, s, p in zip((x, y), scales, points, strict=False)]
    output = Operand(types, (*batch, left.shape[-2], right.shape[-1]), scales[2], points[2])
    options = {"adj_x": turned[0], "adj_y": turned[1]}
    content = one_operator("BATCH_MATMUL", inputs, [output], options, _VERSIONS[types])
    fed = {"input0": x.astype(_DTYPES[types]), "input1": y.astype(_DTYPES[types])}
    return Draft(aim, content, fed, note, rejects)

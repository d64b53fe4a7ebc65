"""Sums, differences and products of two quantized tensors: QLinearAdd, QLinearMul, and groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from ....arithmetic import floats
from ....graph import data_type
from ..draft import Draft, between, generator
from ..onnx_aiming import separating
from ..onnx_model import declared
from ..onnx_pairs import Codes, quantized

OPERATORS = dict.fromkeys(("QLinearAdd", "QLinearMul", "QDQ Add", "QDQ Mul", "QDQ Sub"), ("s8", "u8"))

# Scales of a, b and the result; powers of two make ties.
_ROUND = ((0.5, 0.25, 1.0), (0.125, 0.5, 0.25), (1.0, 1.0, 4.0), (0.03125, 0.0625, 0.125))
_SCALES = (
    # Nearly half integers: 0.1 a + 0.3 b is a + 3 b halves of 0.2 but for last bits of binary32.
    (0.1, 0.3, 0.2),
    (0.0078431377, 0.023622047, 0.031),
    (0.03, 0.7, 0.5),
    (1.7, 1e-3, 1.9),
    (0.33333334, 0.6666667, 0.9),
    (0.011764706, 0.0039215689, 0.0117),
)
# Zero points of a, b and the result, as parts of the type's range; the last ones are odd.
_POINTS = ((0.45, 0.55, 0.51), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.5, 0.5, 0.5), (0.3, 0.8, 0.44), (0.0, 1.0, 0.62))
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 5, 7), (7,)),
    ((2, 3, 1, 5), (2, 1, 4, 5)),
    ((4, 33), (1,)),
    ((1,), (2, 67)),
    ((2, 1, 9), (3, 1)),
    ((1, 1, 1), (1, 1, 1)),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Pairs of quantized values chosen among all of them, then broadcasts, then usual numbers."""
    kind = data_type(types)
    every = np.arange(kind.minimum, kind.maximum + 1)
    a, b = (part.reshape(-1) for part in np.meshgrid(every, every))
    times = operator.endswith("Mul")
    for number, (scales, parts) in enumerate(
        [*zip(_ROUND, _POINTS, strict=False), *zip(_SCALES, reversed(_POINTS), strict=False)]
    ):
        random = generator(operator, types, number)
        points = _points(types, parts, times)
        if times:
            # Products are larger: a coarser result, still a power of two where the others are.
            coarse = 64 if number < len(_ROUND) + 2 else 70
            scales = (scales[0], scales[1], scales[0] * scales[1] * coarse)
        answers = _answers(operator, a, b, scales, points, kind.minimum, kind.maximum)
        index = np.append(separating(answers, 315, random), _ends(a, b, answers[0], kind.minimum, kind.maximum, random))
        first, second = (part[index].astype(kind.numpy) for part in (a, b))
        aim = "ties" if number < len(_ROUND) else "near ties"
        note = f"scales {scales[0]}, {scales[1]} to {scales[2]:.8g}, zero points {points}"
        content, inputs = _model(operator, types, first, second, scales, points)
        yield Draft(aim, content, inputs, note)
    ends = np.array(list(product((kind.minimum, kind.minimum + 1, 0, kind.maximum - 1, kind.maximum), repeat=2)))
    for points in ([kind.minimum] * 3, [kind.maximum] * 3, [kind.minimum, kind.maximum, kind.minimum]):
        for scales in ((3.0, 2.0, 0.01), (0.002, 0.001, 5.0)):
            first, second = ends.T.astype(kind.numpy)
            content, inputs = _model(operator, types, first, second, scales, points)
            yield Draft("saturation", content, inputs, f"both ends, zero points {points}, scales {scales}")
    for number, sizes in enumerate(_SHAPES):
        random = generator(operator, types, "shapes", number)
        first, second = (random.integers(kind.minimum, kind.maximum, s, kind.numpy, True) for s in sizes)
        scales = (0.25, 0.5, 0.5 * (32 if times else 1))
        points = _points(types, _POINTS[number], times)
        content, inputs = _model(operator, types, first, second, scales, points, constant=number % 2 == 0)
        yield Draft("shapes", content, inputs, f"{list(sizes[0])} and {list(sizes[1])}")
    for number, shape in enumerate(((3, 67), (2, 3, 5, 7), (1, 257), (4, 8, 9))):
        random = generator(operator, types, "random", number)
        first, second = (random.integers(kind.minimum, kind.maximum, shape, kind.numpy, True) for _ in range(2))
        one, two = (float(np.float32(between(random, 0.01, 0.1))) for _ in range(2))
        wide = 255 * 255 / 4 * one * two if times else 255 * (one + two)
        scales = (one, two, float(np.float32(wide / 255)))
        points = [_point(types, between(random, 0.3, 0.7)) for _ in range(3)]
        content, inputs = _model(operator, types, first, second, scales, points)
        yield Draft("random", content, inputs, "uniform quantized values")
    first = np.zeros((2, 3), kind.numpy)
    content, inputs = _model(operator, types, first, np.zeros(3, kind.numpy), (1.0, 1.0, 1.0), [0, 0, 0])
    why = "the result is declared as s32"
    yield Draft("rejects", declared(content, "s32"), inputs, why, why)
    # The model must be made for shapes that fit: `_model` itself refuses others.
    second = np.zeros((4,), kind.numpy)
    content, inputs = _model(operator, types, first, second, (1.0, 1.0, 1.0), [0, 0, 0], shape=(2, 3))
    why = "[2, 3] and [4] do not broadcast"
    yield Draft("rejects", content, inputs, why, why)


def _ends(a: np.ndarray, b: np.ndarray, y: np.ndarray, low: int, high: int, random: np.random.Generator) -> np.ndarray:
    """Pairs with the first and last quantized value of each operand, with a result between the ends where there is
    one.
    """
    chosen = []
    for elements in (a, b):
        for end in (low, high):
            found = np.flatnonzero((elements == end) & (y > low) & (y < high))
            chosen.append(random.choice(found if found.size else np.flatnonzero(elements == end), 4))
    return np.concatenate(chosen)


def _points(types: str, parts: tuple[float, float, float], times: bool) -> list[int]:
    """Products of two numbers below zero, with a result that has none above it, would say nothing."""
    return [_point(types, part) for part in ((1.0, 1.0, 0.0) if times and parts == (1.0, 1.0, 1.0) else parts)]


def _point(types: str, part: float) -> int:
    kind = data_type(types)
    return int(kind.minimum + np.rint(part * (kind.maximum - kind.minimum)))


def _model(
    operator: str,
    types: str,
    a: np.ndarray,
    b: np.ndarray,
    scales: tuple[float, float, float],
    points: list[int],
    constant: bool = False,
    shape: tuple[int, ...] | None = None,
) -> tuple[bytes, dict[str, np.ndarray]]:
    operands = [Codes(a, scales[0], points[0]), Codes(b, scales[1], points[1], constant)]
    result = (np.broadcast_shapes(a.shape, b.shape) if shape is None else shape, scales[2], points[2])
    return quantized(operator, types, operands, result)


def _answers(
    operator: str,
    a: np.ndarray,
    b: np.ndarray,
    scales: tuple[float, float, float],
    points: list[int],
    low: int,
    high: int,
) -> list[np.ndarray]:
    """Quantized values under the arithmetics of ONNX numerics and those near to them, in binary32 and in binary64."""
    f32 = np.float32
    sa, sb, sy = (f32(scale) for scale in scales)
    za, zb, zy = points
    real_a, real_b = sa * (a - za).astype(f32), sb * (b - zb).astype(f32)
    wide_a, wide_b = float(sa) * (a - za).astype(np.float64), float(sb) * (b - zb).astype(np.float64)
    if operator.endswith("Mul"):
        exact = wide_a * wide_b / float(sy)
        factor = f32(f32(sa * sb) / sy)
        elements = ((a - za) * (b - zb)).astype(f32)
        quotients = [
            elements * factor,
            real_a * real_b / sy,
            elements * f32(f32(sa / sy) * sb),
            real_a * real_b * f32(1 / sy),
        ]
        with_point = [elements * factor + f32(zy)]
    else:
        sign = f32(-1) if operator.endswith("Sub") else f32(1)
        exact = (wide_a + float(sign) * wide_b) / float(sy)
        one, two = sa / sy, sign * sb / sy
        constant = f32(zy) - (one * f32(za) + two * f32(zb))
        moved_a, moved_b = (a - za).astype(f32), (b - zb).astype(f32)
        quotients = [
            (real_a + sign * real_b) / sy,
            (real_a + sign * real_b) * f32(1 / sy),
            moved_a * one + moved_b * two,
        ]
        fused = floats.fused_multiply_add(b.astype(f32), np.asarray(two), np.asarray(constant))
        with_point = [
            floats.fused_multiply_add(a.astype(f32), np.asarray(one), fused),
            a.astype(f32) * one + (b.astype(f32) * two + constant),
        ]
    narrow = quotients[0].astype(np.float64)
    reals = [
        *(np.rint(value.astype(np.float64)) for value in with_point),
        *(np.rint(value.astype(np.float64)) + zy for value in quotients),
        np.rint(exact) + zy,
        np.rint(exact + zy),
        np.trunc(exact + np.copysign(0.5, exact)) + zy,
        np.floor(exact + 0.5) + zy,
        np.ceil(exact - 0.5) + zy,
        np.trunc(exact) + zy,
        np.floor(exact) + zy,
        np.floor(narrow + 0.5) + zy,
        np.trunc(exact + zy + np.copysign(0.5, exact + zy)),
    ]
    return [np.clip(one, low, high).astype(np.int64) for one in reals]

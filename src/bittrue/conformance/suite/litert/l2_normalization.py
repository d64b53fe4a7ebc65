"""L2_NORMALIZATION: rows on which the ways to divide by a length part, rows of zeros, long rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ....rules import normalize
from .. import aiming
from ..draft import Draft, generator
from ..tflite import Operand, one_operator

OPERATORS = {"L2_NORMALIZATION": ("s8", "u8")}
Array = np.ndarray
_RANGES = {"s8": (-128, 127), "u8": (0, 255)}
_POINTS = (-128, 127, 0, 5, -77, 64)
_DEPTHS = (1, 2, 3, 4, 5, 8, 16, 17, 33)
_SHAPES = ((5, 7), (2, 3, 4), (1, 2, 3, 9), (1, 1, 1, 1), (17,), (2, 1, 2, 2, 6))
_RANDOM = ((1, 64), (4, 32), (1, 5, 5, 8), (8, 16), (2, 3, 24), (1, 128), (16, 4))


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Rows that tell rules apart, shapes, extremes, random ones, and what must be refused."""
    low, high = _RANGES[types]
    for number, depth in enumerate(_DEPTHS):
        random = generator(operator, types, "rows", number)
        point = _POINTS[number % len(_POINTS)] + low + 128
        rows = _rows(random, depth, low, high, point)
        found = _ways(rows - point, low + 128)
        chosen = rows[aiming.cover(found, 40)]
        # Ties of what is least likely come first; the rest is filled up with other rows.
        chosen = np.concatenate([chosen, rows[: max(1, 24 - len(chosen))]])
        yield _draft(types, chosen, point, "near ties", f"rows of {depth}, zero point {point}")
    for number, shape in enumerate(_SHAPES):
        x = generator(operator, types, "shapes", number).integers(low, high + 1, shape)
        yield _draft(types, x, _POINTS[number % len(_POINTS)] + low + 128, "shapes", str(list(shape)))
    for point in (low, high, low + 128):
        rows = np.full((4, 300), point)
        rows[1], rows[2, 7], rows[3, ::2] = low + high - point, low if point > low else high, high
        note = "all zeros, all extremes, one element, every second one"
        yield _draft(types, rows, point, "zero points", note)
    for number, shape in enumerate(_RANDOM):
        random = generator(operator, types, "random", number)
        x, point = random.integers(low, high + 1, shape), int(random.integers(low, high + 1))
        scale = float(np.float32(random.integers(1000, 90000) / 1e6))
        yield _draft(types, x, point, "random", str(list(shape)), scale)
    yield from _rejects(types)


def _rows(random: np.random.Generator, depth: int, low: int, high: int, point: int) -> Array:
    """Rows of every length: large and small quantized values, one large element, many equal ones."""
    reach = 2 ** random.integers(1, 9, (400, 1))
    rows = np.clip(point + random.integers(-256, 257, (400, depth)) * reach // 256, low, high)
    rows[::5] = random.integers(low, high + 1, (80, 1))
    rows[1::5, 0] = random.integers(low, high + 1, 80)
    return np.asarray(rows)


def _ways(rows: Array, zero_point: int) -> Array:
    """Quantized values [ways, rows, depth] under every rule, with exact lengths, and in several precisions."""
    found = [rule(rows) for name, rule in normalize.RULES.items() if name.startswith("q31")]
    squares = (rows.astype(np.int64) ** 2).sum(axis=1, keepdims=True)
    for bits, length in (
        ("binary64", np.sqrt(np.maximum(squares, 1).astype(np.float64))),
        ("binary32", np.sqrt(np.maximum(squares, 1).astype(np.float32))),
    ):
        real = 128 * rows.astype(length.dtype) / length
        one = length.dtype.type(1) / length
        for tie in aiming.TIES:
            found.append(aiming.rounded(real, tie))
            if bits == "binary32":
                found.append(aiming.rounded(rows.astype(np.float32) * one * np.float32(128), tie))
    # The floor of the exact quotient: 128 |x| <= k sqrt(s) where 16384 x^2 <= k^2 s.
    exact = [
        [math.isqrt(16384 * int(v) ** 2 // max(1, int(s))) for v in row]
        for row, (s,) in zip(rows, squares, strict=True)
    ]
    found.append(np.sign(rows) * np.array(exact, np.int64).reshape(rows.shape))
    return np.stack([np.clip(f, -128, 127) + zero_point for f in found])


def _draft(types: str, x: Array, point: int, aim: str, note: str, scale: float = 0.5) -> Draft:
    output = Operand(types, x.shape, 1 / 128, 0 if types == "s8" else 128)
    content = one_operator(
        "L2_NORMALIZATION",
        [Operand(types, x.shape, scale, point)],
        [output],
        {"fused_activation_function": "NONE"},
        2 if types == "s8" else 1,
    )
    return Draft(aim, content, {"input0": x.astype(np.int8 if types == "s8" else np.uint8)}, note)


def _rejects(types: str) -> Iterator[Draft]:
    """Models without a meaning."""
    x = np.zeros((1, 4), np.int8 if types == "s8" else np.uint8)
    why = "an output scale that is not 1/128"
    content = one_operator(
        "L2_NORMALIZATION",
        [Operand(types, x.shape, 0.5)],
        [Operand(types, x.shape, 1 / 64, 0 if types == "s8" else 128)],
        {"fused_activation_function": "NONE"},
        2 if types == "s8" else 1,
    )
    yield Draft("rejects", content, {"input0": x}, why, why)

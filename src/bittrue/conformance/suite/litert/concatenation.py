"""CONCATENATION: parts in their order along every axis; u8 parts of other scales are rescaled."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, between, distinct, generator
from ..tflite import Operand, one_operator

OPERATORS = {"CONCATENATION": ("s8", "u8", "s16")}

# Shapes of the parts, axis.
_PARTS: tuple[tuple[tuple[tuple[int, ...], ...], int], ...] = (
    (((1, 2, 3, 5), (1, 2, 3, 7)), 3),
    (((1, 2, 3, 5), (1, 2, 3, 1), (1, 2, 3, 9)), -1),
    (((1, 2, 3, 4), (1, 5, 3, 4)), 1),
    (((2, 2, 3, 4), (2, 2, 1, 4), (2, 2, 2, 4), (2, 2, 5, 4)), 2),
    (((1, 3, 4, 2), (3, 3, 4, 2)), 0),
    (((1, 3, 4, 2), (2, 3, 4, 2)), -4),
    (((5,), (12,), (1,), (3,)), 0),
    (((3, 33), (3, 31)), 1),
    (((2, 3, 1), (2, 3, 1), (2, 3, 1)), 2),
    (((2, 1, 3, 2, 2), (2, 4, 3, 2, 2)), 1),
    (((4, 7),), 1),
    (tuple((1, 3, 4, k + 2) for k in range(11)), 3),
)
_RANDOM = ((((1, 8, 8, 16), (1, 8, 8, 24)), 3), (((1, 64), (1, 64), (1, 32)), 1), (((1, 4, 16, 8), (1, 6, 16, 8)), 1))
# u8: scale and zero point of both parts and of the result.
_RESCALED = (
    ("ties", "halves and quarters of a step", (0.5, 128), (0.25, 3), (1.0, 128)),
    ("ties", "halves of a step, odd zero points", (0.5, 11), (1.5, 200), (1.0, 77)),
    ("near ties", "generic scales", (0.0413, 128), (0.0777, 3), (0.0613, 121)),
    ("saturation", "finer result", (0.1, 0), (0.3, 255), (0.06, 100)),
    ("zero points", "zero points at both ends", (0.031, 255), (0.047, 0), (0.0613, 0)),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Every part of other quantized values; the result's parameters at the ends of their ranges."""
    kind = data_type(types)
    everything = [(1, 128), (1, 128)] if kind.bits == 8 else [(1, 300), (1, 211)]
    quantized = distinct(types, (1, sum(shape[1] for shape in everything)), operator)
    parts = np.split(quantized, [everything[0][1]], axis=1)
    yield _draft(types, "codes", parts, 1, "every quantized value")
    for number, (shapes, axis) in enumerate(_PARTS):
        parts = [distinct(types, shape, operator, number, place) for place, shape in enumerate(shapes)]
        note = f"{' '.join(str(list(shape)) for shape in shapes)} along axis {axis}"
        yield _draft(types, "shapes", parts, axis, note, point=(0, kind.minimum, kind.maximum)[number % 3])
    if types == "u8":
        every = np.arange(256).astype(np.uint8)[None]
        for aim, note, first, second, output in _RESCALED:
            yield _draft(types, aim, [every, every[:, ::-1]], 1, note, quantization=(first, second, output))
    for number, (shapes, axis) in enumerate(_RANDOM):
        drawn = generator(operator, types, "random", number)
        parts = [drawn.integers(kind.minimum, kind.maximum + 1, shape).astype(kind.numpy) for shape in shapes]
        pairs = tuple((between(drawn, 1.0, 8.0) / 256, int(drawn.integers(0, 256))) for _ in range(len(shapes) + 1))
        yield _draft(
            types, "random", parts, axis, "uniform quantized values", quantization=pairs if types == "u8" else ()
        )


def _draft(
    types: str,
    aim: str,
    parts: list[np.ndarray],
    axis: int,
    note: str,
    point: int = 0,
    quantization: tuple[tuple[float, int], ...] = (),
) -> Draft:
    pairs = quantization or ((0.0625, 0 if types == "s16" else point),) * (len(parts) + 1)
    inputs = [Operand(types, part.shape, *pair) for part, pair in zip(parts, pairs, strict=False)]
    shape = np.concatenate(parts, axis=axis).shape
    content = one_operator(
        "CONCATENATION", inputs, [Operand(types, shape, *pairs[-1])], {"axis": axis}, 1 if types == "u8" else 2
    )
    return Draft(aim, content, {f"input{i}": part for i, part in enumerate(parts)}, note)

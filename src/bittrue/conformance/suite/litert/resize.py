"""RESIZE_BILINEAR: enlarged and reduced images, whose pixels lie halfway between others, or nearly so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, distinct, generator
from ..tflite import Operand, one_operator

OPERATORS = {"RESIZE_BILINEAR": ("s8", "u8", "s16")}

_PLAIN: dict[str, bool] = {}
_CORNERS, _CENTRES = {"align_corners": True}, {"half_pixel_centers": True}
# Aim, shape, new height and width, options.
_SIZES: tuple[tuple[str, tuple[int, int, int, int], tuple[int, int], dict[str, bool]], ...] = (
    ("ties", (1, 6, 6, 8), (12, 12), _PLAIN),
    ("ties", (1, 6, 6, 4), (24, 24), _PLAIN),
    ("ties", (1, 6, 6, 8), (12, 12), _CENTRES),
    ("ties", (1, 7, 7, 8), (13, 13), _CORNERS),
    ("ties", (1, 12, 12, 8), (6, 6), _CENTRES),
    ("ties", (1, 16, 5, 8), (8, 10), _PLAIN),
    ("near ties", (1, 5, 7, 6), (15, 21), _PLAIN),
    ("near ties", (1, 5, 7, 6), (15, 21), _CENTRES),
    ("near ties", (1, 5, 7, 6), (13, 19), _CORNERS),
    ("near ties", (1, 11, 13, 8), (7, 6), _PLAIN),
    ("near ties", (1, 11, 13, 8), (7, 6), _CENTRES),
    ("near ties", (1, 11, 13, 8), (7, 6), _CORNERS),
    ("near ties", (1, 10, 11, 4), (3, 4), _PLAIN),
    ("near ties", (1, 9, 4, 3), (31, 23), _CENTRES),
    ("near ties", (1, 9, 4, 3), (31, 23), _CORNERS),
    ("shapes", (2, 3, 5, 1), (4, 9), _PLAIN),
    ("shapes", (3, 4, 2, 5), (6, 7), _CENTRES),
    ("shapes", (1, 1, 1, 7), (5, 4), _PLAIN),
    ("shapes", (1, 1, 6, 3), (1, 11), _CORNERS),
    ("shapes", (1, 6, 1, 3), (11, 1), _CENTRES),
    ("shapes", (1, 5, 5, 4), (1, 1), _PLAIN),
    ("shapes", (1, 5, 5, 4), (1, 1), _CORNERS),
    ("shapes", (1, 5, 5, 4), (1, 1), _CENTRES),
    ("shapes", (1, 4, 6, 33), (4, 6), _PLAIN),
    ("shapes", (1, 4, 6, 17), (8, 3), _CENTRES),
)
_RANDOM = (
    ((1, 16, 16, 8), (32, 32), _CENTRES),
    ((1, 7, 7, 16), (14, 14), _CORNERS),
    ((1, 20, 20, 3), (11, 9), _PLAIN),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Random quantized values where ties are many, a board of both ends, then shapes, then random sizes."""
    kind = data_type(types)
    for number, (aim, shape, size, options) in enumerate(_SIZES):
        drawn = generator(operator, types, number)
        # Neighbours that differ little have small results, where ties away from zero and up part below zero.
        near = drawn.integers(-9, 10, shape) + (0 if kind.minimum < 0 else 128)
        quantized = distinct(types, shape, operator, number)
        quantized = np.where(np.arange(shape[3]) % 2 == 0, quantized, near).astype(kind.numpy)
        yield _draft(types, aim, quantized, size, options, (0, kind.minimum, kind.maximum, 5)[number % 4])
    for options in (_PLAIN, _CORNERS, _CENTRES):
        board = np.where(np.indices((1, 5, 5, 2)).sum(axis=0) % 2 == 0, kind.minimum, kind.maximum)
        yield _draft(types, "saturation", board.astype(kind.numpy), (9, 14), options, 3)
    for number, (shape, size, options) in enumerate(_RANDOM * 2):
        quantized = generator(operator, types, "random", number).integers(kind.minimum, kind.maximum + 1, shape)
        yield _draft(types, "random", quantized.astype(kind.numpy), size, options, 0)


def _draft(
    types: str, aim: str, quantized: np.ndarray, size: tuple[int, int], options: dict[str, bool], point: int
) -> Draft:
    zero = 0 if types == "s16" else point
    batch, height, width, channels = quantized.shape
    x = Operand(types, quantized.shape, 0.05, zero)
    wanted = Operand("s32", (2,), data=np.array(size, np.int32), name="size")
    y = Operand(types, (batch, *size, channels), 0.05, zero)
    every = {"align_corners": False, "half_pixel_centers": False, **options}
    content = one_operator("RESIZE_BILINEAR", [x, wanted], [y], every, {"s8": 2, "u8": 1, "s16": 4}[types])
    way = next(iter(options), "corners as they are").replace("_", " ")
    return Draft(aim, content, {"input0": quantized}, f"{height}x{width} to {size[0]}x{size[1]}, {way}")

"""SPACE_TO_DEPTH, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: blocks of pixels that become channels or images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, distinct, generator
from ..tflite import Operand, one_operator

_BATCHES = ("s8", "u8", "s16")
OPERATORS = {"SPACE_TO_DEPTH": ("s8", "u8"), "BATCH_TO_SPACE_ND": _BATCHES, "SPACE_TO_BATCH_ND": _BATCHES}

_Pairs = tuple[tuple[int, int], ...]
# Shape and block.
_DEPTHS: tuple[tuple[tuple[int, int, int, int], int], ...] = (
    ((1, 4, 4, 16), 2),
    ((1, 6, 9, 4), 3),
    ((2, 4, 8, 3), 4),
    ((3, 2, 6, 5), 2),
    ((1, 2, 2, 1), 2),
    ((1, 5, 10, 3), 5),
    ((2, 3, 4, 7), 1),
)
_RANDOM_DEPTHS: tuple[tuple[tuple[int, int, int, int], int], ...] = (((1, 16, 16, 3), 2), ((1, 12, 12, 4), 4))
# Shape, block, paddings of the image per axis.
_SPACES: tuple[tuple[tuple[int, ...], tuple[int, ...], _Pairs], ...] = (
    ((1, 8, 8, 4), (2, 2), ((0, 0), (0, 0))),
    ((1, 5, 7, 3), (2, 3), ((1, 0), (0, 2))),
    ((2, 3, 4, 2), (3, 2), ((2, 1), (1, 1))),
    ((1, 4, 6, 5), (1, 3), ((0, 0), (2, 1))),
    ((3, 2, 5, 1), (2, 1), ((0, 2), (3, 0))),
    ((2, 6, 3, 4), (4, 5), ((1, 1), (0, 2))),
    ((2, 7, 6), (4,), ((1, 0),)),
    ((1, 1, 1, 9), (2, 2), ((1, 0), (0, 1))),
    ((1, 3, 3, 2), (1, 1), ((1, 2), (0, 3))),
    ((1, 3, 5, 3), (3, 1), ((0, 0), (0, 0))),
    ((1, 4, 3, 5), (2, 3), ((2, 0), (3, 0))),
)
_RANDOM_SPACES: tuple[tuple[tuple[int, ...], tuple[int, ...], _Pairs], ...] = (
    ((1, 14, 14, 4), (2, 2), ((1, 1), (1, 1))),
    ((1, 12, 12, 6), (2, 2), ((0, 0), (0, 0))),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Blocks of unequal sides, uneven paddings and crops, several images, zero points at both ends."""
    kind = data_type(types)
    if operator == "SPACE_TO_DEPTH":
        for number, (shape, block) in enumerate(_DEPTHS):
            quantized = distinct(types, shape, operator, number)
            point = (kind.minimum, kind.maximum, 0)[number % 3]
            yield _depth(types, "codes" if number == 0 else "shapes", quantized, block, point)
        for number, (shape, block) in enumerate(_RANDOM_DEPTHS):
            quantized = generator(operator, types, "random", number).integers(kind.minimum, kind.maximum + 1, shape)
            yield _depth(types, "random", quantized.astype(kind.numpy), block, 0)
        return
    for aim, rows in (("padding", _SPACES), ("random", _RANDOM_SPACES)):
        for number, (space, blocks, paddings) in enumerate(rows):
            point = (kind.minimum, kind.maximum, 0, 3)[number % 4] if aim == "padding" else 0
            batches = _batches(space, blocks, paddings)
            given = space if operator == "SPACE_TO_BATCH_ND" else batches
            quantized = distinct(types, given, operator, number)
            if aim == "random":
                drawn = generator(operator, types, "random", number)
                quantized = drawn.integers(kind.minimum, kind.maximum + 1, given).astype(kind.numpy)
            wanted = batches if operator == "SPACE_TO_BATCH_ND" else space
            yield _batch(operator, types, aim, quantized, blocks, paddings, wanted, point)


def _batches(shape: tuple[int, ...], block: tuple[int, ...], paddings: _Pairs) -> tuple[int, ...]:
    """The shape that images of `shape` have as blocks."""
    inner = [
        (dimension + before + after) // size
        for dimension, size, (before, after) in zip(shape[1:], block, paddings, strict=False)
    ]
    return (shape[0] * int(np.prod(block)), *inner, *shape[1 + len(block) :])


def _depth(types: str, aim: str, quantized: np.ndarray, block: int, point: int) -> Draft:
    batch, height, width, depth = quantized.shape
    x = Operand(types, quantized.shape, 0.25, point)
    y = Operand(types, (batch, height // block, width // block, depth * block * block), 0.25, point)
    content = one_operator("SPACE_TO_DEPTH", [x], [y], {"block_size": block}, 2 if types == "s8" else 1)
    return Draft(aim, content, {"input0": quantized}, f"{list(quantized.shape)}, blocks of {block}")


def _batch(
    operator: str,
    types: str,
    aim: str,
    quantized: np.ndarray,
    block: tuple[int, ...],
    paddings: _Pairs,
    wanted: tuple[int, ...],
    point: int,
) -> Draft:
    zero = 0 if types == "s16" else point
    what = "paddings" if operator == "SPACE_TO_BATCH_ND" else "crops"
    operands = [
        Operand(types, quantized.shape, 0.25, zero),
        Operand("s32", (len(block),), data=np.array(block, np.int32), name="block"),
        Operand("s32", (len(block), 2), data=np.array(paddings, np.int32), name=what),
    ]
    content = one_operator(operator, operands, [Operand(types, wanted, 0.25, zero)], {}, {"s16": 3}.get(types, 2))
    note = f"{list(quantized.shape)}, blocks {list(block)}, {what} {[list(pair) for pair in paddings]}"
    return Draft(aim, content, {"input0": quantized}, note)

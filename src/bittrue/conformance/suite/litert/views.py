"""GATHER, TRANSPOSE and SLICE: elements taken from elsewhere, unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from ....graph import data_type
from ..draft import Draft, distinct, generator
from ..tflite import Operand, one_operator

OPERATORS = dict.fromkeys(("GATHER", "TRANSPOSE", "SLICE"), ("s8", "u8", "s16"))

# Shape, positions (one number, or an array), axis, batch dimensions.
_GATHERED: tuple[tuple[tuple[int, ...], object, int, int], ...] = (
    ((256, 1), list(range(255, -1, -1)), 0, 0),
    ((7, 5, 3), [6, 0, 3, 3, 1], 0, 0),
    ((4, 9, 5), [8, 0, 0, 4], 1, 0),
    ((2, 3, 33), [32, 31, 0, 16, 1], 2, 0),
    ((3, 4, 6), [[5, 0], [2, 2], [1, 4]], -1, 0),
    ((5, 6), 4, 0, 0),
    ((2, 5, 7), 0, 2, 0),
    ((3, 8), [[1], [7]], 1, 0),
    ((3, 5, 4), [[0, 4], [2, 2], [3, 1]], 1, 1),
    ((2, 3, 6, 2), [[5, 0, 1], [3, 3, 2]], 2, 1),
    ((9,), [8, 8, 8, 0], 0, 0),
    ((2, 2, 3, 2, 2), [2, 0, 1, 1], 2, 0),
)
_RANDOM_GATHERED = (((64, 16), 24, 0), ((1, 32, 8), 20, 1))
_TRANSPOSED: tuple[tuple[int, ...], ...] = ((3, 5, 7), (4, 6), (2, 3, 4, 5))
_MORE_TRANSPOSED: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((256,), (0,)),
    ((1, 9, 1, 11), (0, 3, 2, 1)),
    ((16, 16), (1, 0)),
    ((33, 8), (1, 0)),
    ((2, 3, 2, 3, 4), (4, 0, 3, 1, 2)),
    ((2, 3, 1, 5, 4), (1, 0, 4, 3, 2)),
    ((2, 1, 3, 2, 3, 2), (5, 3, 1, 0, 4, 2)),
)
_RANDOM_TRANSPOSED: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 16, 16, 8), (0, 3, 1, 2)),
    ((1, 8, 16, 16), (0, 2, 3, 1)),
    ((32, 24), (1, 0)),
)
# Shape, begins, sizes.
_SLICED: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = (
    ((256,), (0,), (256,)),
    ((11,), (3,), (5,)),
    ((5, 7), (1, 2), (3, -1)),
    ((3, 5, 7), (2, 0, 6), (1, 5, 1)),
    ((3, 5, 7), (0, 4, 1), (-1, 1, 5)),
    ((2, 4, 5, 6), (1, 1, 2, 3), (1, 3, 2, 2)),
    ((2, 4, 5, 6), (0, 0, 0, 5), (2, 4, 5, 1)),
    ((1, 3, 3, 33), (0, 1, 0, 16), (1, 2, 3, 17)),
    ((2, 2, 3, 4, 3), (0, 1, 1, 0, 2), (2, 1, 2, 4, 1)),
    ((1, 1, 1, 1), (0, 0, 0, 0), (-1, -1, -1, -1)),
)
_RANDOM_SLICED: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 16, 16, 8), (0, 4, 4, 0), (1, 8, 8, 8)),
    ((1, 8, 8, 32), (0, 0, 0, 16), (1, 8, 8, 16)),
    ((4, 100), (0, 10), (4, 50)),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """All elements differ as far as the type allows, so that none may come from elsewhere."""
    yield from {"GATHER": _gathers, "TRANSPOSE": _transposes, "SLICE": _slices}[operator](types)


def _gathers(types: str) -> Iterator[Draft]:
    kind = data_type(types)
    for number, (shape, positions, axis, batch) in enumerate(_GATHERED):
        quantized = distinct(types, shape, "GATHER", number)
        integers = "s64" if number % 3 == 2 else "s32"
        aim = "codes" if number == 0 else "shapes"
        yield _gather(types, aim, quantized, np.array(positions), axis, batch, integers, number)
    for number, (shape, count, axis) in enumerate(_RANDOM_GATHERED * 2):
        drawn = generator("GATHER", types, "random", number)
        quantized = drawn.integers(kind.minimum, kind.maximum + 1, shape).astype(kind.numpy)
        places = drawn.integers(0, shape[axis], count)
        yield _gather(types, "random", quantized, places, axis, 0, "s32", 2)


def _gather(
    types: str,
    aim: str,
    quantized: np.ndarray,
    positions: np.ndarray,
    axis: int,
    batch: int,
    integers: str,
    number: int,
) -> Draft:
    if batch:
        found = np.stack([np.take(one, at, axis - 1) for one, at in zip(quantized, positions, strict=True)])
    else:
        found = np.take(quantized, positions, axis)
    x, y = _same(types, quantized.shape, found.shape, number)
    indices = Operand(integers, positions.shape, data=positions, name="positions")
    content = one_operator("GATHER", [x, indices], [y], {"axis": axis, "batch_dims": batch}, {"s16": 4}.get(types, 2))
    note = f"{list(quantized.shape)}, {positions.size} positions of shape {list(positions.shape)} along axis {axis}"
    return Draft(aim, content, {"input0": quantized}, note + (f", {batch} batch dimensions" if batch else ""))


def _transposes(types: str) -> Iterator[Draft]:
    kind = data_type(types)
    rows = [(shape, order) for shape in _TRANSPOSED for order in permutations(range(len(shape)))]
    for number, (shape, order) in enumerate([*rows, *_MORE_TRANSPOSED]):
        aim = "codes" if shape == (256,) else "shapes"
        yield _transpose(types, aim, distinct(types, shape, "TRANSPOSE", number), order, number)
    for number, (shape, order) in enumerate(_RANDOM_TRANSPOSED * 3):
        quantized = generator("TRANSPOSE", types, "random", number).integers(kind.minimum, kind.maximum + 1, shape)
        yield _transpose(types, "random", quantized.astype(kind.numpy), order, 2)


def _transpose(types: str, aim: str, quantized: np.ndarray, order: tuple[int, ...], number: int) -> Draft:
    x, y = _same(types, quantized.shape, quantized.transpose(order).shape, number)
    axes = Operand("s32", (len(order),), data=np.array(order, np.int32), name="order")
    content = one_operator("TRANSPOSE", [x, axes], [y], {}, {"s16": 4}.get(types, 2))
    return Draft(aim, content, {"input0": quantized}, f"{list(quantized.shape)}, axes in the order {list(order)}")


def _slices(types: str) -> Iterator[Draft]:
    kind = data_type(types)
    for number, (shape, begins, sizes) in enumerate(_SLICED):
        aim = "codes" if number == 0 else "shapes"
        yield _slice(types, aim, distinct(types, shape, "SLICE", number), begins, sizes, number)
    for number, (shape, begins, sizes) in enumerate(_RANDOM_SLICED):
        quantized = generator("SLICE", types, "random", number).integers(kind.minimum, kind.maximum + 1, shape)
        yield _slice(types, "random", quantized.astype(kind.numpy), begins, sizes, 2)


def _slice(
    types: str, aim: str, quantized: np.ndarray, begins: tuple[int, ...], sizes: tuple[int, ...], number: int
) -> Draft:
    shape = [
        dimension - begin if size < 0 else size
        for dimension, begin, size in zip(quantized.shape, begins, sizes, strict=True)
    ]
    x, y = _same(types, quantized.shape, shape, number)
    integers = "s64" if number % 4 == 3 else "s32"
    places = [
        Operand(integers, (len(values),), data=np.array(values), name=name)
        for name, values in (("begin", begins), ("size", sizes))
    ]
    content = one_operator("SLICE", [x, *places], [y], {}, {"s16": 4}.get(types, 2))
    return Draft(
        aim, content, {"input0": quantized}, f"{list(quantized.shape)} from {list(begins)}, sizes {list(sizes)}"
    )


def _same(types: str, shape: tuple[int, ...], wanted: object, number: int) -> tuple[Operand, Operand]:
    """Input and output of the same parameters, the zero point now at one end, now at the other."""
    kind = data_type(types)
    point = 0 if types == "s16" else (kind.minimum, kind.maximum, 0)[number % 3]
    return Operand(types, shape, 0.75, point), Operand(types, tuple(wanted), 0.75, point)  # type: ignore[arg-type]

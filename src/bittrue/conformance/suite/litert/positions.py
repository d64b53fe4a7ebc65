"""ARG_MAX: of equal maxima the first one counts. SHAPE: the sizes of the input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, distinct, generator
from ..tflite import Operand, one_operator

OPERATORS = {"ARG_MAX": ("s8", "u8"), "SHAPE": ("s8", "u8", "s16")}

# Shape, axis.
_ARGUMENTS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((1, 256), 1),
    ((7, 10), -1),
    ((5, 33), 0),
    ((2, 3, 4, 5), 3),
    ((2, 3, 4, 5), 2),
    ((2, 6, 4, 5), 1),
    ((4, 3, 2, 5), 0),
    ((3, 4, 5), -2),
    ((2, 3, 17), -3),
    ((19,), 0),
    ((4, 1), 1),
    ((9, 9), 1),
    ((9, 9), 0),
    ((5, 5, 5), 1),
    ((5, 5, 5), -1),
    ((3, 1001), 1),
)
_RANDOM: tuple[tuple[tuple[int, ...], int], ...] = (((8, 10), 1), ((1, 16, 16, 21), 3), ((4, 100), -1))
_SHAPES: tuple[tuple[int, ...], ...] = (
    (1,),
    (7,),
    (1, 5),
    (3, 1, 4),
    (2, 3, 5, 7),
    (1, 2, 3, 4, 5),
    (1, 1, 1, 1, 2, 3),
    (300, 2),
    (66051,),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Rows with one maximum, with several, and with none but maxima; axes from both sides; both integer types."""
    yield from _arg_max(types) if operator == "ARG_MAX" else _shape(types)


def _arg_max(types: str) -> Iterator[Draft]:
    kind = data_type(types)
    for number, (shape, axis) in enumerate(_ARGUMENTS):
        drawn = generator("ARG_MAX", types, number)
        results = "s64" if number % 2 else "s32"
        point = (kind.minimum, kind.maximum, kind.minimum + 128)[number % 3]
        few = drawn.integers(kind.maximum - 2, kind.maximum + 1, shape)
        low = drawn.integers(kind.minimum, kind.minimum + 3, shape)
        alike = np.full(shape, (kind.minimum, kind.maximum, kind.minimum + 7)[number % 3])
        ends = np.where(np.arange(alike.size).reshape(shape) % 3 == 0, kind.maximum, kind.minimum)
        for aim, quantized, note in (
            ("codes", distinct(types, shape, "ARG_MAX", number), "few equal maxima"),
            ("ties", few, "many maxima at the upper end"),
            ("ties", low, "many maxima at the lower end"),
            ("ties", alike, "all quantized values are equal"),
            ("saturation", ends, "both ends of the type"),
        ):
            yield _position(types, aim, quantized.astype(kind.numpy), axis, results, point, note)
    for number, (shape, axis) in enumerate(_RANDOM * 5):
        quantized = generator("ARG_MAX", types, "random", number).integers(kind.minimum, kind.maximum + 1, shape)
        yield _position(types, "random", quantized.astype(kind.numpy), axis, "s32", 0, "uniform quantized values")


def _position(types: str, aim: str, quantized: np.ndarray, axis: int, results: str, point: int, note: str) -> Draft:
    shape = np.delete(quantized.shape, axis)
    operands = [
        Operand(types, quantized.shape, 0.1, point),
        Operand("s32", (), data=np.array(axis, np.int32), name="axis"),
    ]
    names = {"s32": "INT32", "s64": "INT64"}
    version = 2 if types == "s8" else 1
    options = {"output_type": names[results]}
    content = one_operator("ARG_MAX", operands, [Operand(results, tuple(shape))], options, version)
    return Draft(aim, content, {"input0": quantized}, f"{list(quantized.shape)} along axis {axis}: {note}")


def _shape(types: str) -> Iterator[Draft]:
    kind = data_type(types)
    for number, shape in enumerate(_SHAPES):
        results = "s64" if number % 2 else "s32"
        content = one_operator(
            "SHAPE",
            [Operand(types, shape, 0.1, 0)],
            [Operand(results, (len(shape),))],
            {"out_type": {"s32": "INT32", "s64": "INT64"}[results]},
        )
        aim = "random" if shape == (1, 5) else "shapes"
        yield Draft(aim, content, {"input0": distinct(kind.name, shape, "SHAPE")}, f"{list(shape)}")

"""PAD and PADV2: a border of the zero point, or of a value that the model gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, distinct, generator
from ..tflite import Operand, one_operator

OPERATORS = {"PAD": ("s8", "u8", "s16"), "PADV2": ("s8", "u8", "s16")}

_Pairs = tuple[tuple[int, int], ...]
_CASES: tuple[tuple[tuple[int, ...], _Pairs], ...] = (
    ((1, 3, 5, 4), ((0, 0), (1, 2), (3, 0), (0, 0))),
    ((1, 4, 3, 5), ((0, 0), (0, 1), (2, 2), (0, 0))),
    ((2, 3, 2, 7), ((1, 0), (0, 3), (1, 1), (2, 5))),
    ((1, 5, 4, 3), ((0, 2), (4, 0), (0, 7), (1, 0))),
    ((1, 1, 1, 1), ((2, 1), (0, 3), (1, 1), (3, 0))),
    ((4, 7), ((3, 1), (0, 2))),
    ((9,), ((5, 11),)),
    ((3, 5, 6), ((0, 0), (0, 0), (0, 0))),
    ((2, 4, 33), ((0, 0), (1, 0), (0, 1))),
    ((2, 1, 3, 2, 4), ((0, 1), (1, 0), (2, 0), (0, 3), (1, 1))),
    ((1, 4, 4, 8), ((0, 0), (1, 1), (1, 1), (0, 0))),
    ((1, 6, 6, 16), ((0, 0), (0, 1), (0, 1), (0, 0))),
)
_RANDOM: tuple[tuple[tuple[int, ...], _Pairs], ...] = (
    ((1, 16, 16, 4), ((0, 0), (1, 1), (1, 1), (0, 0))),
    ((1, 14, 14, 6), ((0, 0), (0, 1), (0, 1), (0, 0))),
    ((4, 30), ((0, 0), (2, 2))),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Borders of every width on every side, under zero points at both ends and between them."""
    kind = data_type(types)
    middle = kind.maximum // 2
    for number, (shape, paddings) in enumerate(_CASES):
        quantized = distinct(types, shape, operator, number)
        point = (kind.minimum, kind.maximum, 3, kind.minimum + 5, middle)[number % 5]
        value = (kind.maximum, kind.minimum, middle, -1 if kind.minimum < 0 else 127)[number % 4]
        aim = "zero points" if number >= 10 else "padding"
        yield _draft(operator, types, aim, quantized, paddings, point, value, number % 3 == 2)
    for number, (shape, paddings) in enumerate(_RANDOM):
        drawn = generator(operator, types, "random", number)
        quantized = drawn.integers(kind.minimum, kind.maximum + 1, shape).astype(kind.numpy)
        point, value = (int(v) for v in drawn.integers(kind.minimum, kind.maximum + 1, 2))
        yield _draft(operator, types, "random", quantized, paddings, point, value, False)


def _draft(
    operator: str, types: str, aim: str, quantized: np.ndarray, paddings: _Pairs, point: int, value: int, wide: bool
) -> Draft:
    """With `wide` the paddings are 64-bit integers."""
    zero = 0 if types == "s16" else point
    integers = "s64" if wide else "s32"
    operands = [
        Operand(types, quantized.shape, 0.125, zero),
        Operand(
            integers, (quantized.ndim, 2), data=np.array(paddings, np.int64 if wide else np.int32), name="paddings"
        ),
    ]
    note = f"{list(quantized.shape)}, paddings {[list(pair) for pair in paddings]}, zero point {zero}"
    if operator == "PADV2":
        operands.append(Operand(types, (1,), 0.125, zero, data=np.array([value]), name="value"))
        note += f", value {value}"
    shape = tuple(size + sum(pair) for size, pair in zip(quantized.shape, paddings, strict=True))
    content = one_operator(operator, operands, [Operand(types, shape, 0.125, zero)], {}, 2)
    return Draft(aim, content, {"input0": quantized}, note)

"""RESHAPE and SQUEEZE: every quantized value must come out where it went in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, distinct, generator
from ..tflite import Operand, one_operator

OPERATORS = {"RESHAPE": ("s8", "u8", "s16"), "SQUEEZE": ("s8", "u8", "s16")}

# Shape of the input, wanted shape (what the model says, -1 for "the rest") or squeezed axes.
_SHAPES: dict[str, tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]] = {
    "RESHAPE": (
        ((1, 256), (4, 8, 8)),
        ((2, 3, 5, 7), (7, 30)),
        ((1,), (1, 1, 1, 1)),
        ((3, 1, 11), (33,)),
        ((2, 4, 4, 8), (2, -1)),
        ((5, 6, 7), (-1, 6)),
        ((1, 1, 1, 10), (1, 10)),
        ((13,), (13, 1, 1)),
        ((2, 3, 2, 5, 3), (3, 60)),
        ((1, 1), ()),
        ((120,), (2, 3, 4, 5)),
        ((9, 9), (3, 3, 3, 3)),
        ((4, 4, 4, 4), (16, 16)),
    ),
    "SQUEEZE": (
        ((1, 256, 1), ()),
        ((2, 1, 3, 1, 5), (1, 3)),
        ((1, 1, 1, 7), (0, 1)),
        ((1, 1, 1, 7), (2,)),
        ((3, 1, 11), (-2,)),
        ((1, 1, 1, 1), ()),
        ((1, 2, 1, 6, 1), (0, 2, 4)),
        ((1, 17, 1, 3), (-4, 2)),
    ),
}
_RANDOM = {
    "RESHAPE": (((1, 4, 4, 32), (1, 512)), ((1, 8, 8, 12), (1, 64, 12)), ((8, 10), (1, 8, 10, 1))),
    "SQUEEZE": (((1, 1, 1, 128), (1, 2)), ((4, 1, 16, 3), (1,))),
}


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Every quantized value once, in awkward shapes, with zero points at both ends; then random quantized values in
    usual shapes.
    """
    kind = data_type(types)
    for number, (shape, wanted) in enumerate(_SHAPES[operator]):
        point = (kind.minimum, kind.maximum, 0)[number % 3]
        quantized = distinct(types, shape, operator, number)
        yield _draft(operator, types, "codes" if number == 0 else "shapes", quantized, wanted, point)
    for number, (shape, wanted) in enumerate(_RANDOM[operator]):
        quantized = generator(operator, types, "random", number).integers(kind.minimum, kind.maximum + 1, shape)
        yield _draft(operator, types, "random", quantized.astype(kind.numpy), wanted, 0)


def _draft(operator: str, types: str, aim: str, quantized: np.ndarray, wanted: tuple[int, ...], point: int) -> Draft:
    zero = 0 if types == "s16" else point
    x = Operand(types, quantized.shape, 0.5, zero)
    if operator == "RESHAPE":
        shape = quantized.reshape(wanted).shape
        target = Operand("s32", (len(wanted),), data=np.array(wanted, np.int32), name="shape")
        content = one_operator(operator, [x, target], [Operand(types, shape, 0.5, zero)], {"new_shape": wanted})
        return Draft(aim, content, {"input0": quantized}, f"{list(quantized.shape)} to {list(wanted)}")
    axes = wanted or tuple(axis for axis, size in enumerate(quantized.shape) if size == 1)
    shape = np.squeeze(quantized, axes).shape
    content = one_operator(operator, [x], [Operand(types, shape, 0.5, zero)], {"squeeze_dims": wanted})
    return Draft(
        aim, content, {"input0": quantized}, f"{list(quantized.shape)} without axes {list(wanted) or 'of size 1'}"
    )

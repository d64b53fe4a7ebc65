"""RESHAPE and SQUEEZE: every code must come out where it went in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, generator
from ..tflite import Operand, one_operator

OPERATORS = {"RESHAPE": ("s8", "u8", "s16"), "SQUEEZE": ("s8", "u8", "s16")}

_SHAPES = {
    "RESHAPE": (((1, 256), (4, 8, 8)), ((2, 3, 5, 7), (7, 30)), ((1,), (1, 1, 1, 1)), ((3, 1, 11), (33,))),
    "SQUEEZE": (((1, 256, 1), (256,)), ((2, 1, 3, 1, 5), (2, 3, 5)), ((1, 1, 1, 7), (7,))),
}


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Every code once, in awkward shapes, with zero points at both ends."""
    kind = data_type(types)
    for number, (shape, wanted) in enumerate(_SHAPES[operator]):
        codes = np.linspace(kind.minimum, kind.maximum, int(np.prod(shape))).astype(kind.numpy)
        codes = generator(operator, types, number).permutation(codes).reshape(shape)
        point = 0 if types == "s16" else (kind.minimum, kind.maximum, 0)[number % 3]
        x = Operand(types, shape, 0.5, point)
        y = Operand(types, wanted, 0.5, point)
        if operator == "RESHAPE":
            target = Operand("s32", (len(wanted),), data=np.array(wanted, np.int32), name="shape")
            content = one_operator(operator, [x, target], [y], {"new_shape": wanted})
        else:
            axes = [axis for axis, extent in enumerate(shape) if extent == 1]
            content = one_operator(operator, [x], [y], {"squeeze_dims": axes})
        yield Draft(
            "codes" if number == 0 else "shapes", content, {"input0": codes}, f"{list(shape)} to {list(wanted)}"
        )

"""LOGISTIC and TANH: all codes, under scales at which tables of other roundings have other entries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, generator
from ..tflite import Operand, one_operator

OPERATORS = {name: ("s8", "u8", "s16") for name in ("LOGISTIC", "TANH")}

_OUTPUT = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Every code of 8 bits."""
    for number, (scale, point) in enumerate(((0.05, 0), (0.1, -128))):
        kind = data_type(types)
        codes = np.arange(kind.minimum, kind.maximum + 1).astype(kind.numpy)[None]
        out, zero = _OUTPUT[operator]
        content = one_operator(
            operator, [Operand(types, codes.shape, scale, point)], [Operand(types, codes.shape, out, zero)]
        )
        yield Draft("codes", content, {"input0": codes})

"""MAXIMUM and MINIMUM: quantized values of one scale, compared and kept as they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from ....graph import data_type
from ..choosing import edge_values
from ..draft import Draft, generator
from ..tflite import Operand, one_operator

OPERATORS = dict.fromkeys(("MAXIMUM", "MINIMUM"), ("s8", "u8", "s16"))

_PARAMETERS = ((0.05, 0), (0.3, -128), (0.0071, 127), (1.0, 5))
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1,), (1, 3, 7, 5)),
    ((2, 3, 4, 9), ()),
    ((1, 5, 6, 17), (17,)),
    ((1, 4, 1, 19), (1, 4, 5, 1)),
    ((3, 1, 2, 8), (1, 4, 1, 8)),
    ((2, 1, 3, 1, 7), (1, 4, 1, 2, 7)),
    # Every axis has the size of the smaller operand: only one of them is meant.
    ((3, 3, 3, 3), (3,)),
    ((3, 1, 1, 1), (3, 3, 3, 3)),
    ((3, 3, 3, 3), (1, 3, 1, 1)),
    ((1, 1, 3, 1), (3, 3, 3, 3)),
    ((3,), (3, 3, 3, 3)),
    ((3, 3, 3, 3), (3, 1, 1, 1)),
    ((7, 5), (7, 5)),
    ((1, 31), (1, 31)),
    ((33,), (2, 1, 1, 33)),
    ((1, 1, 1, 1), (1, 1, 1, 1)),
)
_RANDOM = (((1, 16, 16, 8), (1, 16, 16, 8)), ((4, 128), (4, 128)), ((1, 8, 8, 24), (1, 1, 1, 24)))


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Neighbours and ends of the type in both orders, every quantized value against its neighbours, shapes, random
    ones.
    """
    kind = data_type(types)
    quantized = np.arange(kind.minimum, kind.maximum + 1, 1 if kind.bits == 8 else 509, dtype=np.int64)
    for number, (scale, point) in enumerate(_PARAMETERS):
        edges = np.array(list(product(edge_values(kind, -65, 64), repeat=2))).T
        beside = np.clip(quantized + np.where(quantized % 2, 1, -1), kind.minimum, kind.maximum)
        negated = np.clip(-quantized, kind.minimum, kind.maximum)
        first = np.concatenate([edges[0], quantized, quantized])
        second = np.concatenate([edges[1], beside, negated])
        order = generator(operator, types, number).permutation(first.size)
        pair = [values[order][None].astype(kind.numpy) for values in (first, second)]
        aim = "zero points" if point in (-128, 127) else "codes"
        yield _draft(operator, types, aim, scale, point, pair, "neighbours, ends, and quantized values of other signs")
    for aim, shapes in (("shapes", _SHAPES), ("random", _RANDOM * 2)):
        for number, both in enumerate(shapes):
            drawn = generator(operator, types, aim, number)
            pair = [drawn.integers(kind.minimum, kind.maximum + 1, shape).astype(kind.numpy) for shape in both]
            yield _draft(operator, types, aim, 0.0391, -7, pair, f"{list(both[0])} and {list(both[1])}")


def _draft(operator: str, types: str, aim: str, scale: float, point: int, pair: list[np.ndarray], note: str) -> Draft:
    zero = {"s8": point, "u8": point + 128, "s16": 0}[types]
    shapes = (pair[0].shape, pair[1].shape, np.broadcast_shapes(pair[0].shape, pair[1].shape))
    x, y, z = (Operand(types, shape, scale, zero) for shape in shapes)
    content = one_operator(operator, [x, y], [z], {}, 3 if types == "s16" else 2)
    return Draft(aim, content, {"input0": pair[0], "input1": pair[1]}, note)

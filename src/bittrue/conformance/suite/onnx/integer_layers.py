"""ConvInteger and MatMulInteger: sums alone, whose every bit is the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....graph import data_type
from ..draft import Draft, generator
from ..onnx_layers import IMAGES, TYPES, output_shape
from ..onnx_model import declared, one_node

OPERATORS = dict.fromkeys(("ConvInteger", "MatMulInteger"), ("s8", "u8", "u8u8"))

_PRODUCTS: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("shapes", (1, 33), (33, 17)),
    ("shapes", (7, 5), (5, 3)),
    ("shapes", (5, 64), (64, 16)),
    ("shapes", (3, 2049), (2049, 3)),
    ("shapes", (2, 3, 7), (2, 7, 4)),
    ("random", (8, 48), (48, 16)),
    ("random", (4, 200), (200, 10)),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Geometry and dimensions, zero points at the ends, sums of two products that leave 16 bits, long sums."""
    yield from (_convolutions(types) if operator == "ConvInteger" else _products(types))


def _drawn(random: np.random.Generator, name: str, shape: tuple[int, ...], extreme: bool) -> np.ndarray:
    kind = data_type(name)
    if extreme:
        return random.choice([kind.minimum, kind.maximum, kind.maximum - 1], shape, p=[0.4, 0.4, 0.2]).astype(
            kind.numpy
        )
    return random.integers(kind.minimum, kind.maximum, shape, kind.numpy, True)


def _points(types: str, number: int) -> tuple[int | None, int | None]:
    """Of activations and weights; absent ones are 0. Signed weights have 0."""
    x, w = (data_type(name) for name in TYPES[types])
    first = (None, x.minimum, x.maximum, (x.minimum + x.maximum + 1) // 2 + 3)[number % 4]
    return first, (None if first is None else 0) if w.minimum else (None, 128, 0, 255)[number % 4]


def _convolutions(types: str) -> Iterator[Draft]:
    x_type, w_type = TYPES[types]
    for number, geometry in enumerate(IMAGES):
        random = generator("ConvInteger", types, number)
        x = _drawn(random, x_type, geometry.x, False)
        w = _drawn(random, w_type, (geometry.channels, geometry.x[1] // geometry.group, *geometry.kernel), False)
        attributes = {"kernel_shape": list(geometry.kernel), **geometry.attributes}
        if geometry.group > 1:
            attributes["group"] = geometry.group
        aim = "random" if number in (9, 12) else geometry.aim
        points = _points(types, number)
        yield _draft("ConvInteger", aim, types, x, w, points, geometry.note, attributes)
    for number in range(3):
        random = generator("ConvInteger", types, "pairs", number)
        x = _drawn(random, x_type, (1, 9, 4, 3), True)
        w = _drawn(random, w_type, (5, 9, 2, 2), True)
        note = "quantized values at both ends: sums of two products leave 16 bits"
        yield _draft("ConvInteger", "saturation", types, x, w, _points(types, number), note, {"kernel_shape": [2, 2]})
    x, w = _drawn(random, x_type, (1, 4, 3, 3), False), _drawn(random, w_type, (2, 3, 1, 1), False)
    why = "filters of 3 channels for images of 4"
    yield _draft("ConvInteger", "rejects", types, x, w, (0, 0), why, {"kernel_shape": [1, 1]}, why)
    w = _drawn(random, w_type, (2, 4, 1, 1), False)
    good = _draft("ConvInteger", "shapes", types, x, w, (0, 0), why, {"kernel_shape": [1, 1]})
    why = "the result is declared as s8"
    yield Draft("rejects", declared(good.content, "s8"), good.inputs, why, why)


def _products(types: str) -> Iterator[Draft]:
    x_type, w_type = TYPES[types]
    for number, (aim, left, right) in enumerate(_PRODUCTS):
        random = generator("MatMulInteger", types, number)
        x, w = _drawn(random, x_type, left, False), _drawn(random, w_type, right, False)
        yield _draft("MatMulInteger", aim, types, x, w, _points(types, number), f"{list(left)} by {list(right)}", {})
    for number in range(4):
        random = generator("MatMulInteger", types, "pairs", number)
        x, w = _drawn(random, x_type, (6, 50 + number), True), _drawn(random, w_type, (50 + number, 9), True)
        note = "quantized values at both ends: sums of two products leave 16 bits"
        yield _draft("MatMulInteger", "saturation", types, x, w, _points(types, number), note, {})
    for number in range(2):
        random = generator("MatMulInteger", types, "columns", number)
        x, w = _drawn(random, x_type, (4, 21), False), _drawn(random, w_type, (21, 7), False)
        kind = data_type(w_type)
        columns = np.zeros(7) if kind.minimum else random.integers(0, 255, 7)
        points = (_points(types, 3)[0], columns)
        yield _draft("MatMulInteger", "zero points", types, x, w, points, "a zero point per column", {})
    x, w = _drawn(random, x_type, (3, 8), False), _drawn(random, w_type, (7, 4), False)
    why = "8 terms of activations, 7 of weights"
    yield _draft("MatMulInteger", "rejects", types, x, w, (0, 0), why, {}, why)
    good = _draft("MatMulInteger", "shapes", types, x[:, :7], w, (0, 0), why, {})
    why = "the result is declared as s8"
    yield Draft("rejects", declared(good.content, "s8"), good.inputs, why, why)


def _draft(
    operator: str,
    aim: str,
    types: str,
    x: np.ndarray,
    w: np.ndarray,
    points: tuple[Any, Any],
    note: str,
    attributes: dict[str, Any],
    rejects: str = "",
) -> Draft:
    x_type, w_type = TYPES[types]
    operands: list[tuple[str, str, Any] | None] = [("x", x_type, x), ("w", w_type, w)]
    for name, dtype, value in (("x_zero_point", x_type, points[0]), ("w_zero_point", w_type, points[1])):
        operands.append(None if value is None else (name, dtype, np.asarray(value)))
    while operands[-1] is None:
        operands.pop()
    if operator == "ConvInteger":
        shape = output_shape(x.shape, w.shape, attributes)
    else:
        shape = (*np.broadcast_shapes(x.shape[:-2], w.shape[:-2]), x.shape[-2], w.shape[-1])
    content = one_node(operator, operands, [("y", "s32", shape)], attributes, fed=["x"])
    return Draft(aim, content, {"x": x}, note, rejects)

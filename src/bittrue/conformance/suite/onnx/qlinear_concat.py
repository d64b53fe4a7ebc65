"""QLinearConcat, and Concat between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....graph import data_type
from ..draft import Draft, between, generator
from ..onnx_model import declared
from ..onnx_pairs import Codes, quantized

OPERATORS = dict.fromkeys(("QLinearConcat", "QDQ Concat"), ("s8", "u8"))

# Scales of the parts and the result: ties, then near ties.
_SCALES = (
    ("ties", (1.0, 0.5, 0.25), 2.0),
    ("ties", (0.125, 0.125, 0.0625), 0.25),
    # Binary32 numbers whose quotients are half integers but for their last bits.
    ("near ties", (0.15, 0.05, 0.25), 0.1),
    ("near ties", (0.3, 0.7, 0.9), 0.6),
    ("near ties", (0.0078431377, 0.0039215689, 0.011764706), 0.0123),
    ("saturation", (0.5, 2.0, 0.1), 0.05),
)


def cases(operator: str, types: str) -> Iterator[Draft]:
    """All quantized values of three parts, each with parameters of its own; then shapes and axes."""
    kind = data_type(types)
    middle = (kind.minimum + kind.maximum + 1) // 2
    every = np.arange(kind.minimum, kind.maximum + 1).astype(kind.numpy)
    points = ((middle, kind.minimum, kind.maximum, middle - 3), (kind.minimum, middle + 7, middle - 2, kind.minimum))
    for number, (aim, scales, y_scale) in enumerate(_SCALES):
        random = generator(operator, types, number)
        chosen = points[number % 2]
        parts = [Codes(random.permutation(every), s, z) for s, z in zip(scales, chosen, strict=False)]
        note = f"every quantized value thrice, scales {scales} to {y_scale}, zero points {list(chosen)}"
        yield _draft(aim, operator, types, parts, 0, y_scale, chosen[3], note)
    parts = [Codes(random.permutation(every).reshape(16, 16), 0.5, middle + 1) for _ in range(3)]
    note = "every quantized value thrice, parameters as those of the result"
    yield _draft("codes", operator, types, parts, 1, 0.5, middle + 1, note)
    shapes: tuple[tuple[str, tuple[tuple[int, ...], ...], int], ...] = (
        ("shapes", ((2, 3, 5), (2, 1, 5), (2, 4, 5)), 1),
        ("shapes", ((3, 17), (3, 1)), -1),
        ("shapes", ((1, 2, 3, 4), (5, 2, 3, 4)), 0),
        ("shapes", ((4, 9),), 1),
        ("shapes", tuple((2, 1 + part % 3) for part in range(8)), 1),
        ("random", ((1, 8, 5, 5), (1, 4, 5, 5)), 1),
        ("random", ((3, 67), (3, 33), (3, 5)), 1),
    )
    for number, (aim, sizes, axis) in enumerate(shapes):
        random = generator(operator, types, "shapes", number)
        parts = [
            Codes(
                random.integers(kind.minimum, kind.maximum, shape, kind.numpy, True),
                # Every part as the result, or none.
                0.05 if number == 2 else float(np.float32(between(random, 0.02, 0.08))),
                middle if number == 2 else middle + int(random.integers(-30, 30)),
                constant=aim == "shapes" and index == 1 and len(sizes) == 3,
            )
            for index, shape in enumerate(sizes)
        ]
        note = f"{' and '.join(str(list(shape)) for shape in sizes)} along axis {axis}"
        yield _draft(aim, operator, types, parts, axis, 0.05, middle, note)
    parts = [Codes(np.zeros((2, 3), kind.numpy), 1.0, 0), Codes(np.zeros((3, 3), kind.numpy), 1.0, 0)]
    why = "[2, 3] and [3, 3] along axis 1"
    content, inputs = quantized(operator, types, parts, ((2, 6), 1.0, 0), {"axis": 1}, result_first=True)
    yield Draft("rejects", content, inputs, why, why)
    parts = [parts[0], parts[0]]
    content, inputs = quantized(operator, types, parts, ((2, 6), 1.0, 0), {"axis": 1}, result_first=True)
    why = "the result is declared as s32"
    yield Draft("rejects", declared(content, "s32"), inputs, why, why)


def _draft(
    aim: str, operator: str, types: str, parts: list[Codes], axis: int, scale: float, zero_point: int, note: str
) -> Draft:
    shape = list(parts[0].values.shape)
    shape[axis] = sum(part.values.shape[axis] for part in parts)
    content, inputs = quantized(
        operator, types, parts, (tuple(shape), scale, zero_point), {"axis": axis}, result_first=True
    )
    return Draft(aim, content, inputs, note)

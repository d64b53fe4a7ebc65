"""Functions of one quantized tensor: QLinearLeakyRelu, QLinearSigmoid, QLinearSoftmax, and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....graph import data_type
from ..draft import Draft, between, generator
from ..onnx_model import declared
from ..onnx_pairs import GROUP, Codes, quantized

_TABLES = ("QLinearLeakyRelu", "QLinearSigmoid", "QDQ LeakyRelu", "QDQ Sigmoid", "QDQ Tanh", "QDQ Relu")
_SOFTMAX = ("QLinearSoftmax", "QDQ Softmax")
OPERATORS = dict.fromkeys((*_TABLES, *_SOFTMAX), ("s8", "u8"))

# Scales of operand and result, slopes of LeakyRelu. The first ones make ties where the function is a straight line.
_LINES = (
    ("ties", 1.0, 2.0, 0.5),
    ("ties", 0.25, 0.5, 0.25),
    ("ties", 0.5, 0.25, 0.125),
    ("near ties", 0.15, 0.1, 0.1),
    ("near ties", 0.3, 0.2, 0.7),
    ("near ties", 0.023622047, 0.0078431377, 0.2),
    ("near ties", 3.1415927, 1.1, 0.3),
    ("saturation", 0.5, 0.01, 0.1),
)
_CURVES = (
    ("codes", 0.1, 0.00390625),
    ("codes", 0.03, 0.00390625),
    ("near ties", 0.0625, 0.0078125),
    ("near ties", 0.007, 0.0023),
    # Found by search: binary32 rounds one of the 256 values to another code of a result that starts at 0.
    ("near ties", 0.055, 0.00369),
    ("near ties", 0.1581, 0.00126),
    ("saturation", 0.5, 0.001),
    ("saturation", 3.0, 0.02),
)

_FOUND = ((0.055, 0.00369), (0.1581, 0.00126))


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Every quantized value where the function is of one quantized value; rows of chosen spread for softmax."""
    yield from (_softmax(operator, types) if operator in _SOFTMAX else _table(operator, types))


def _table(operator: str, types: str) -> Iterator[Draft]:
    kind = data_type(types)
    every = np.arange(kind.minimum, kind.maximum + 1).astype(kind.numpy)
    middle = (kind.minimum + kind.maximum + 1) // 2
    points = ((middle, middle + 3), (kind.minimum, kind.minimum), (middle - 5, middle), (kind.maximum, middle + 1))
    line = operator.endswith("Relu")
    rows = _LINES if line else [(*row, 0.0) for row in _CURVES]
    for number, (aim, x_scale, y_scale, alpha) in enumerate(rows):
        random = generator(operator, types, number)
        zx, zy = points[number % 4]
        if not line:
            # A result from 0 to 1, or from -1 to 1.
            zx, zy = points[number % 3][0], middle if operator.endswith("Tanh") else (kind.minimum, middle)[number % 2]
            if (x_scale, y_scale) in _FOUND:
                zx, zy = middle, kind.minimum
        elements = random.permutation(every)
        note = f"every quantized value, scales {x_scale} to {y_scale}, zero points {zx}, {zy}"
        attributes = {"alpha": float(np.float32(alpha))} if operator.endswith("LeakyRelu") else {}
        content, inputs = quantized(
            operator, types, [Codes(elements, x_scale, zx)], (elements.shape, y_scale, zy), attributes
        )
        yield Draft(aim, content, inputs, note)
    for number, shape in enumerate(((3, 67), (2, 3, 5, 7))):
        random = generator(operator, types, "random", number)
        elements = random.integers(kind.minimum, kind.maximum, shape, kind.numpy, True)
        x_scale, y_scale = (
            float(np.float32(between(random, low, 2 * low))) for low in (0.02, 0.004 if not line else 0.02)
        )
        attributes = {"alpha": float(np.float32(0.1))} if operator.endswith("LeakyRelu") else {}
        operand = Codes(elements, x_scale, middle + int(random.integers(-20, 20)))
        zy = middle if line or operator.endswith("Tanh") else kind.minimum
        content, inputs = quantized(operator, types, [operand], (shape, y_scale, zy), attributes)
        yield Draft("random", content, inputs, "uniform quantized values")
    elements = every[:8]
    content, inputs = quantized(operator, types, [Codes(elements, 1.0, 0)], (elements.shape, 1.0, 0))
    why = "the result is declared as s32"
    yield Draft("rejects", declared(content, "s32"), inputs, why, why)


def _softmax(operator: str, types: str) -> Iterator[Draft]:
    kind = data_type(types)
    group = operator.startswith(GROUP)
    # Rows: shape, axis, scale of the operand, result, spread of quantized values.
    rows: tuple[tuple[str, tuple[int, ...], int, float, float, int], ...] = (
        ("codes", (16, 10), -1, 0.1, 1 / 256, 255),
        ("codes", (8, 33), -1, 0.02, 1 / 256, 120),
        ("near ties", (32, 2), -1, 0.05, 1 / 256, 90),
        ("near ties", (16, 5), -1, 0.0078431377, 0.0039215689, 255),
        ("ties", (40, 4), -1, 0.6931472, 1 / 256, 4),
        ("saturation", (8, 7), -1, 4.0, 1 / 512, 255),
        ("shapes", (2, 3, 5), 1, 0.1, 1 / 256, 60),
        ("shapes", (3, 4, 2, 2), 1, 0.1, 1 / 256, 60),
        ("shapes", (4, 1), -1, 0.1, 1 / 256, 60),
        ("shapes", (1, 1001), -1, 0.05, 1 / 1024, 200),
        ("random", (8, 10), -1, 0.07, 1 / 256, 255),
        ("random", (3, 67), -1, 0.021, 1 / 256, 255),
        ("random", (2, 3, 4, 9), -1, 0.11, 1 / 256, 255),
    )
    for number, (aim, shape, axis, x_scale, y_scale, spread) in enumerate(rows):
        random = generator(operator, types, number)
        elements = (kind.maximum - random.integers(0, spread + 1, shape)).astype(kind.numpy)
        if aim != "random" and number % 2:
            # One equal share each: the same quantized value everywhere in some rows.
            elements[0] = elements[0].reshape(-1)[0]
        more: dict[str, Any] = {} if group else {"opset": 13}
        content, inputs = quantized(
            operator,
            types,
            [Codes(elements, x_scale, (kind.minimum, kind.maximum, 3)[number % 3])],
            (shape, y_scale, kind.minimum if number % 4 != 2 else kind.minimum + 3),
            {"axis": axis},
            more=more,
        )
        yield Draft(aim, content, inputs, f"{list(shape)} along axis {axis}, scale {x_scale:.8g}")
    elements = np.zeros((2, 3), kind.numpy)
    content, inputs = quantized(
        operator,
        types,
        [Codes(elements, 1.0, 0)],
        ((2, 3), 1 / 256, kind.minimum),
        {"axis": 2},
        more={} if group else {"opset": 13},
    )
    why = "axis 2 of a tensor of 2 axes"
    yield Draft("rejects", content, inputs, why, why)

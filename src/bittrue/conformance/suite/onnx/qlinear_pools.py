"""Averages and maxima of quantized images: QLinearAveragePool, QLinearGlobalAveragePool, and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....graph import data_type
from ..draft import Draft, generator
from ..onnx_layers import window_counts
from ..onnx_model import declared
from ..onnx_pairs import Codes, quantized

_POOLS = ("QLinearAveragePool", "QDQ AveragePool", "QDQ MaxPool")
_GLOBAL = ("QLinearGlobalAveragePool", "QDQ GlobalAveragePool")
OPERATORS = dict.fromkeys((*_POOLS, *_GLOBAL), ("s8", "u8"))

# Shape, attributes.
_WINDOWS: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("ties", (1, 8, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("ties", (1, 4, 6, 9), {"kernel_shape": [1, 2]}),
    ("ties", (1, 5, 9, 6), {"kernel_shape": [4, 2], "strides": [1, 2]}),
    ("near ties", (1, 6, 8, 7), {"kernel_shape": [3, 3]}),
    ("near ties", (1, 4, 9, 9), {"kernel_shape": [5, 3], "strides": [2, 1]}),
    ("near ties", (1, 3, 7, 9), {"kernel_shape": [1, 7]}),
    ("padding", (1, 3, 5, 6), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("padding", (1, 3, 5, 6), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("padding", (1, 2, 6, 7), {"kernel_shape": [3, 2], "pads": [2, 0, 1, 1], "strides": [2, 2]}),
    ("padding", (1, 3, 7, 8), {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("padding", (1, 3, 7, 8), {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ("padding", (1, 2, 8, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("padding", (1, 2, 8, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]}),
    ("near ties", (1, 33, 3, 3), {"kernel_shape": [3, 3]}),
    ("saturation", (1, 8, 6, 6), {"kernel_shape": [2, 2]}),
    ("shapes", (2, 17, 4, 4), {"kernel_shape": [3, 3]}),
    ("shapes", (1, 5, 23), {"kernel_shape": [4], "strides": [3]}),
    ("shapes", (1, 1, 1, 1), {"kernel_shape": [1, 1]}),
    ("random", (1, 8, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("random", (2, 3, 9, 9), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("random", (1, 16, 7, 7), {"kernel_shape": [5, 5]}),
)
_IMAGES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("ties", (1, 64, 2, 2)),
    ("ties", (2, 33, 4, 4)),
    ("ties", (1, 65, 1, 8)),
    ("near ties", (1, 64, 3, 3)),
    ("near ties", (1, 64, 7, 7)),
    ("near ties", (1, 64, 5, 3)),
    ("zero points", (1, 32, 3, 5)),
    ("zero points", (1, 32, 3, 5)),
    ("shapes", (3, 17, 1, 1)),
    ("shapes", (1, 5, 31, 29)),
    ("random", (1, 64, 7, 7)),
    ("random", (4, 16, 8, 8)),
)
# Scales of operand and result that no power of two relates.
_SCALES = ((0.1, 0.07), (0.023622047, 0.0235), (0.0078431377, 0.0039215689), (0.7, 0.5))
# For windows of so many elements: a sum is nearly a number of quarters, or of twentieths, of the result's scale.
_NEAR = {9: (0.09, 0.04), 15: (0.3, 0.2), 7: (0.07, 0.04), 49: (0.49, 0.2)}


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Windows whose averages are ties, or near them; borders; then usual images."""
    rows = [(*row, {}) for row in _IMAGES] if operator in _GLOBAL else _WINDOWS
    kind = data_type(types)
    middle = (kind.minimum + kind.maximum + 1) // 2
    for number, (aim, shape, attributes) in enumerate(rows):
        if operator == "QDQ MaxPool" and "count_include_pad" in attributes:
            continue
        random = generator(operator, types, number)
        elements = random.integers(kind.minimum, kind.maximum, shape, kind.numpy, True)
        x_scale, y_scale = (0.5, 0.5) if aim in ("ties", "padding", "shapes") else _SCALES[number % len(_SCALES)]
        if aim == "near ties":
            x_scale, y_scale = _NEAR[int(np.prod(attributes.get("kernel_shape", shape[2:])))]
        if (aim == "ties" and number % 2 == 0) or aim == "near ties":
            y_scale = 0.25 if aim == "ties" else y_scale
            # A finer result: the middle half of the quantized values stays inside.
            elements = (middle + (elements.astype(np.int64) - middle) // 2).astype(kind.numpy)
        if aim == "saturation":
            # Whole windows of the first and of the last quantized value.
            elements = np.where(random.random((*shape[:2], 1, shape[3])) < 0.5, kind.minimum, kind.maximum)
            elements = np.broadcast_to(elements, shape).astype(kind.numpy)
        points = (middle - 3, middle + (0 if number % 2 else 5))
        if aim == "zero points":
            points = (kind.minimum, kind.minimum) if number % 2 else (kind.maximum, kind.maximum)
        if aim == "padding":
            points = (kind.minimum if number % 2 else kind.maximum, kind.minimum if number % 2 else kind.maximum)
        if operator == "QDQ MaxPool" and number % 3:
            # What runtimes do without arithmetic, where both sides have the same parameters.
            y_scale, points = x_scale, (points[0], points[0])
        result = _result_shape(shape, attributes)
        note = f"{list(shape)}, {attributes or 'the whole image'}, zero points {points}"
        content, inputs = quantized(
            operator, types, [Codes(elements, x_scale, points[0])], (result, y_scale, points[1]), attributes
        )
        yield Draft(aim, content, inputs, note)
    elements = np.zeros((1, 2, 3, 3), kind.numpy)
    attributes = {} if operator in _GLOBAL else {"kernel_shape": [2, 2]}
    content, inputs = quantized(operator, types, [Codes(elements, 1.0, 0)], ((1, 2, 1, 1), 1.0, 0), attributes)
    why = "the result is declared as s32"
    yield Draft("rejects", declared(content, "s32"), inputs, why, why)
    if operator in _POOLS:
        content, inputs = quantized(
            operator, types, [Codes(elements, 1.0, 0)], ((1, 2, 3, 3), 1.0, 0), {"kernel_shape": [2, 2, 2]}
        )
        why = "a window of three axes for an image of two"
        yield Draft("rejects", content, inputs, why, why)


def _result_shape(shape: tuple[int, ...], attributes: dict[str, Any]) -> tuple[int, ...]:
    if "kernel_shape" not in attributes:
        return (*shape[:2], *(1 for _ in shape[2:]))
    return (*shape[:2], *window_counts(shape[2:], attributes))

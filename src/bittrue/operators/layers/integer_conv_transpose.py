"""Transposed convolutions of integers that give their sums; both differences are taken modulo 2^16.

Zero points, which runs may compute: one of x; one of w, or one per output channel of a group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic import fixed_point
from ...arithmetic.matmul import exact_matmul, product_type
from ...graph import DATA_TYPES
from ...rules import accumulate
from ..core.accumulator import finish_accumulator
from ..core.base import Bound, Call, Lowered, Step
from .conv_geometry import spread, transposed_parameters
from .integer_layers import check_single

_POINTS = (4, 6)
# Of differences that are taken modulo 2^16.
_WIDEST = 1 << 15


def lower(call: Call) -> Lowered:
    """Geometry and the bound of the sums."""
    source, weights = call.input(0), call.input(1)
    if not weights.size or not source.size:
        shapes = f"{list(source.shape)} and {list(weights.shape)}"
        raise call.invalid("BT-CONV-CHANNELS", f"image and weights of shapes {shapes}: one has no elements")
    check_single(call, _POINTS[0], "input zero point")
    if call.input(_POINTS[1]).rank > 1 or call.input(_POINTS[1]).size not in (1, weights.shape[1]):
        raise call.invalid("BT-QUANT-AXIS", f"weight zero point has shape {list(call.input(_POINTS[1]).shape)}")
    spans = []
    for operand, position in zip((source, weights), _POINTS, strict=True):
        point, span = call.input(position).value, _WIDEST
        if point is not None:
            ends = np.array([operand.type.minimum, operand.type.maximum], np.int64)[:, None] - point.reshape(-1)
            span = min(span, int(np.abs(ends).max()))
        spans.append(span)
    parameters, taps = transposed_parameters(call), math.prod(weights.shape[2:])
    magnitude = spans[0] * spans[1] * (weights.shape[0] // int(call.attribute("groups"))) * taps
    limit = accumulate.RULES[call.rules["accumulate"]].limit
    return Lowered(
        {**parameters, "dtype": call.output.dtype},
        accumulator=Bound(magnitude, magnitude > limit),
        work=call.output.size * weights.shape[0] * taps,
        scratch=24 * (call.output.size + source.size * math.prod(weights.shape[1:])),
    )


def _centered(array: np.ndarray, point: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return fixed_point.wrap_s16(array.astype(np.int64) - point.astype(np.int64)).astype(dtype)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Exact matrix products, tap by tap."""
    x, w = inputs[:2]
    limit = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(limit)
    points = (inputs[position].reshape(-1, *(1,) * (w.ndim - 2)) for position in _POINTS)
    images, weights = (_centered(array, point, work_type) for array, point in zip((x, w), points, strict=True))
    total = spread(step, images, weights, np.int64, lambda a, b: exact_matmul(a, b, limit).astype(np.int64))
    found = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
    return [found.astype(DATA_TYPES[step["dtype"]].numpy)]

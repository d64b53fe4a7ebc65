"""eye and triangle: numbers by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import DATA_TYPES
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer_eye(call: Call) -> list[Shape]:
    """The shape of the input, a matrix whose values do not matter."""
    call.expect(1)
    call.rank(call.input(0), 2)
    return [call.input(0).shape]


def lower_eye(call: Call) -> Lowered:
    """Which diagonal."""
    return Lowered({"diagonal": int(call.attribute("diagonal")), "shape": call.output.shape, "type": call.output.dtype})


def _limited(diagonal: int, shape: Sequence[int]) -> int:
    """The same diagonal, or one that is outside as well."""
    return min(max(diagonal, -shape[-2] - 1), shape[-1] + 1)


def reference_eye(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """1 on the diagonal, 0 elsewhere; the input is not read."""
    rows, columns = step["shape"]
    return [np.eye(rows, columns, _limited(step["diagonal"], (rows, columns)), DATA_TYPES[step["type"]].numpy)]


def infer_triangle(call: Call) -> list[Shape]:
    """The input's shape: matrices."""
    call.expect((1, 2))
    source = call.input(0)
    call.rank(source, 2, max(2, source.rank))
    if call.has(1) and len(call.integers(1, "diagonal")) != 1:
        raise call.invalid("BT-TRIANGLE", "the diagonal must be one number")
    return [source.shape]


def lower_triangle(call: Call) -> Lowered:
    """The diagonal, and which side of it stays."""
    diagonal = call.integers(1, "diagonal")[0] if call.has(1) else 0
    return Lowered({"diagonal": diagonal, "upper": bool(call.attribute("upper"))}, inputs=(0,))


def reference_triangle(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Zeros beyond the diagonal."""
    x = inputs[0]
    diagonal = _limited(step["diagonal"], x.shape)
    if step["upper"]:
        stays = ~np.tri(x.shape[-2], x.shape[-1], diagonal - 1, np.bool_)
    else:
        stays = np.tri(x.shape[-2], x.shape[-1], diagonal, np.bool_)
    return [np.where(stays, x, x.dtype.type(0))]


OPERATORS = (
    Operator("eye", (), infer_eye, lower_eye, reference_eye, "ones on a diagonal", needs_only_shapes=True),
    Operator("triangle", (), infer_triangle, lower_triangle, reference_triangle, "one side of a diagonal", moves=True),
)

"""maximum_or_nan and minimum_or_nan: the larger or smaller of two real numbers, or the first NaN among them.

Where both are equal (zeros of either sign) it is the second one. When the first operand is repeated along the last axis
that is not 1, both change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Call, Lowered, Operator, Step, broadcast_shape
from .elementwise import blockwise


def lower(call: Call) -> Lowered:
    """Whether the operands change places."""
    shape = call.output.shape
    axis = next((axis for axis in reversed(range(len(shape))) if shape[axis] != 1), None)
    extents = (1,) * (len(shape) - call.input(0).rank) + call.input(0).shape
    return Lowered({"exchanged": axis is not None and extents[axis] == 1})


def _choose(beyond: Any) -> Any:
    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        first, second = inputs[::-1] if step["exchanged"] else inputs

        def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            with np.errstate(invalid="ignore"):
                return np.where(np.isnan(a) | beyond(a, b) & ~np.isnan(b), a, b)

        return [blockwise(block, [first, second], first.dtype, first.dtype)]

    return reference


OPERATORS = (
    Operator(
        "maximum_or_nan",
        (),
        broadcast_shape,
        lower,
        _choose(np.greater),
        "the larger of two numbers, or NaN",
        elementwise=2,
    ),
    Operator(
        "minimum_or_nan",
        (),
        broadcast_shape,
        lower,
        _choose(np.less),
        "the smaller of two numbers, or NaN",
        elementwise=2,
    ),
)

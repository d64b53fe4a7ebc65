"""remainder: what truncated division leaves, with the dividend's sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import remainder as rules
from ..core.base import Operator, Step, broadcast_shape, nothing_to_prepare
from ..core.elementwise import blockwise
from .div import refuse_divisor


def _block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.fmod(a, b)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A float divisor of 0 gives NaN, an integer one is an error."""
    first, second = inputs
    if first.dtype.kind == "f":
        return [blockwise(_block, [first, second], first.dtype, first.dtype)]
    refuse_divisor(step, second, 0, "0")
    return [blockwise(rules.RULES[step.rules["remainder"]], [first, second], first.dtype, first.dtype)]


OPERATOR = Operator(
    "remainder",
    ("remainder",),
    broadcast_shape,
    nothing_to_prepare,
    reference,
    "what truncated division leaves, dividend's sign",
    elementwise=2,
)

"""remainder: what truncated division leaves, with the dividend's sign; modulo: reals, with the divisor's sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import remainder as rules
from .base import Operator, Step, broadcast_shape, nothing_to_prepare
from .div import refuse_divisor
from .elementwise import blockwise


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


def reference_modulo(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The exact remainder, plus the divisor (one rounding) where signs differ; zeros have the divisor's sign."""
    first, second = inputs

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        left = _block(a, b)
        with np.errstate(all="ignore"):
            moved = np.where((left < 0) != (b < 0), left + b, left)
        return np.where(left == 0, np.copysign(a.dtype.type(0), b), moved)

    return [blockwise(block, [first, second], first.dtype, first.dtype)]


OPERATORS = (
    Operator(
        "remainder",
        ("remainder",),
        broadcast_shape,
        nothing_to_prepare,
        reference,
        "what truncated division leaves, dividend's sign",
        elementwise=2,
    ),
    Operator(
        "modulo",
        (),
        broadcast_shape,
        nothing_to_prepare,
        reference_modulo,
        "what division leaves, divisor's sign",
        elementwise=2,
    ),
)

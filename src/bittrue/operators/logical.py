"""logical_and, logical_or, logical_not: on truth values, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .base import Operator, Step, broadcast_shape, nothing_to_prepare, same_shape

_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "logical_and": np.bitwise_and,
    "logical_or": np.bitwise_or,
    "logical_not": lambda x: np.bitwise_xor(x, np.uint8(1)),
}


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Bit by bit, which shows where a byte is neither 0 nor 1, as in the kernels."""
    return [np.asarray(_FUNCTIONS[step.operator](*(x.view(np.uint8) for x in inputs))).view(np.bool_)]


OPERATORS = (
    Operator("logical_and", (), broadcast_shape, nothing_to_prepare, reference, "both", elementwise=2),
    Operator("logical_or", (), broadcast_shape, nothing_to_prepare, reference, "at least one", elementwise=2),
    Operator("logical_not", (), same_shape, nothing_to_prepare, reference, "the other truth value", elementwise=1),
)

"""logical_and, logical_or, logical_not: on truth values, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Operator, Step, broadcast_shape, nothing_to_prepare, same_shape

_FUNCTIONS = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_not": np.logical_not}


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One ufunc."""
    return [np.asarray(_FUNCTIONS[step.operator](*inputs))]


OPERATORS = (
    Operator("logical_and", (), broadcast_shape, nothing_to_prepare, reference, "both"),
    Operator("logical_or", (), broadcast_shape, nothing_to_prepare, reference, "at least one"),
    Operator("logical_not", (), same_shape, nothing_to_prepare, reference, "the other truth value"),
)

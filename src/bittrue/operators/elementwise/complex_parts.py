"""real and imag: the parts of complex numbers made of two binary32 ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..core.base import Operator, Step, nothing_to_prepare, same_shape


def reference(
    step: Step, inputs: Sequence[np.ndarray], function: Callable[[np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """One part."""
    return [np.ascontiguousarray(function(inputs[0])).reshape(inputs[0].shape)]


def _operator(stem: str, function: Callable[[np.ndarray], np.ndarray], summary: str) -> Operator:
    return Operator(
        stem, (), same_shape, nothing_to_prepare, partial(reference, function=function), summary, elementwise=1
    )


OPERATORS = (
    _operator("real", np.real, "real part"),
    _operator("imag", np.imag, "imaginary part"),
)

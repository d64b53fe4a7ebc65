"""real, imag and complex_abs: parts and magnitude of complex numbers made of two binary32 ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .base import Operator, Step, nothing_to_prepare, same_shape


def _magnitude(z: np.ndarray) -> np.ndarray:
    """sqrt(re^2 + im^2) in binary64, rounded once; infinite when a part is, even beside NaN."""
    re, im = z.real, z.imag
    with np.errstate(all="ignore"):
        wide = np.sqrt(re.astype(np.float64) ** 2 + im.astype(np.float64) ** 2).astype(np.float32)
        odd = np.where(np.isinf(re) | np.isinf(im), np.float32(np.inf), re + im)
        return np.where(np.isfinite(re) & np.isfinite(im), wide, odd)


def reference(
    step: Step, inputs: Sequence[np.ndarray], function: Callable[[np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """One part, or the magnitude."""
    return [np.ascontiguousarray(function(inputs[0])).reshape(inputs[0].shape)]


def _operator(stem: str, function: Callable[[np.ndarray], np.ndarray], summary: str) -> Operator:
    return Operator(
        stem, (), same_shape, nothing_to_prepare, partial(reference, function=function), summary, elementwise=1
    )


OPERATORS = (
    _operator("real", np.real, "real part"),
    _operator("imag", np.imag, "imaginary part"),
    _operator("complex_abs", _magnitude, "magnitude of a complex number"),
)

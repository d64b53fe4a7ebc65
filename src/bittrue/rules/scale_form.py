"""Slot `scale_form`: how the real multiplier is formed from the tensors' binary32 scales.

The form decides the last bit of the encoded multiplier. Every rule takes `(first, second, output)`: the scales of
the two factors and of the result; `second` is 1 where an operator has only one input scale. All return binary64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

ScaleForm = Callable[["npt.ArrayLike", "npt.ArrayLike", "npt.ArrayLike"], np.ndarray]


def _f32(values: npt.ArrayLike) -> np.ndarray:
    return np.asarray(values, np.float32)


def _f64(values: npt.ArrayLike) -> np.ndarray:
    return np.asarray(_f32(values), np.float64)


def binary64(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """(f64(first) * f64(second)) / f64(output): the product of two binary32 numbers is exact, one rounding follows."""
    return _f64(first) * _f64(second) / _f64(output)


def binary32_product(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """f64(f32(first * second)) / f64(output)."""
    return (_f32(first) * _f32(second)).astype(np.float64) / _f64(output)


def binary32(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """f64(f32(f32(first * second) / output))."""
    return (_f32(first) * _f32(second) / _f32(output)).astype(np.float64)


def binary32_quotient_first(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """f64(f32(f32(first / output) * second))."""
    return (_f32(first) / _f32(output) * _f32(second)).astype(np.float64)


def binary32_over_product(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """f64(f32(first / f32(output * second))): `second` is a divisor, like the count of an average.

    Source: docs/facts/onnxruntime.md 3.2, verified by running.
    """
    return (_f32(first) / (_f32(output) * _f32(second))).astype(np.float64)


def given_binary64(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """(first * second) / output of binary64 numbers, as they are given.

    Source: docs/facts/snps_caffe.md 1, verified by running.
    """
    return np.asarray(first, np.float64) * np.asarray(second, np.float64) / np.asarray(output, np.float64)


def binary32_step_by_step(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """f64(f32(f64(f32(f64(f32(first)) * second)) / output)): both steps in binary64, each stored as binary32.

    Source: docs/facts/snps_caffe.md 1, verified by running.
    """
    product = (_f64(first) * np.asarray(second, np.float64)).astype(np.float32)
    return (product.astype(np.float64) / np.asarray(output, np.float64)).astype(np.float32).astype(np.float64)


RULES: dict[str, ScaleForm] = {
    "binary64": binary64,
    "binary32_product": binary32_product,
    "binary32": binary32,
    "binary32_quotient_first": binary32_quotient_first,
    "binary32_over_product": binary32_over_product,
    "given_binary64": given_binary64,
    "binary32_step_by_step": binary32_step_by_step,
}


def form(rule: str, first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> np.ndarray:
    """The real multiplier under `rule`. Sources: docs/facts/litert.md 1.5, verified by running."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        return RULES[rule](first, second, output)

"""Slot `real_softmax`: softmax and log_softmax of rows of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arithmetic import elementary


@dataclass(frozen=True)
class RealSoftmaxRule:
    """`softmax(rows, beta)` and `log_softmax(rows)` for rows [rows, elements] of binary32 or binary16, one or more
    elements each; the result has the type of the rows.
    """

    softmax: Callable[[np.ndarray, float], np.ndarray]
    log_softmax: Callable[[np.ndarray], np.ndarray]
    formula: str
    source: str


def _largest(rows: np.ndarray) -> np.ndarray:
    """The largest number of each row, not below the smallest finite one; NaN is passed over."""
    lowest = np.finfo(rows.dtype).min
    return np.maximum(np.where(np.isnan(rows), lowest, rows).max(axis=1, keepdims=True), lowest).astype(np.float32)


def _sums(summands: np.ndarray) -> np.ndarray:
    """Sums of rows, one element after the other, each rounded to binary32."""
    return np.add.accumulate(summands, axis=1)[:, -1:]


def _softmax(rows: np.ndarray, beta: float) -> np.ndarray:
    """Numerators are rounded to the type of the rows before they are divided, sums are not.

    >>> RULES["binary32_in_order"].softmax(np.float32([[0, 0, 0, 0]]), 1.0).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    with np.errstate(all="ignore"):
        powers = elementary.exp((rows.astype(np.float32) - _largest(rows)) * np.float32(beta))
        quotients = powers.astype(rows.dtype).astype(np.float32) / _sums(powers)
        return quotients.astype(rows.dtype)


def _log_softmax(rows: np.ndarray) -> np.ndarray:
    """(x - max) - log(sum of exp(x - max)).

    >>> RULES["binary32_in_order"].log_softmax(np.float32([[0, 0]])).tolist()
    [[-0.6931471824645996, -0.6931471824645996]]
    """
    with np.errstate(all="ignore"):
        differences = rows - _largest(rows)
        return differences - elementary.log(_sums(elementary.exp(differences)))


RULES: dict[str, RealSoftmaxRule] = {
    "binary32_in_order": RealSoftmaxRule(
        _softmax,
        _log_softmax,
        "e = exp((x - max) * beta), sums of e from the first element to the last, e / sum; x - max - log(sum)",
        "facts/litert.md 2.5 (for integers); the reference kernels for real numbers, read and run",
    ),
}

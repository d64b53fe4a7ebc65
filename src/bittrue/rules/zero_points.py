"""Slot `zero_points`: what becomes of zero points that are operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ZeroPointsRule = Callable[[np.ndarray], np.ndarray]


def used(values: np.ndarray) -> np.ndarray:
    """They are added and subtracted as they are."""
    return values


def ignored(values: np.ndarray) -> np.ndarray:
    """They count as 0, whatever they are.

    Source: docs/facts/onnxruntime.md 1.3 (8-bit floats), verified by running.
    """
    return np.zeros_like(values)


def zero(values: np.ndarray) -> np.ndarray:
    """They must be 0 (not -0 either); anything else has no defined meaning.

    >>> zero(np.array([0, 3]))
    Traceback (most recent call last):
    ValueError: a zero point is 3, but it must be 0 for this type
    """
    wrong = (values != 0) | np.signbit(values)
    if wrong.any():
        raise ValueError(f"a zero point is {values[wrong].reshape(-1)[0]}, but it must be 0 for this type")
    return values


RULES: dict[str, ZeroPointsRule] = {"ignored": ignored, "used": used, "zero": zero}

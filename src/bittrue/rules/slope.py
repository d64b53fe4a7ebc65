"""Slot `slope`: where a real number is multiplied by the slope of a rectifier that leaks, which zeros show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def scaled_unless_above_zero(x: np.ndarray, slope: np.ndarray | np.float32) -> np.ndarray:
    """x where x > 0, else f32(x * slope): zeros take the slope's sign, NaN is multiplied, too.

    Source: docs/facts/litert.md 2.3 (LEAKY_RELU), verified by running.

    >>> scaled_unless_above_zero(np.float32([2, -2, 0]), np.float32(-0.5)).tolist()
    [2.0, 1.0, -0.0]
    """
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, x * slope)


def scaled_below_zero(x: np.ndarray, slope: np.ndarray | np.float32) -> np.ndarray:
    """f32(x * slope) where x < 0, else x: zeros and NaN stay what they are.

    Source: docs/facts/xnnpack.md 3.2, verified by running.

    >>> scaled_below_zero(np.float32([2, -2, 0]), np.float32(-0.5)).tolist()
    [2.0, 1.0, 0.0]
    """
    with np.errstate(all="ignore"):
        return np.where(x < 0, x * slope, x)


def scaled_by_sign_bit(x: np.ndarray, slope: np.ndarray | np.float32) -> np.ndarray:
    """f32(x * slope) where the sign bit of x is set, as it is of -0 and of some NaNs, else x.

    Source: docs/facts/xnnpack.md 3.18, verified by running.

    >>> scaled_by_sign_bit(np.float32([2, -2, 0, -0.0]), np.float32(-0.5)).tolist()
    [2.0, 1.0, 0.0, 0.0]
    """
    with np.errstate(all="ignore"):
        return np.where(np.signbit(x), x * slope, x)


RULES: dict[str, Callable[[np.ndarray, np.ndarray | np.float32], np.ndarray]] = {
    "scaled_unless_above_zero": scaled_unless_above_zero,
    "scaled_below_zero": scaled_below_zero,
    "scaled_by_sign_bit": scaled_by_sign_bit,
}

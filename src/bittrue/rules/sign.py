"""Slot `sign`: where the sign of a negative factor enters, when its multiplier is that of the magnitude."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rescaled = Callable[[np.ndarray], np.ndarray]


def after_rounding(rescaled: Rescaled, x: np.ndarray) -> np.ndarray:
    """-rescaled(x): the product with the magnitude is rounded, then negated, so its ties go the other way.

    Source: docs/facts/litert.md 2.3 (LEAKY_RELU), verified by running.

    >>> after_rounding(lambda x: np.floor(x / 2 + 0.5).astype(int), np.array([-3])).tolist()
    [1]
    """
    return -rescaled(x)


def before_rounding(rescaled: Rescaled, x: np.ndarray) -> np.ndarray:
    """rescaled(-x): the multiplier is negative, so the signed product is rounded.

    Source: docs/facts/litert.md 2.3 (LEAKY_RELU of 16 bits, optimised kernel), verified by running.

    >>> before_rounding(lambda x: np.floor(x / 2 + 0.5).astype(int), np.array([-3])).tolist()
    [2]
    """
    return rescaled(-x)


RULES: dict[str, Callable[[Rescaled, np.ndarray], np.ndarray]] = {
    "after_rounding": after_rounding,
    "before_rounding": before_rounding,
}

"""Levels of numbers that travel with a range: the real number of a stored integer q is q * range / levels.

The range of a tensor with the ends `minimum` and `maximum` is max(|minimum|, |maximum|).
"""

from __future__ import annotations

import numpy as np

from .range_quantize import HALF as _HALF
from .range_quantize import SUM_LEVEL

# Half a level more than the largest integer; 32 bits have no room for it.
HALF = {**{name: np.float32(level) for name, level in _HALF.items()}, "s32": SUM_LEVEL}


def narrowed(q: np.ndarray, factor: np.float32) -> np.ndarray:
    """clamp_s8(round_even(f32(q * factor))) as binary32.

    >>> narrowed(np.uint8([5, 7, 255]), np.float32(0.5)).tolist()  # 2.5, 3.5
    [2.0, 4.0, 127.0]
    """
    moved: np.ndarray = np.clip(np.rint(q.astype(np.float32) * factor), np.float32(-128), np.float32(127))
    return moved


def check_factors(*factors: float) -> None:
    """Factors with which every 8-bit integer stays finite."""
    for factor in factors:
        if not abs(factor) < 2.0**118:
            raise ValueError(f"the ranges give the factor {float(factor)!r}, which has no defined result")

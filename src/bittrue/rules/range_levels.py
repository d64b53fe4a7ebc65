"""Levels of numbers that travel with a range: the real number of a quantized value q is q * R / L.

R = max(|low|, |high|) of the range (low, high). Where levels are whole, L is the largest quantized value; where they
are half, R stands for half a step more.
"""

from __future__ import annotations

import numpy as np

from ..arithmetic import floats

# What R of sums of 32 bits stands for, by either convention: 2147483647 as binary32.
SUM_LEVEL = np.float32(2**31)
WHOLE = {"s8": np.float32(127), "u8": np.float32(255)}
HALF = {"s8": np.float32(127.5), "u8": np.float32(255.5), "s32": SUM_LEVEL}
# The largest binary32 number that s32 holds.
_HIGHEST = 2**31 - 128

Ends = tuple[np.float32, np.float32]


def reach(ends: Ends) -> np.float32:
    """R = max(|low|, |high|).

    >>> float(reach((np.float32(-2), np.float32(1.5))))
    2.0
    """
    return np.float32(max(np.abs(np.float32(ends[0])), np.abs(np.float32(ends[1]))))


def scale_of(ends: Ends, dtype: str) -> np.float32:
    """Quantized values per unit, with half levels: L / R.

    >>> float(scale_of((np.float32(0), np.float32(0.5)), "u8"))
    511.0
    """
    with np.errstate(all="ignore"):
        return HALF[dtype] / reach(ends)


def saturate_even(value: np.ndarray, dtype: str) -> np.ndarray:
    """Ties to even, limited to s8, u8 or s32, whose largest binary32 number is 2147483520; NaN becomes 127, 0 or 0.

    >>> saturate_even(np.float32([0.5, -1.5, 300, np.nan]), "s8").tolist()
    [0, -2, 127, 127]
    >>> saturate_even(np.float32([0.5, -1.5, 300, np.nan]), "u8").tolist()
    [0, 0, 255, 0]
    >>> saturate_even(np.float32([2.5, 3e9, -3e9, np.nan]), "s32").tolist()
    [2, 2147483520, -2147483648, 0]
    """
    if dtype == "s32":
        return np.minimum(floats.saturate_to_s32(np.rint(value)), _HIGHEST)
    low, high = (-128, 127) if dtype == "s8" else (0, 255)
    bounded = np.where(np.isnan(value), np.float32(high if low else low), np.clip(value, low, high))
    return np.rint(bounded).astype(np.int64)


def narrowed(q: np.ndarray, factor: np.float32) -> np.ndarray:
    """clamp_s8(round_even(f32(q * factor))) as binary32.

    >>> narrowed(np.uint8([5, 7, 255]), np.float32(0.5)).tolist()  # 2.5, 3.5
    [2.0, 4.0, 127.0]
    """
    return saturate_even(q.astype(np.float32) * factor, "s8").astype(np.float32)


def check_factors(*factors: float) -> None:
    """Factors with which every 8-bit integer stays finite."""
    for factor in factors:
        if not abs(factor) < 2.0**118:
            raise ValueError(f"the ranges give the factor {float(factor)!r}, which has no defined result")

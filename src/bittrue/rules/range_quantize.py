"""Slots `range_quantize`, `range_dequantize` and `range_requantize`: codes of tensors that have a range.

R = max(|low|, |high|) is what the largest code stands for, or half a step more: levels are 127 (s8) and 255 (u8) where
they are whole, 127.5 and 255.5 where they are half. Everything is binary32, in the order written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

WHOLE, HALF = {"s8": 127.0, "u8": 255.0}, {"s8": 127.5, "u8": 255.5}
# What the largest s32 stands for: 2147483647 as binary32.
SUM_LEVEL = np.float32(2**31)

Ends = tuple[np.float32, np.float32]
QuantizeRule = Callable[[np.ndarray, Ends, str], np.ndarray]
DequantizeRule = Callable[[np.ndarray, Ends, str], np.ndarray]
RequantizeRule = Callable[[np.ndarray, Ends, Ends, str], np.ndarray]


def reach(ends: Ends) -> np.float32:
    """R = max(|low|, |high|).

    >>> float(reach((np.float32(-2), np.float32(1.5))))
    2.0
    """
    return np.float32(max(np.abs(np.float32(ends[0])), np.abs(np.float32(ends[1]))))


def saturate_even(value: np.ndarray, dtype: str) -> np.ndarray:
    """Ties to even, limited to s8 or u8; what is no number becomes 127 or 0.

    >>> saturate_even(np.float32([0.5, -1.5, 300, np.nan]), "s8").tolist()
    [0, -2, 127, 127]
    >>> saturate_even(np.float32([0.5, -1.5, 300, np.nan]), "u8").tolist()
    [0, 0, 255, 0]
    """
    low, high = (-128, 127) if dtype == "s8" else (0, 255)
    bounded = np.where(np.isnan(value), np.float32(high if low else low), np.clip(value, low, high))
    return np.rint(bounded).astype(np.int64)


def _multiply_even(x: np.ndarray, ends: Ends, dtype: str, levels: dict[str, float]) -> np.ndarray:
    with np.errstate(all="ignore"):
        scale = np.float32(levels[dtype]) / reach(ends)
        return saturate_even(x.astype(np.float32) * scale, dtype)


def binary32_whole_levels_even(x: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """saturate(round_even(f32(x * f32(L / R)))), L = 127 (s8) or 255 (u8); NaN becomes 127 (s8) or 0 (u8).

    Source: facts/mxnet.md 1 (quantize), verified by running.

    >>> binary32_whole_levels_even(np.float32([0.5, -1, 2]), (np.float32(-1), np.float32(1)), "s8").tolist()
    [64, -127, 127]
    """
    return _multiply_even(x, ends, dtype, WHOLE)


def binary32_half_levels_even(x: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """saturate(round_even(f32(x * f32(L / R)))), L = 127.5 (s8) or 255.5 (u8); NaN becomes 127 (s8) or 0 (u8).

    Source: facts/mxnet.md 1 (quantize_v2), verified by running.

    >>> binary32_half_levels_even(np.float32([0.5, -1, 2]), (np.float32(-1), np.float32(1)), "s8").tolist()
    [64, -128, 127]
    """
    return _multiply_even(x, ends, dtype, HALF)


def binary32_half_level_step(q: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """f32(f32(q) * f32(R / L)), L = 127.5 (s8) or 255.5 (u8). Source: facts/mxnet.md 1, verified by running.

    >>> binary32_half_level_step(np.int8([1, -128]), (np.float32(-1), np.float32(2)), "s8").tolist()
    [0.01568627543747425, -2.007843255996704]
    """
    with np.errstate(all="ignore"):
        return q.astype(np.float32) * (reach(ends) / np.float32(HALF[dtype]))


def binary32_product_even(acc: np.ndarray, given: Ends, wanted: Ends, dtype: str) -> np.ndarray:
    """saturate(round_even(f32(f32(acc) * s))), s = f32(f32(R_given / 2^31) * f32(L / R_wanted)), L = 127 or 255.

    Source: facts/mxnet.md 1 (requantize), verified by running.

    >>> ends = (np.float32(-1), np.float32(2)), (np.float32(0), np.float32(0.5))
    >>> binary32_product_even(np.int32([2**24 + 1, 12345678, -(2**31)]), *ends, "u8").tolist()
    [8, 6, 0]
    """
    with np.errstate(all="ignore"):
        scale = (reach(given) / SUM_LEVEL) * (np.float32(WHOLE[dtype]) / reach(wanted))
        return saturate_even(acc.astype(np.float32) * scale, dtype)


QUANTIZE: dict[str, QuantizeRule] = {
    "binary32_whole_levels_even": binary32_whole_levels_even,
    "binary32_half_levels_even": binary32_half_levels_even,
}
DEQUANTIZE: dict[str, DequantizeRule] = {"binary32_half_level_step": binary32_half_level_step}
REQUANTIZE: dict[str, RequantizeRule] = {"binary32_product_even": binary32_product_even}

"""Slots `range_quantize`, `range_dequantize` and `range_requantize`: quantized values of tensors that have a range.

R = max(|low|, |high|) is what the largest quantized value stands for, or half a step more: levels are 127 (s8) and 255
(u8) where they are whole, 127.5 and 255.5 where they are half. Everything is binary32, in the order written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats
from .range_levels import HALF, SUM_LEVEL, WHOLE, Ends, reach, saturate_even

QuantizeRule = Callable[[np.ndarray, Ends, str], np.ndarray]
DequantizeRule = Callable[[np.ndarray, Ends, str], np.ndarray]
RequantizeRule = Callable[[np.ndarray, Ends, Ends, str], np.ndarray]


def _multiply_even(x: np.ndarray, ends: Ends, dtype: str, levels: dict[str, np.float32]) -> np.ndarray:
    with np.errstate(all="ignore"):
        scale = levels[dtype] / reach(ends)
        return saturate_even(x.astype(np.float32) * scale, dtype)


def binary32_whole_levels_even(x: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """saturate(round_even(f32(x * f32(L / R)))), L = 127 (s8) or 255 (u8); NaN becomes 127 (s8) or 0 (u8).

    Source: docs/facts/mxnet.md 1 (quantize), verified by running.

    >>> binary32_whole_levels_even(np.float32([0.5, -1, 2]), (np.float32(-1), np.float32(1)), "s8").tolist()
    [64, -127, 127]
    """
    return _multiply_even(x, ends, dtype, WHOLE)


def binary32_half_levels_even(x: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """saturate(round_even(f32(x * f32(L / R)))), L = 127.5 (s8) or 255.5 (u8); NaN becomes 127 (s8) or 0 (u8).

    Source: docs/facts/mxnet.md 1 (quantize_v2), verified by running.

    >>> binary32_half_levels_even(np.float32([0.5, -1, 2]), (np.float32(-1), np.float32(1)), "s8").tolist()
    [64, -128, 127]
    """
    return _multiply_even(x, ends, dtype, HALF)


def binary32_half_level_step(q: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """f32(f32(q) * f32(R / L)), L = 127.5 (s8) or 255.5 (u8). Source: docs/facts/mxnet.md 1, verified by running.

    >>> binary32_half_level_step(np.int8([1, -128]), (np.float32(-1), np.float32(2)), "s8").tolist()
    [0.01568627543747425, -2.007843255996704]
    """
    with np.errstate(all="ignore"):
        return q.astype(np.float32) * (reach(ends) / HALF[dtype])


def binary32_product_even(acc: np.ndarray, given: Ends, wanted: Ends, dtype: str) -> np.ndarray:
    """saturate(round_even(f32(f32(acc) * s))), s = f32(f32(R_given / 2^31) * f32(L / R_wanted)), L = 127 or 255.

    Source: docs/facts/mxnet.md 1 (requantize), verified by running.

    >>> ends = (np.float32(-1), np.float32(2)), (np.float32(0), np.float32(0.5))
    >>> binary32_product_even(np.int32([2**24 + 1, 12345678, -(2**31)]), *ends, "u8").tolist()
    [8, 6, 0]
    """
    with np.errstate(all="ignore"):
        scale = (reach(given) / SUM_LEVEL) * (WHOLE[dtype] / reach(wanted))
        return saturate_even(acc.astype(np.float32) * scale, dtype)


def _by_magnitude(real: np.ndarray, scale: np.float32) -> np.ndarray:
    """sign(x) * min(f32(f32(|x| * scale) + 1/2), 127) without its fraction; NaN becomes 0."""
    with np.errstate(all="ignore"):
        moved = np.abs(real) * scale + np.float32(0.5)
    limited = np.where(moved < 127, moved, np.float32(127))
    return (np.sign(np.where(np.isnan(real), np.float32(0), real)) * limited).astype(np.int64)


def binary32_symmetric_away_or_affine_up(x: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """s8: truncate(sign(x) * min(f32(f32(|x| * f32(127 / R)) + 1/2), 127)); u8: low_bits(truncate(f32(f32(x - low) *
    f32(255 / f32(high - low))) + 1/2)), the last sum in binary64, so that nothing saturates.

    Ties away from zero, never -128; in u8 ties up, and numbers outside of the range keep their low 8 bits (what does
    not fit 32 bits: 0). Source: docs/facts/mxnet.md 4 (quantize, quantize_v2), verified by running.

    >>> one = np.float32(-127), np.float32(127)
    >>> binary32_symmetric_away_or_affine_up(np.float32([2.5, -2.5, -300]), one, "s8").tolist()
    [3, -3, -127]
    >>> shifted = np.float32(-5), np.float32(250)
    >>> binary32_symmetric_away_or_affine_up(np.float32([-5, -2.5, 251]), shifted, "u8").tolist()
    [0, 3, 0]
    """
    real = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        if dtype == "s8":
            return _by_magnitude(real, np.float32(127) / reach(ends))
        scale = np.float32(np.float64(255) / np.float64(np.float32(ends[1]) - np.float32(ends[0])))
        moved = ((real - np.float32(ends[0])) * scale).astype(np.float64) + 0.5
    return floats.truncate_to_s32(moved) & 255


def binary32_whole_level_step_or_affine(q: np.ndarray, ends: Ends, dtype: str) -> np.ndarray:
    """s8: f32(q * f32(R / 127)); u8: f32(f32(q * f32(f32(high - low) / 255)) + low).

    Source: docs/facts/mxnet.md 4 (dequantize), verified by running.

    >>> ends = np.float32(-127), np.float32(128)
    >>> binary32_whole_level_step_or_affine(np.int8([-127, 1]), (ends[0], -ends[0]), "s8").tolist()
    [-127.0, 1.0]
    >>> binary32_whole_level_step_or_affine(np.uint8([0, 255]), ends, "u8").tolist()
    [-127.0, 128.0]
    """
    quantized = np.asarray(q).astype(np.float32)
    with np.errstate(all="ignore"):
        if dtype == "s8":
            return quantized * (reach(ends) / np.float32(127))
        return quantized * ((np.float32(ends[1]) - np.float32(ends[0])) / np.float32(255)) + np.float32(ends[0])


def binary32_two_products_away(acc: np.ndarray, given: Ends, wanted: Ends, dtype: str) -> np.ndarray:
    """truncate(sign(v) * min(f32(f32(|v| * f32(127 / R_wanted)) + 1/2), 127)), v = f32(f32(acc) * f32(R_given / 2^31)).

    Ties away from zero, never -128. Only s8. Source: docs/facts/mxnet.md 4 (requantize), verified by running.

    >>> ends = (np.float32(-(2.0**31)), np.float32(2.0**31)), (np.float32(-254), np.float32(254))
    >>> binary32_two_products_away(np.int32([5, -5, -1000]), *ends, "s8").tolist()
    [3, -3, -127]
    """
    with np.errstate(all="ignore"):
        real = np.asarray(acc).astype(np.float32) * (reach(given) / SUM_LEVEL)
        return _by_magnitude(real, np.float32(127) / reach(wanted))


QUANTIZE: dict[str, QuantizeRule] = {
    "binary32_whole_levels_even": binary32_whole_levels_even,
    "binary32_half_levels_even": binary32_half_levels_even,
    "binary32_symmetric_away_or_affine_up": binary32_symmetric_away_or_affine_up,
}
DEQUANTIZE: dict[str, DequantizeRule] = {
    "binary32_half_level_step": binary32_half_level_step,
    "binary32_whole_level_step_or_affine": binary32_whole_level_step_or_affine,
}
REQUANTIZE: dict[str, RequantizeRule] = {
    "binary32_product_even": binary32_product_even,
    "binary32_two_products_away": binary32_two_products_away,
}

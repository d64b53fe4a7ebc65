"""Slot `row_blocks`: rows of real numbers become integers, with a scale for every block of columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .block_product import Blocks

# (rows[M, K], columns of a block) to blocks, of which the last one ends in 0.
RowBlocksRule = Callable[[np.ndarray, int], Blocks]
_F32 = np.float32


def _larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger one; b when one of them is NaN."""
    return np.where(a > b, a, b)


def _largest(parts: np.ndarray, depth: int) -> np.ndarray:
    """The largest |x| of every block, parts[..., blocks, columns]: vectors of 16 one after the other, then by halves.

    A NaN is forgotten together with what its lane has seen, unless it comes last.
    """
    *_, blocks, columns = parts.shape
    vectors = np.abs(parts).reshape(*parts.shape[:-1], columns // 16, 16)
    lanes = np.zeros((*parts.shape[:-1], 16), _F32)
    in_last = -(-(depth - (blocks - 1) * columns) // 16)
    for place in range(columns // 16):
        filled = blocks if place < in_last else blocks - 1
        lanes[..., :filled, :] = _larger(lanes[..., :filled, :], vectors[..., :filled, place, :])
    for half in (8, 4):
        lanes = _larger(lanes[..., half:], lanes[..., :half])
    lanes = _larger(lanes[..., :2], lanes[..., 2:])
    return _larger(lanes[..., 0], lanes[..., 1])


def binary32_over_127(rows: np.ndarray, block: int) -> Blocks:
    """scale = f32(max / 127), q = round_even(f32(x * f32(127 / max))), max = the largest |x|; all 0 where
    it is 0.

    Domain: all, blocks of 16 and multiples. What is not finite, or beyond 32 bits, becomes 0; what is beyond 8 bits,
    where a NaN hid the largest |x|, loses its high bits. Source: kernels for x86-64 with 512-bit vectors that multiply
    4-bit weights by 8-bit rows, read; verified by running.

    >>> blocks = binary32_over_127(np.float32([[1, -2, 0.5, *[0] * 14]]), 16)
    >>> blocks.values[0, 0, :3].tolist(), blocks.scales.tolist()
    ([64, -127, 32], [[0.015748031437397003, 0.0]])
    """
    parts = _in_parts(rows, block)
    with np.errstate(all="ignore"):
        largest = _largest(parts, rows.shape[1])
        scales = largest / _F32(127)
        inverse = np.where(largest == 0, _F32(0), _F32(127) / largest)
        real = np.rint(parts * inverse[..., None])
        whole = np.where(np.abs(real) < 2.0**31, real, 0).astype(np.int64)
    return Blocks((whole + 128 & 255) - 128, scales, depth=rows.shape[1])


def _in_parts(rows: np.ndarray, block: int) -> np.ndarray:
    """Blocks [M, blocks, columns], the last one filled up with 0."""
    count, depth = rows.shape
    blocks = -(-depth // block)
    padded = np.zeros((count, blocks * block), _F32)
    padded[:, :depth] = rows
    return padded.reshape(count, blocks, block)


def _whole(real: np.ndarray, low: float, high: float) -> np.ndarray:
    """Integers, limited; NaN becomes 0."""
    return np.where(np.isnan(real), 0, np.clip(real.astype(np.float64), low, high)).astype(np.int64)


def _away(real: np.ndarray) -> np.ndarray:
    """Ties away from zero, of numbers whose halves are exact."""
    return np.trunc(real) + np.copysign(np.abs(real - np.trunc(real)) >= 0.5, real)


def binary32_over_127_limited(rows: np.ndarray, block: int) -> Blocks:
    """As `binary32_over_127`, but a NaN makes the scale NaN, and what is beyond 8 bits is limited.

    Domain: all whose largest |x| has an inverse. Source: kernels for aarch64 that multiply 8-bit and 2-bit weights by
    8-bit rows, read; verified by running.

    >>> binary32_over_127_limited(np.float32([[1, -2, 0.5, *[0] * 14]]), 16).values[0, 0, :3].tolist()
    [64, -127, 32]
    """
    parts = _in_parts(rows, block)
    with np.errstate(all="ignore"):
        largest = np.abs(parts).max(2)
        inverse = np.where(largest == 0, _F32(0), _F32(127) / largest)
        whole = _whole(np.rint(parts * inverse[..., None]), -128, 127)
        return Blocks(whole, largest / _F32(127), depth=rows.shape[1])


def binary32_away_by_inverse(rows: np.ndarray, block: int) -> Blocks:
    """scale = f32(max / 127), q = round(f32(x * f32(1 / scale))), ties away from zero; all 0 where the scale is 0.

    A NaN makes its sixteen forgotten. What is beyond 32 bits is limited to these, of which the low 8 stay. Domain: all.
    Source: kernels for aarch64 that multiply 4-bit weights by 8-bit rows, read; verified by running.

    >>> binary32_away_by_inverse(np.float32([[0.5, -127, 2.5, *[0] * 14]]), 16).values[0, 0, :3].tolist()
    [1, -127, 3]
    """
    parts = _in_parts(rows, block)
    with np.errstate(all="ignore"):
        sixteens = np.abs(parts).reshape(*parts.shape[:2], -1, 16).max(3)
        largest = np.where(np.isnan(sixteens), _F32(0), sixteens).max(2)
        scales = largest / _F32(127)
        inverse = np.where(scales == 0, _F32(0), _F32(1) / scales)
        whole = _whole(_away(parts * inverse[..., None]), -(2.0**31), 2.0**31 - 1)
    return Blocks((whole + 128 & 255) - 128, scales, depth=rows.shape[1])


def binary32_inverse_of_scale(rows: np.ndarray, block: int) -> Blocks:
    """q = round_even(f32(x * f32(127 / max))), scale = f32(1 / f32(127 / max)); all 0 where max is 0.

    Domain and source: as of `binary32_over_127_limited`, for 4-bit weights with zero points.

    >>> binary32_inverse_of_scale(np.float32([[1, -2, 0.5, *[0] * 13]]), 16).scales.tolist()
    [[0.015748031437397003]]
    """
    parts = _in_parts(rows, block)
    with np.errstate(all="ignore"):
        largest = np.abs(parts).max(2)
        scales = np.where(largest == 0, _F32(0), _F32(127) / largest)
        inverse = np.where(scales == 0, _F32(0), _F32(1) / scales)
        return Blocks(_whole(np.rint(parts * scales[..., None]), -128, 127), inverse, depth=rows.shape[1])


def binary32_range_of_row(rows: np.ndarray, block: int) -> Blocks:
    """Whole rows by their range from low to high, 0 in it: f = f32(255 / f32(high - low)), 1 where that is nothing;
    q = round(f32(x * f)) + zero point, ties away from zero, limited to 8 bits; the scale is f32(1 / f).

    The zero point is f32(-128 - f32(low * f)), or f32(127 - f32(high * f)) unless f32(-128 + low * f) and f32(127 +
    high * f) add up to more than 0; it is limited, and rounded to even. Rows with a NaN have the range 0. Domain: rows
    of whole blocks. Source: a library of kernels for aarch64, read; verified by running.

    >>> blocks = binary32_range_of_row(np.float32([[1, -2, 0.5, *[0] * 13]]), 16)
    >>> blocks.values[0, 0, :3].tolist(), blocks.scales.tolist(), blocks.zero_points.tolist()
    ([127, -128, 85], [[0.0117647061124444]], [42])
    """
    low, high = (np.where(np.isnan(x), _F32(0), x) for x in (rows.min(1, initial=0), rows.max(1, initial=0)))
    with np.errstate(all="ignore"):
        factor = np.where(low == high, _F32(1), _F32(255) / (high - low))
        scale = np.where(factor == 0, _F32(0), _F32(1) / factor)
        down, up = low * factor, high * factor
        point = np.where((down - _F32(128)) + (up + _F32(127)) > 0, _F32(-128) - down, _F32(127) - up)
        points = np.rint(np.fmin(np.fmax(point, _F32(-128)), _F32(127))).astype(np.int64)
        whole = _whole(_away(rows * factor[:, None]), -(2.0**15), 2.0**15 - 1) + points[:, None]
    blocks = rows.shape[1] // block
    values = np.clip(whole, -128, 127).reshape(len(rows), blocks, block)
    return Blocks(values, np.repeat(scale[:, None], blocks, 1), points, rows.shape[1])


RULES: dict[str, RowBlocksRule] = {
    "binary32_over_127": binary32_over_127,
    "binary32_over_127_limited": binary32_over_127_limited,
    "binary32_away_by_inverse": binary32_away_by_inverse,
    "binary32_inverse_of_scale": binary32_inverse_of_scale,
    "binary32_range_of_row": binary32_range_of_row,
}

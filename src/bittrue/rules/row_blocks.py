"""Slot `row_blocks`: rows of real numbers become integers, with a scale for every block of columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# (rows[M, K], columns of a block) to quantized values s64[M, blocks, columns] and scales f32[M, blocks]; the last block
# ends in 0.
RowBlocksRule = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
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


def binary32_over_127(rows: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """scale = f32(max / 127), q = round_even(f32(x * f32(127 / max))), max = the largest |x|; all 0 where
    it is 0.

    Domain: all, blocks of 16 and multiples. What is not finite, or beyond 32 bits, becomes 0; what is beyond 8 bits,
    where a NaN hid the largest |x|, loses its high bits. Source: kernels for x86-64 with 512-bit vectors that multiply
    4-bit weights by 8-bit rows, read; verified by running.

    >>> quantized, scales = binary32_over_127(np.float32([[1, -2, 0.5, *[0] * 14]]), 16)
    >>> quantized[0, 0, :3].tolist(), scales.tolist()
    ([64, -127, 32], [[0.015748031437397003, 0.0]])
    """
    count, depth = rows.shape
    blocks = -(-depth // block)
    padded = np.zeros((count, blocks * block), _F32)
    padded[:, :depth] = rows
    parts = padded.reshape(count, blocks, block)
    with np.errstate(all="ignore"):
        largest = _largest(parts, depth)
        scales = largest / _F32(127)
        inverse = np.where(largest == 0, _F32(0), _F32(127) / largest)
        real = np.rint(parts * inverse[..., None])
        whole = np.where(np.abs(real) < 2.0**31, real, 0).astype(np.int64)
    return (whole + 128 & 255) - 128, scales


RULES: dict[str, RowBlocksRule] = {"binary32_over_127": binary32_over_127}

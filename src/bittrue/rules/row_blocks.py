"""Slot `row_blocks`: rows of real numbers become integers, with a scale for every block of columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# (rows[M, K], columns of a block) to quantized values s64[M, blocks, columns] and scales f32[M, blocks]; the last block
# ends in 0.
RowBlocksRule = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
_F32 = np.float32


def binary32_over_127(rows: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """scale = f32(max / 127), q = round_even(f32(x * f32(127 / max))), max = the largest |x|; all 0 where
    it is 0.

    Domain: finite numbers; what is not finite gives quantized values without meaning. Source: kernels for x86-64 that
        multiply
    4-bit weights by 8-bit rows, read.

    >>> quantized, scales = binary32_over_127(np.float32([[1, -2, 0.5, 0]]), 2)
    >>> quantized.tolist(), scales.tolist()
    ([[[64, -127], [127, 0]]], [[0.015748031437397003, 0.003937007859349251]])
    """
    count, depth = rows.shape
    blocks = -(-depth // block)
    padded = np.zeros((count, blocks * block), _F32)
    padded[:, :depth] = rows
    parts = padded.reshape(count, blocks, block)
    with np.errstate(all="ignore"):
        largest = np.abs(parts).max(axis=-1, initial=0)
        scales = largest / _F32(127)
        inverse = np.where(largest == 0, _F32(0), _F32(127) / largest)
        real = np.rint(parts * inverse[..., None])
        quantized = np.where(np.isfinite(real), np.clip(real, -128, 127), 0).astype(np.int64)
    return quantized, scales


RULES: dict[str, RowBlocksRule] = {"binary32_over_127": binary32_over_127}

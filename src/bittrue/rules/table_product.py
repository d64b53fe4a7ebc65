"""Slot `table_product`: rows times columns of 2-bit numbers in blocks, by tables of sums of four."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats

# (rows f32[M, K], columns u8[N, K], scales f32[N, blocks], zero points [N, blocks] or None) to f32[M, N].
TableProductRule = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]
_F32 = np.float32
# Which of four terms a table's entry adds, and which it subtracts.
_SIGNS = np.where(np.arange(16)[:, None] >> np.arange(4) & 1, _F32(1), _F32(-1))


def _tables(fours: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of f32[..., fours, 4]: tables s64[..., fours, 16], scales [...], and sums of all terms, negated [...]."""
    a = np.abs(fours)
    largest = ((a[..., 0] + a[..., 1]) + (a[..., 2] + a[..., 3])).reshape(*fours.shape[:-2], -1, 8)
    for half in (4, 2, 1):
        low, high = largest[..., :half], largest[..., half:]
        largest = np.where(high > low, high, low) if half == 4 else np.where(low > high, low, high)
    scale = np.fmax.reduce(largest[..., 0] / _F32(127), axis=-1, initial=_F32(0))
    inverse = np.where(scale == 0, _F32(0), _F32(1) / scale)
    entries = fours[..., None, :] * _SIGNS
    sums = ((entries[..., 0] + entries[..., 1]) + entries[..., 2]) + entries[..., 3]
    lanes = sums[..., 0].reshape(*scale.shape, -1, 2, 4)
    pairs = lanes[..., 1, :] + lanes[..., 0, :]
    pairs = pairs[..., :2] + pairs[..., 2:]
    added = np.add.accumulate(pairs[..., 0] + pairs[..., 1], axis=-1)[..., -1]
    real = np.rint(sums * inverse[..., None, None])
    return np.where(np.isnan(real), -128, np.clip(real, -128, 127)).astype(np.int64), scale, added


def binary32_tables_of_fours(
    rows: np.ndarray, columns: np.ndarray, scales: np.ndarray, points: np.ndarray | None
) -> np.ndarray:
    """Sums a, b of +-x, signs by the low and the high bits of numbers, are found in tables, fours of terms at a time.

    Groups of 64 terms (32 in blocks of 32) have tables of q = round_even(f32(sum of four / t)), t the largest sum of
    four |x| over 127, limited to 8 bits (NaN: -128). With A, B the sums of q, o = -sum of x and a scale s:
    a = fma(fma(f32(A), t, o), s, a), b = fma(f32(B t), s, b), and of given zero points z
    a = fma(f32((z - 2) s), 2 o, a), group by group; f32(f32(a / 2) + b) is the result, so that without zero points 2
    is subtracted from numbers.

    Domain: all; of several NaN any one stays. Blocks of 32 to 512, a power of 2. Source: kernels of a library for
    x86-64 with 256-bit vectors, read; verified by running.

    >>> rows, columns = np.ones((1, 32), np.float32), np.full((1, 32), 3, np.uint8)
    >>> binary32_tables_of_fours(rows, columns, np.float32([[0.5]]), None).tolist()
    [[16.0]]
    """
    (m, depth), (n, blocks) = rows.shape, scales.shape
    block = depth // blocks
    group = min(block, 64)
    with np.errstate(all="ignore"):
        tables, scale, bias = _tables(rows.reshape(m, -1, group // 4, 4))
        shifted = columns.reshape(n, -1, group // 4, 4).astype(np.int64)
        places = [((shifted >> bit & 1) << np.arange(4)).sum(-1) for bit in (0, 1)]
        fours = np.arange(group // 4)
        low = high = np.zeros((m, n), _F32)
        for g in range(depth // group):
            table, t, o, s = tables[:, g], scale[:, g, None], bias[:, g, None], scales[:, g * group // block]
            found = [table[:, fours, place[:, g]].sum(-1).astype(_F32) for place in places]
            low = floats.fused_multiply_add(floats.fused_multiply_add(found[0], t, o), s, low)
            high = floats.fused_multiply_add(found[1] * t, s, high)
            if points is not None:
                shift = (points[:, g * group // block].astype(_F32) - _F32(2)) * s
                low = floats.fused_multiply_add(shift, o * _F32(2), low)
        return np.asarray(low * _F32(0.5) + high)


RULES: dict[str, TableProductRule] = {"binary32_tables_of_fours": binary32_tables_of_fours}

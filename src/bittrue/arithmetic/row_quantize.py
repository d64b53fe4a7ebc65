"""Rows of binary32 numbers quantized to 8 bits with a scale of their own, at run time.

On x86 vector code and the code for the rest round differently: the first `n // 8 * 8` elements of a row become
trunc(v + 1/2) (trunc(v - 1/2) below zero), with the sum rounded to binary32; the last `n % 8` are rounded exactly, ties
away from zero, as all are on aarch64 (`_away`). NaN and infinities raise OverflowError: what they become has no
meaning. Numbers so small that the inverse of the scale is infinite do give results, as processors convert what does not
fit 32 bits.
"""

from __future__ import annotations

import numpy as np

from bittrue.arithmetic.fixed_point import S32_MAX, wrap_s32
from bittrue.arithmetic.floats import round_away, saturate_to_s32, truncate_to_s32

_f32 = np.float32
_VECTOR = 8


def _split(x: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[rows, n] times one inverse scale per row: blocks of eight rounded, as s32, and the rest, not yet rounded.

    In blocks what is too large becomes 2^31 - 1, NaN and what is too small -2^31.
    """
    head = x.shape[-1] // _VECTOR * _VECTOR
    with np.errstate(all="ignore"):
        values = x * inverse[:, None]
        moved = values[:, :head] + np.where(values[:, :head] < 0, _f32(-0.5), _f32(0.5))
    return np.where(moved >= 2.0**31, S32_MAX, truncate_to_s32(moved)), values[:, head:]


def _refuse_what_is_not_finite(x: np.ndarray) -> None:
    if not np.isfinite(x).all():
        raise OverflowError("a row holds NaN or an infinity")


def _symmetric_scales(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    _refuse_what_is_not_finite(x)
    with np.errstate(all="ignore"):
        largest = np.abs(x).max(axis=-1, initial=0)
        flat = largest == 0
        scale = np.where(flat, _f32(1), largest / _f32(127))
        return scale, np.where(flat, _f32(0), _f32(127) / np.where(flat, _f32(1), largest))


def symmetric_away(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `symmetric`, with all elements rounded exactly, ties away; beyond 32 bits they are limited, NaN becomes 0.

    Source: the runtime's vector code for aarch64, its machine code; verified by running.

    >>> symmetric_away(np.float32([[0.49999997, 0, 0, 0, 0, 0, 0, 127]]))[0].tolist()
    [[0, 0, 0, 0, 0, 0, 0, 127]]
    """
    scale, inverse = _symmetric_scales(x)
    with np.errstate(all="ignore"):
        q = saturate_to_s32(round_away(x * inverse[:, None]))
    return np.clip(q, -127, 127), scale, np.zeros(len(x), np.int64)


def symmetric(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[rows, n] -> integers in [-127, 127] (int64), binary32 scales max|x| / 127, and zero points, all 0.

    Elements are multiplied by 127 / max|x|; a row of zeros has scale 1. Behind the blocks of eight, NaN and what does
    not fit 32 bits give -127. Source: optimized/neon_tensor_utils.cc (SymmetricQuantizeFloats), read; verified by
    running.

    >>> q, scale, _ = symmetric(np.float32([[1, -2, 0.5, -0.004]]))
    >>> q.tolist(), scale.tolist()
    ([[64, -127, 32, 0]], [0.015748031437397003])

    Half a step less one bit: adding one half in binary32 makes 1 of it in a block, but not in the ninth place.

    >>> symmetric(np.float32([[0.49999997, 0, 0, 0, 0, 0, 0, 0, 0.49999997, 127]]))[0][0, [0, 8]].tolist()
    [1, 0]
    """
    scale, inverse = _symmetric_scales(x)
    body, rest = _split(x, inverse)
    q = np.concatenate([body, truncate_to_s32(round_away(rest))], axis=1)
    return np.clip(q, -127, 127), scale, np.zeros(len(x), np.int64)


def symmetric_by_wide_quotients(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[rows, n] -> integers (int64), binary32 scales max|x| / 127, and zero points, all 0.

    Elements are multiplied by 127 / max|x| (quotients in binary64, then rounded) and rounded, ties away; a row of zeros
    has scale 1. What does not fit 32 bits becomes 0. Source: optimized/4bit/sse_fully_connected.cc
    (SseBatchQuantizeFloats4Bit), read; verified by running.

    >>> row = np.float32([[0.49999997, 0, 0, 0, 0, 0, 0, 0, 0.49999997, 127]])
    >>> symmetric_by_wide_quotients(row)[0][0, [0, 8]].tolist()
    [0, 0]
    """
    _refuse_what_is_not_finite(x)
    with np.errstate(all="ignore"):
        largest = np.abs(x).max(axis=-1, initial=0).astype(np.float64)
        largest = np.where(largest == 0, 127.0, largest)
        steps = round_away(x * (127.0 / largest).astype(_f32)[:, None])
    q = np.where(np.abs(steps) < 2.0**31, steps, 0).astype(np.int64)
    return q, (largest / 127.0).astype(_f32), np.zeros(len(x), np.int64)


def asymmetric(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[rows, n] -> integers in [-128, 127] (int64), binary32 scales and zero points.

    The range is that of the row and zero; its width is a binary32 difference, divided by 255 in binary64. The zero
    point comes from the end whose own error is smaller, ties away. A row of zeros has scale 1 and zero point 0.
    The inverse of scale 0 counts as 0. Blocks of eight add the zero point modulo 2^32, the rest in binary32, where NaN
    gives 0. Source: optimized/neon_tensor_utils.cc (AsymmetricQuantizeFloats), read; verified by running.

    >>> q, scale, zero_point = asymmetric(np.float32([[0, 1, 2.55]]))
    >>> q.tolist(), zero_point.tolist()
    ([[-128, -28, 127]], [-128])
    """
    scale, inverse, zero_point, flat = _asymmetric_scales(x)
    body, rest = _split(x, inverse)
    with np.errstate(all="ignore"):
        moved = np.clip(round_away(rest) + zero_point[:, None].astype(_f32), -128, 127)
    q = np.concatenate([np.clip(wrap_s32(body + zero_point[:, None]), -128, 127), np.nan_to_num(moved, nan=0)], axis=1)
    return np.where(flat[:, None], 0, q).astype(np.int64), scale, zero_point


def asymmetric_away(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `asymmetric`, with all elements rounded exactly, ties away. In blocks of eight they are limited to 32 bits,
    NaN becomes 0, and the zero point is added modulo 2^32.

    Source: the runtime's vector code for aarch64, its machine code; verified by running.

    >>> row = np.float32([[0.49999997, 0, 0, 0, 0, 0, 0, 255]])
    >>> [quantize(row)[0][0, 0].tolist() for quantize in (asymmetric, asymmetric_away)]
    [-127, -128]
    """
    scale, inverse, zero_point, flat = _asymmetric_scales(x)
    head, point = x.shape[-1] // _VECTOR * _VECTOR, zero_point[:, None]
    with np.errstate(all="ignore"):
        rounded = round_away(x * inverse[:, None])
        body = wrap_s32(saturate_to_s32(rounded[:, :head]) + point)
        rest = saturate_to_s32(rounded[:, head:] + point.astype(_f32))
    q = np.clip(np.concatenate([body, rest], axis=1), -128, 127)
    return np.where(flat[:, None], 0, q).astype(np.int64), scale, zero_point


def _asymmetric_scales(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scales, their inverses, zero points, and which rows hold nothing but zeros."""
    _refuse_what_is_not_finite(x)
    with np.errstate(all="ignore"):
        low, high = x.min(axis=-1, initial=0), x.max(axis=-1, initial=0)
        flat = low == high
        exact = np.where(flat, 1.0, (high - low).astype(np.float64) / 255.0)
        low_steps, high_steps = low.astype(np.float64) / exact, high.astype(np.float64) / exact
        from_low, from_high = -128.0 - low_steps, 127.0 - high_steps
        chosen = np.where(128.0 + np.abs(low_steps) < 127.0 + np.abs(high_steps), from_low, from_high)
        zero_point = np.where(flat, 0, np.clip(round_away(chosen), -128, 127)).astype(np.int64)
        scale = exact.astype(_f32)
        inverse = np.where(flat | (scale == 0), _f32(0), _f32(1) / scale)
    return scale, inverse, zero_point, flat


def row_sums_s16(weights: np.ndarray) -> np.ndarray:
    """Sums of the rows of an 8-bit matrix; the sums of eight lanes wrap to 16 bits before they are added.

    Lane j adds positions 2j and 2j + 1 of every 16, and position j of the 8 after the last 16. Nothing wraps below 2048
    columns. Source: the runtime's kernels, read; verified by running.

    >>> row_sums_s16(np.full((1, 20), 3)).tolist()
    [60]
    """
    rows, count = weights.shape
    wide = count // 16 * 16
    lanes = weights[:, :wide].astype(np.int64).reshape(rows, -1, 8, 2).sum(axis=(1, 3))
    half = wide
    if count - wide >= 8:
        half = wide + 8
        lanes = lanes + weights[:, wide:half]
    lanes = (lanes + (1 << 15)) % (1 << 16) - (1 << 15)
    return np.asarray(lanes.sum(axis=1) + weights[:, half:].astype(np.int64).sum(axis=1))


def wrapped_pairs(rows: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """What sums of products of bytes have less by pairs that wrap to 16 bits: elements i and i + 8 of every whole 16.

    Of rows[M, K] and weights[N, K], int64 [M, N]; None for nothing. Only -128 times -128, twice, leaves 16 bits.
    Source: the runtime's kernels for aarch64, their machine code; verified by running.

    >>> lowest = np.full((1, 17), -128, np.int8)
    >>> wrapped_pairs(lowest, lowest).tolist()
    [[-524288]]
    """
    blocks = weights.shape[1] // 16
    halves = (x[:, : 16 * blocks].reshape(len(x), blocks, 2, 8) == -128 for x in (rows, weights))
    x, w = (half.all(axis=2).reshape(len(half), -1).astype(np.float64) for half in halves)
    if not x.any() or not w.any():
        return None
    return np.asarray(-65536 * (x @ w.T)).astype(np.int64)


def mirrored_lowest(weights: np.ndarray) -> np.ndarray:
    """What negative factors meet: -128 counts as +128 in the first `n // 16 * 16` columns.

    Vector code moves the sign of one factor to the other, and -(-128) is -128 in 8 bits.
    Source: the runtime's kernels, read; verified by running.

    >>> mirrored_lowest(np.full((1, 17), -128))[0, [0, 16]].tolist()
    [128, -128]
    """
    mirrored = weights.astype(np.int64)
    wide = weights.shape[1] // 16 * 16
    mirrored[:, :wide] = np.where(mirrored[:, :wide] == -128, 128, mirrored[:, :wide])
    return mirrored

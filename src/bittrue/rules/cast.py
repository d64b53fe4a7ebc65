"""Slot `cast`: from floating point to integers without a scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

CastRule = Callable[[np.ndarray, int, int], np.ndarray]


def _truncated(x: np.ndarray, minimum: int, maximum: int, nan: int) -> np.ndarray:
    """`x` in binary64 without its fraction, limited to the interval, as s64 (maximum up to 2^63 - 1)."""
    x = np.asarray(x, np.float64)
    beyond = float(maximum + 1)  # a power of two: exact
    inside = (x >= float(minimum)) & (x < beyond)
    result = np.where(inside, x, 0.0).astype(np.int64)
    result[x >= beyond] = maximum
    result[x < float(minimum)] = minimum
    result[np.isnan(x)] = nan
    return result


def truncate_saturate_nan_maximum(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """The fraction is dropped, values beyond the type become its ends, NaN becomes the maximum.

    Source: docs/facts/litert.md 2.3 (CAST), read and verified by running.

    >>> truncate_saturate_nan_maximum(np.array([1.5, -1.5, 300, -300, np.nan]), -128, 127).tolist()
    [1, -1, 127, -128, 127]
    """
    return _truncated(x, minimum, maximum, maximum)


def _indefinite(x: np.ndarray, bits: int) -> np.ndarray:
    """`x` in binary64 without its fraction as a signed integer of `bits`; what does not fit is the smallest one."""
    beyond = float(1 << (bits - 1))
    truncated = np.trunc(np.asarray(x, np.float64))
    inside = (truncated >= -beyond) & (truncated < beyond)
    result = np.where(inside, truncated, 0.0).astype(np.int64)
    result[~inside] = -(1 << (bits - 1))
    return result


def truncate_low_bits(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """The low bits of the number without its fraction as s32 (for up to 16 bits, and s32) or s64 (for more).

    What the wide type cannot hold, NaN included, is its smallest value there; for u64, 2^63 is taken from numbers that
    are not smaller first. Source: x86's conversions (CVTTSD2SI), verified by running.

    >>> x = np.array([1.5, -1.5, 300, -300, 3e9, np.nan])
    >>> truncate_low_bits(x, -128, 127).astype(np.int8).tolist()
    [1, -1, 44, -44, 0, 0]
    >>> truncate_low_bits(np.array([-1.0, 1e19, np.nan]), 0, 2**64 - 1).astype(np.uint64).tolist()
    [18446744073709551615, 10000000000000000000, 9223372036854775808]
    """
    if maximum < 1 << 31:
        return _indefinite(x, 32)
    if maximum < 1 << 63:
        return _indefinite(x, 64)
    half = float(1 << 63)
    large = np.asarray(x, np.float64) >= half
    with np.errstate(invalid="ignore"):
        result = _indefinite(np.where(large, x - half, x), 64)
    return np.where(large, result ^ np.int64(-(1 << 63)), result)


def truncate_low_bits_by_halves(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """As truncate_low_bits, but by conversions to s32 alone, 2^31 taken from what is not smaller first. For u32.

    NaN counts as smaller, and becomes 2^31. Source: compiled code of the runtime's vector loop, verified by running.

    >>> truncate_low_bits_by_halves(np.array([-1.5, 3e9, -3e9, 5e9]), 0, 2**32 - 1).astype(np.uint32).tolist()
    [4294967295, 3000000000, 2147483648, 0]
    """
    half = float(1 << 31)
    with np.errstate(invalid="ignore"):
        small = ~(np.asarray(x, np.float64) >= half)
        result = _indefinite(np.where(small, x, x - half), 32)
    return np.where(small, result, result ^ np.int64(-(1 << 31)))


def round_away_low_bits(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """To nearest, ties away from zero, then as truncate_low_bits. Source: run (types of fewer than 8 bits).

    >>> round_away_low_bits(np.array([2.5, -2.5, 2.4, np.nan]), -8, 7).tolist()
    [3, -3, 2, -2147483648]
    """
    wide = np.asarray(x, np.float64)
    return truncate_low_bits(np.trunc(wide + np.copysign(0.5, wide)), minimum, maximum)


def truncate_low_bits_nan_zero(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """As truncate_low_bits, but NaN becomes 0. Source: run (powers of two of 8 bits).

    >>> truncate_low_bits_nan_zero(np.array([1.5, 3e9, np.nan]), -(2**31), 2**31 - 1).tolist()
    [1, -2147483648, 0]
    """
    return truncate_low_bits(np.where(np.isnan(x), 0.0, x), minimum, maximum)


def truncate_limited_low_bits(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """The low bits of the number without its fraction, limited to 32 bits (for wider types to 64) with the type's sign.

    NaN becomes 0. Source: docs/facts/onnxruntime.md 3.8, run.

    >>> x = np.array([300, -300, 3e9, 5e9, np.nan])
    >>> truncate_limited_low_bits(x, -128, 127).astype(np.int8).tolist()
    [44, -44, -1, -1, 0]
    >>> truncate_limited_low_bits(x, 0, 65535).astype(np.uint16).tolist()
    [300, 0, 24064, 65535, 0]
    >>> truncate_limited_low_bits(np.array([-1.0, 1e19, np.inf]), 0, 2**64 - 1).astype(np.uint64).tolist()
    [0, 10000000000000000000, 18446744073709551615]
    """
    if maximum < 1 << 63:
        bits = 63 if maximum >= 1 << 32 else 31
        return _truncated(x, -(1 << bits), (1 << bits) - 1, 0) if minimum else _truncated(x, 0, (2 << bits) - 1, 0)
    half, ends = float(1 << 63), (0, (1 << 63) - 1, 0)
    upper = _truncated(x - half, *ends) ^ np.int64(-(1 << 63))
    return np.where(np.asarray(x, np.float64) >= half, upper, _truncated(x, *ends))


def truncate_limited_s32_low_bits(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """As truncate_limited_low_bits, but by s32 for types without a sign, too. Source: as that one's.

    >>> truncate_limited_s32_low_bits(np.array([300, -300, 3e9]), 0, 255).astype(np.uint8).tolist()
    [44, 212, 255]
    """
    return truncate_limited_low_bits(x, -(1 << 31), (1 << 31) - 1)


def truncate_limited_64_low_bits(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """As truncate_limited_low_bits, but by u64 for u32, and by s64 for all others. Source: as that one's.

    >>> x = np.array([-300, 3e9, 5e9])
    >>> truncate_limited_64_low_bits(x, 0, 65535).astype(np.uint16).tolist()
    [65236, 24064, 61952]
    >>> truncate_limited_64_low_bits(x, 0, 2**32 - 1).astype(np.uint32).tolist()
    [0, 3000000000, 705032704]
    """
    wide = maximum == (1 << 32) - 1
    return truncate_limited_low_bits(x, 0 if wide else -(1 << 63), (1 << (64 if wide else 63)) - 1)


def truncate_limited_fours_low_bits(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """As truncate_limited_low_bits, but whole groups of 4 as truncate_limited_s32_low_bits. Source: as that one's.

    >>> truncate_limited_fours_low_bits(np.full(5, -300), 0, 65535).astype(np.uint16).tolist()
    [65236, 65236, 65236, 65236, 0]
    """
    whole = x.size // 4 * 4
    fours = truncate_limited_s32_low_bits(x[:whole], minimum, maximum)
    return np.concatenate([fours, truncate_limited_low_bits(x[whole:], minimum, maximum)])


def round_away_limited_low_bits(x: np.ndarray, minimum: int, maximum: int) -> np.ndarray:
    """To nearest, ties away from zero, then as truncate_limited_s32_low_bits. Source: run (types of fewer than 8 bits).

    >>> round_away_limited_low_bits(np.array([2.5, -2.5, np.inf, np.nan]), -8, 7).tolist()
    [3, -3, 2147483647, 0]
    """
    wide = np.asarray(x, np.float64)
    return truncate_limited_s32_low_bits(np.trunc(wide + np.copysign(0.5, wide)), minimum, maximum)


RULES: dict[str, CastRule] = {
    "round_away_limited_low_bits": round_away_limited_low_bits,
    "round_away_low_bits": round_away_low_bits,
    "truncate_limited_64_low_bits": truncate_limited_64_low_bits,
    "truncate_limited_fours_low_bits": truncate_limited_fours_low_bits,
    "truncate_limited_low_bits": truncate_limited_low_bits,
    "truncate_limited_s32_low_bits": truncate_limited_s32_low_bits,
    "truncate_saturate_nan_maximum": truncate_saturate_nan_maximum,
    "truncate_low_bits": truncate_low_bits,
    "truncate_low_bits_by_halves": truncate_low_bits_by_halves,
    "truncate_low_bits_nan_zero": truncate_low_bits_nan_zero,
}

"""Slot `narrow`: real numbers to codes of a narrower floating-point type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic.narrow_float import FORMATS, Format, encode, round_to_mantissa

# binary32 or binary64 array and the type's short name to unsigned codes.
NarrowRule = Callable[[np.ndarray, str], np.ndarray]


def _finish(x: np.ndarray, rounded: np.ndarray, form: Format, beyond: np.ndarray | int, missing: int) -> np.ndarray:
    """Codes of rounded numbers; `beyond` for magnitudes above the largest one, `missing` for NaN."""
    too_large = np.abs(rounded) > form.maximum
    absent = np.isnan(x)
    inside = ~too_large & ~absent
    magnitude = np.where(inside, encode(np.where(inside, rounded, 0.0), form), np.where(absent, missing, beyond))
    negative = np.signbit(x) & (magnitude < form.sign)
    if not form.signed:
        negative &= magnitude != 0
    codes = np.where(negative, magnitude | form.sign, magnitude)
    return codes.astype(np.uint16 if form.sign > 0x80 else np.uint8)


def _beyond(form: Format) -> int:
    """Infinity where the type has one, else NaN; types without both have their largest number."""
    if form.infinity is not None:
        return form.infinity
    return form.missing if form.missing < form.sign or not form.signed else form.largest


def _wide(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x.astype(np.float32).view(np.uint32)


def even_overflow(x: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest number, ties to even, subnormal numbers included; beyond the largest one infinity, else NaN.

    Compared with the largest number is the value rounded to the type's mantissa. Types with neither (f6, f4) saturate.
    NaN keeps its sign, is quiet and has no payload (in f32 it stays as it is); it is -0 in types without NaN.
    Source: docs/facts/onnxruntime.md 1.3 and the vectors of the specification's Cast.

    >>> x = np.float32([17.0, 19.0, 464.0, 465.0, -np.inf, np.nan])
    >>> [hex(v) for v in even_overflow(x, "f8e4m3fn")]
    ['0x58', '0x5a', '0x7e', '0x7f', '0xff', '0x7f']
    """
    if dtype == "f32":
        return _wide(x)
    form = FORMATS[dtype]
    return _finish(x, round_to_mantissa(x, form), form, _beyond(form), form.missing)


def even_saturate(x: np.ndarray, dtype: str) -> np.ndarray:
    """As `even_overflow`, but numbers beyond the largest one, and infinities, become the largest one.

    >>> [hex(v) for v in even_saturate(np.float32([465.0, -np.inf, np.nan, -0.0]), "f8e4m3fn")]
    ['0x7e', '0xfe', '0x7f', '0x80']
    """
    if dtype == "f32":
        largest = np.finfo(np.float32).max
        return _wide(np.where(np.isnan(x), x, np.clip(x, -largest, largest)))
    form = FORMATS[dtype]
    return _finish(x, round_to_mantissa(x, form), form, form.largest, form.missing)


def even_saturate_nan_ones(x: np.ndarray, dtype: str) -> np.ndarray:
    """As `even_saturate`, but all bits of NaN below its sign are ones.

    Source: docs/facts/onnxruntime.md 1.3, verified by running.

    >>> [hex(v) for v in even_saturate_nan_ones(np.float32([np.nan, np.inf]), "f8e5m2")]
    ['0x7f', '0x7b']
    """
    form = FORMATS[dtype]
    return _finish(x, round_to_mantissa(x, form), form, form.largest, form.missing_ones)


def even_overflow_by_carry(x: np.ndarray, dtype: str) -> np.ndarray:
    """As `even_overflow` with NaN of ones, except where rounding meets the last codes.

    f8e4m3fn: magnitudes in [480, 496), which cut off to NaN's code and are not rounded up, become 448. f8e5m2: those
    in [61440, 65536), which are rounded up into infinity's code, become NaN.
    Source: docs/facts/onnxruntime.md 1.3 (a defect of that version), verified by running.

    >>> [hex(v) for v in even_overflow_by_carry(np.float32([479.0, 480.0, 495.0, 496.0]), "f8e4m3fn")]
    ['0x7f', '0x7e', '0x7e', '0x7f']
    >>> [hex(v) for v in even_overflow_by_carry(np.float32([61439.0, 61440.0, 65536.0]), "f8e5m2")]
    ['0x7b', '0x7f', '0x7c']
    """
    form = FORMATS[dtype]
    magnitude = np.abs(x)
    beyond: np.ndarray | int = _beyond(form) if form.infinity is not None else form.missing_ones
    if dtype == "f8e4m3fn":
        beyond = np.where((magnitude >= 480) & (magnitude < 496), form.largest, beyond)
    elif dtype == "f8e5m2":
        beyond = np.where(magnitude < 65536, form.missing_ones, beyond)
    return _finish(x, round_to_mantissa(x, form), form, beyond, form.missing_ones)


RULES: dict[str, NarrowRule] = {
    "even_overflow": even_overflow,
    "even_overflow_by_carry": even_overflow_by_carry,
    "even_saturate": even_saturate,
    "even_saturate_nan_ones": even_saturate_nan_ones,
}

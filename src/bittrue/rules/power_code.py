"""Slot `power_code`: positive numbers to the codes of scales that are powers of two (8 exponent bits, nothing else)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# (real numbers, rounding, whether to saturate) to codes: 2^(code - 127), 255 is NaN.
PowerCodeRule = Callable[[np.ndarray, str, bool], np.ndarray]
ROUNDINGS = ("up", "down", "nearest")
_NAN = 255


def by_magnitude(x: np.ndarray, rounding: str, saturate: bool) -> np.ndarray:
    """The power of two above, below or nearest to |x|, halfway up.

    Beyond 2^-127 ... 2^127: the nearer end, or NaN without `saturate`; so 0 is the smallest scale, or NaN. NaN stays.
    Source: the table of the specification's Cast.

    >>> x = np.array([1.0, 1.5, 1.4, 0.0, np.inf, np.nan])
    >>> [by_magnitude(x, how, how == "up").tolist() for how in ("up", "nearest")]
    [[127, 128, 128, 0, 254, 255], [127, 128, 127, 255, 255, 255]]
    >>> by_magnitude(np.exp2([-128.0, -127.0]), "nearest", False).tolist()
    [255, 0]
    """
    with np.errstate(invalid="ignore"):
        magnitude = np.abs(np.asarray(x, np.float64))
    # |x| = m 2^e with m in [1/2, 1): a power of two has m = 1/2.
    mantissa, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))
    limit = {"up": 0.5, "down": 1.0, "nearest": 0.75}[rounding]
    above = mantissa >= limit if rounding == "nearest" else mantissa > limit
    code = exponent.astype(np.int64) - 1 + above + 127
    low, high = (code < 0) | (magnitude == 0), (code > _NAN - 1) | np.isinf(magnitude)
    code = np.where(low, 0 if saturate else _NAN, np.where(high, _NAN - 1 if saturate else _NAN, code))
    return np.where(np.isnan(magnitude), _NAN, code).astype(np.uint8)


def of_binary32_between_ends(x: np.ndarray, rounding: str, saturate: bool) -> np.ndarray:
    """The power of two above, below or nearest to f32(x), halfway up; negative numbers are below all.

    Without `saturate` what is below 2^-127 or above 2^127 is NaN before it is rounded. Source: run.

    >>> x = np.array([1.5, -1.5, 1.7e38, 1.8e38, np.nan])
    >>> [of_binary32_between_ends(x, "down", how).tolist() for how in (True, False)]
    [[127, 0, 253, 254, 255], [127, 255, 253, 255, 255]]
    """
    with np.errstate(over="ignore"):
        single = np.asarray(x).astype(np.float32)
    outside = ~((single >= 2.0**-127) & (single <= 2.0**127)) & (not saturate)
    codes = by_magnitude(np.where(single < 0, np.float32(0), single), rounding, saturate)
    return np.where(outside, _NAN, codes).astype(np.uint8)


RULES: dict[str, PowerCodeRule] = {
    "by_magnitude": by_magnitude,
    "of_binary32_between_ends": of_binary32_between_ends,
}

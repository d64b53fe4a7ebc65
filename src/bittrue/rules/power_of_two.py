"""Slot `power_of_two`: real numbers to codes of f8e8m0, whose numbers are 2^(code - 127), code 255 is NaN.

Signs are dropped. What is rounded has a power of two without limits, which is compared with the smallest and the largest
one afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# binary32 or binary64 array to codes.
PowerRule = Callable[[np.ndarray], np.ndarray]

_BIAS, _LARGEST, _MISSING = 127, 254, 255


def _codes(x: np.ndarray, least: float, saturate: bool) -> np.ndarray:
    """The power below |x|, or the one above where |x| / (the power above) is at least `least` (in (0.5, 1])."""
    magnitude = np.abs(np.asarray(x, np.float64))
    fraction, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))
    power = np.where(fraction >= least, exponent, exponent - 1)
    # A power of two is itself: its fraction is 0.5.
    code = np.where(magnitude == 0, -1, power.astype(np.int64) + _BIAS)
    code = np.where(np.isinf(magnitude), _LARGEST + 1, code)
    inside = np.clip(code, 0, _LARGEST) if saturate else np.where((code < 0) | (code > _LARGEST), _MISSING, code)
    return np.where(np.isnan(magnitude), _MISSING, inside).astype(np.uint8)


_JUST_ABOVE_HALF = float(np.nextafter(0.5, 1))
_NEVER = 2.0


def up_saturate(x: np.ndarray) -> np.ndarray:
    """The next power of two upwards; the smallest and the largest one for what lies beyond them.

    Source: the specification's Cast, round_mode `up`, and its vectors.

    >>> up_saturate(np.float32([0.0, 0.124, 2.0, 2.1, np.inf, np.nan])).tolist()
    [0, 124, 128, 129, 254, 255]
    """
    return _codes(x, _JUST_ABOVE_HALF, True)


def up_missing(x: np.ndarray) -> np.ndarray:
    """As `up_saturate`, but NaN for what lies beyond.

    >>> up_missing(np.float32([0.0, 2.1, np.inf])).tolist()
    [255, 129, 255]
    """
    return _codes(x, _JUST_ABOVE_HALF, False)


def down_saturate(x: np.ndarray) -> np.ndarray:
    """The next power of two downwards, within the type's.

    >>> down_saturate(np.float32([0.0, 2.0, 3.9, np.inf])).tolist()
    [0, 128, 128, 254]
    """
    return _codes(x, _NEVER, True)


def down_missing(x: np.ndarray) -> np.ndarray:
    """As `down_saturate`, but NaN for what lies beyond.

    >>> down_missing(np.float32([0.0, 3.9, np.inf])).tolist()
    [255, 128, 255]
    """
    return _codes(x, _NEVER, False)


def nearest_up_saturate(x: np.ndarray) -> np.ndarray:
    """The nearest power of two, ties (1.5 2^e) up, within the type's.

    >>> nearest_up_saturate(np.float32([0.0, 2.9, 3.0, -3.0, np.inf])).tolist()
    [0, 128, 129, 129, 254]
    """
    return _codes(x, 0.75, True)


def nearest_up_missing(x: np.ndarray) -> np.ndarray:
    """As `nearest_up_saturate`, but NaN for what lies beyond.

    >>> nearest_up_missing(np.float32([0.0, 2.9, 3.0, np.inf])).tolist()
    [255, 128, 129, 255]
    """
    return _codes(x, 0.75, False)


RULES: dict[str, PowerRule] = {
    "down_missing": down_missing,
    "down_saturate": down_saturate,
    "nearest_up_missing": nearest_up_missing,
    "nearest_up_saturate": nearest_up_saturate,
    "up_missing": up_missing,
    "up_saturate": up_saturate,
}

"""Slot `levels`: real numbers as quantized values, in binary32 throughout and without limits.

A quantized value is an integer unless a rule says that nothing is rounded; NaN and infinities pass through. A zero
point of 0 is not added, so that zeros keep their sign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats
from ..records import dataclass

_f32 = np.float32


@dataclass(frozen=True, eq=False)
class LevelsRule:
    """`apply(x, scale, zero_point)` takes a binary32 array, a binary64 scale and a zero point, gives binary32.

    `stored`: x holds quantized values, not what they stand for.
    """

    apply: Callable[[np.ndarray, float, float], np.ndarray]
    formula: str
    source: str
    stored: bool = False


def _narrow(value: float) -> np.float32:
    with np.errstate(all="ignore"):
        return _f32(value)


def _factor(scale: float) -> np.float32:
    """f32(1 / scale), the division in binary64."""
    with np.errstate(all="ignore"):
        return _f32(np.float64(1) / np.float64(scale))


def _moved(x: np.ndarray, zero_point: float) -> np.ndarray:
    """The sum in binary32, or x itself, so that zeros keep their sign."""
    with np.errstate(all="ignore"):
        return x + _narrow(zero_point) if zero_point else x


def _divided(x: np.ndarray, scale: float, zero_point: float, nearest: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _moved(x if scale == 1 else nearest(x / _narrow(scale)), zero_point)


def _divide_away(x: np.ndarray, scale: float, zero_point: float) -> np.ndarray:
    """A tie, a negative tie, and a scale of 1, with which nothing is rounded.

    >>> rule = RULES["binary32_divide_away"]
    >>> rule.apply(np.float32([1, -1, 5]), 2.0, 10).tolist(), rule.apply(np.float32([0.5]), 1.0, 10).tolist()
    ([11.0, 9.0, 13.0], [10.5])
    """
    return _divided(x, scale, zero_point, floats.round_away)


def _divide_even(x: np.ndarray, scale: float, zero_point: float) -> np.ndarray:
    """A tie, a negative tie, and a scale of 1, with which nothing is rounded.

    >>> rule = RULES["binary32_divide_even"]
    >>> rule.apply(np.float32([1, -1, 5]), 2.0, 10).tolist(), rule.apply(np.float32([0.5]), 1.0, 10).tolist()
    ([10.0, 10.0, 12.0], [10.5])
    """
    return _divided(x, scale, zero_point, np.rint)


def _multiply_away(x: np.ndarray, scale: float, zero_point: float) -> np.ndarray:
    """A tie, a negative tie, and another one.

    >>> RULES["binary32_multiply_away"].apply(np.float32([1, -1, 5]), 2.0, 10).tolist()
    [11.0, 9.0, 13.0]
    """
    with np.errstate(all="ignore"):
        return _moved(floats.round_away(x * _factor(scale)), zero_point)


def _multiply_even(x: np.ndarray, scale: float, zero_point: float) -> np.ndarray:
    """The same ties.

    >>> RULES["binary32_multiply_even"].apply(np.float32([1, -1, 5]), 2.0, 10).tolist()
    [10.0, 10.0, 12.0]
    """
    with np.errstate(all="ignore"):
        return _moved(np.rint(x * _factor(scale)), zero_point)


def _whole_away(x: np.ndarray, scale: float, zero_point: float) -> np.ndarray:
    """A tie and a negative tie.

    >>> RULES["whole_away"].apply(np.float32([0.5, -0.5]), 0.1, 10).tolist()
    [1.0, -1.0]
    """
    return floats.round_away(x)


RULES: dict[str, LevelsRule] = {
    "binary32_divide_away": LevelsRule(
        _divide_away,
        "f32(round_away(f32(x / f32(scale))) + f32(zero point)); nothing is rounded where the scale is 1",
        "docs/facts/snps_caffe.md 0 (QUANT), verified by replaying its vectors",
    ),
    "binary32_divide_even": LevelsRule(
        _divide_even,
        "f32(round_even(f32(x / f32(scale))) + f32(zero point)); nothing is rounded where the scale is 1",
        "docs/facts/snps_caffe.md 9 (the document's table), read",
    ),
    "binary32_multiply_away": LevelsRule(
        _multiply_away,
        "f32(round_away(f32(x * f32(1 / scale))) + f32(zero point))",
        "docs/facts/snps_caffe.md 7, verified by replaying its vectors",
    ),
    "binary32_multiply_even": LevelsRule(
        _multiply_even,
        "f32(round_even(f32(x * f32(1 / scale))) + f32(zero point))",
        "docs/facts/snps_caffe.md 7, verified by replaying its vectors",
    ),
    "whole_away": LevelsRule(
        _whole_away,
        "round_away(x) of quantized values, whatever scale and zero point are",
        "docs/facts/snps_caffe.md 8 (ResizeBilinear), verified by replaying its vectors",
        stored=True,
    ),
}


def real(x: np.ndarray, scale: float, zero_point: float) -> np.ndarray:
    """f32(f32(x - f32(zero point)) * f32(scale)) of quantized values in binary32.

    Source: docs/facts/snps_caffe.md 0 (DEQ), verified by replaying its vectors.

    >>> real(np.float32([3, 5]), 0.1, 1).tolist()
    [0.20000000298023224, 0.4000000059604645]
    """
    with np.errstate(all="ignore"):
        return (x - _narrow(zero_point)) * _narrow(scale)

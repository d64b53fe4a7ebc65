"""Slot `window_average`: the sum of a window's elements less their zero point, averaged in another scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import floats
from ..records import dataclass

Prepared = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class WindowAverageRule:
    """`prepare(input scale, output scale, taps)` gives arrays and raises ValueError for scales that do not suit;
    `apply(sums, counts, arrays, zero_point, low, high)` the quantized values: `sums` of q - zero point over the
    elements inside the image, s64, `counts` how many these are, both of shapes that broadcast.
    """

    prepare: Callable[[float, float, int], Prepared]
    apply: Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray], int, int, int], np.ndarray]
    formula: str
    source: str


def _prepare_q24(input_scale: float, output_scale: float, taps: int) -> Prepared:
    """The multiplier's 24 bits, and what it is divided by: f32(input / f32(output * taps)) = multiplier * 2^-right."""
    with np.errstate(all="ignore"):
        real = np.float32(input_scale) / (np.float32(output_scale) * np.float32(taps))
    if not (np.isfinite(real) and real >= np.finfo(np.float32).tiny):
        raise ValueError(f"input scale / (output scale * {taps}) is {float(real)!r}")
    mantissa, exponent = np.frexp(real)
    multiplier, right = int(np.ldexp(mantissa, 24)), 24 - int(exponent)
    if not 1 <= right <= 62:
        raise ValueError(f"input scale / (output scale * {taps}) is {float(real)!r}")
    return {"multiplier": np.asarray(multiplier, np.int64), "right_shift": np.asarray(right, np.int64)}


def _apply_q24(
    sums: np.ndarray, counts: np.ndarray, arrays: Mapping[str, np.ndarray], zero_point: int, low: int, high: int
) -> np.ndarray:
    """The sign is put back after rounding. A tie, a negative tie, and a saturation follow.

    >>> rule = RULES["q24_all_taps_away"]
    >>> half = rule.prepare(1.0, 1.0, 2)
    >>> rule.apply(np.int64([3, -3, 999]), np.int64([2, 2, 2]), half, 10, 0, 255).tolist()
    [12, 8, 255]
    """
    right = arrays["right_shift"]
    product = np.abs(sums) * arrays["multiplier"] + np.left_shift(np.int64(1), right - 1)
    return np.clip(np.sign(sums) * (product >> right), low - zero_point, high - zero_point) + zero_point


def _prepare_factor(input_scale: float, output_scale: float, taps: int) -> Prepared:
    with np.errstate(all="ignore"):
        factor = np.float32(input_scale) / np.float32(output_scale)
    if not np.isfinite(factor):
        raise ValueError(f"input scale / output scale is {float(factor)!r}")
    return {"factor": np.asarray(factor, np.float32)}


def _apply_fused(
    sums: np.ndarray, counts: np.ndarray, arrays: Mapping[str, np.ndarray], zero_point: int, low: int, high: int
) -> np.ndarray:
    """The zero point is added before ties go to even: 2.5 becomes 2, with zero point 1 it becomes 4.

    >>> rule = RULES["binary32_fused_inside_even"]
    >>> half = rule.prepare(1.0, 1.0, 9)
    >>> [rule.apply(np.int64([5, -5, 999]), np.int64([2, 2, 2]), half, z, -128, 127).tolist() for z in (0, 1)]
    [[2, -2, 127], [4, -2, 127]]
    """
    with np.errstate(all="ignore"):
        # No window of the runtime misses the image; one that did would have the sum 0.
        factor = arrays["factor"] / np.maximum(counts, 1).astype(np.float32)
        real = floats.fused_multiply_add(sums.astype(np.float32), factor, np.float32(zero_point))
    return np.clip(floats.truncate_to_s32(np.rint(real)), low, high)


RULES: dict[str, WindowAverageRule] = {
    "q24_all_taps_away": WindowAverageRule(
        _prepare_q24,
        _apply_q24,
        "clamp(round_away(sum * m / 2^r) + zero point), m / 2^r = f32(input scale / f32(output scale * taps)) with m "
        "of 24 bits; padding counts as zeros",
        "docs/facts/caffe2.md 1.2, verified by running",
    ),
    "binary32_fused_inside_even": WindowAverageRule(
        _prepare_factor,
        _apply_fused,
        "clamp(round_even(fma(f32(sum), f32(f32(input scale / output scale) / count), zero point))), count of the "
        "elements inside the image; what does not fit 32 bits becomes -2^31",
        "docs/facts/caffe2.md 2 (Int8AveragePool), verified by running",
    ),
}

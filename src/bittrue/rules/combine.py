"""Slot `combine`: what a stored integer of one input becomes in an output with parameters of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats


def copy(
    q: np.ndarray, scale: float, zero_point: int, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """q: the parameters are not looked at.

    Domain: every integer. There is no rounding, so no ties, and nothing saturates.
    Source: facts/litert.md 2.7 (CONCATENATION), verified by running.

    >>> copy(np.uint8([0, 5, 255]), 0.5, 0, 1.0, 10, 0, 255).tolist()
    [0, 5, 255]
    """
    return q


def binary32_affine_away(
    q: np.ndarray, scale: float, zero_point: int, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """clamp(to_s32(round_away(f32(f32(q * c) + b))) + output_zero_point), c = f32(scale * f32(1 / output_scale)),
    b = f32(-zero_point * c); equal parameters copy.

    Ties away from zero. to_s32 is the x86 conversion: values outside 32 bits become -2^31, so that they are stored as
    `low`, far too large ones included. Scales may be 0 (no parameters). Domain: 8-bit integers.

    Returns:
        int64 array. Source: facts/litert.md 2.7 (CONCATENATION of uint8), verified by running.

    >>> def away(q, zero_point, output_zero_point, scale=0.5):
    ...     return int(binary32_affine_away(np.uint8(q), scale, zero_point, 1.0, output_zero_point, 0, 255))
    >>> away(5, 0, 10), away(5, 10, 10), away(255, 0, 200)  # 2.5 -> 3, -2.5 -> -3, saturated
    (13, 7, 255)
    >>> away(255, 0, 0, scale=1e9)
    0
    """
    q = np.asarray(q)
    first, second = np.float32(scale), np.float32(output_scale)
    if first == second and zero_point == output_zero_point:
        return q.astype(np.int64)
    with np.errstate(all="ignore"):
        factor = first * (np.float32(1) / second)
        bias = np.float32(-zero_point) * factor
        moved = floats.truncate_to_s32(floats.round_away(q.astype(np.float32) * factor + bias))
    return np.clip(moved + output_zero_point, low, high)


RULES: dict[str, Callable[[np.ndarray, float, int, float, int, int, int], np.ndarray]] = {
    "copy": copy,
    "binary32_affine_away": binary32_affine_away,
}

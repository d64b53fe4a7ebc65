"""Slot `combine`: what a quantized value of one input becomes in an output with parameters of its own."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ..arithmetic import floats, steps
from .affine_sum import check_scales
from .to_integer import clamp_even, clamp_of_s64


def copy(
    q: np.ndarray, scale: float, zero_point: int, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """q: the parameters are not looked at.

    Domain: every integer. There is no rounding, so no ties, and nothing saturates.
    Source: docs/facts/litert.md 2.7 (CONCATENATION), verified by running.

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
        int64 array. Source: docs/facts/litert.md 2.7 (CONCATENATION of uint8), verified by running.

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


def binary32_divide_even(
    q: np.ndarray, scale: float, zero_point: int, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """clamp(round_even(f32(f32(scale * (q - zero_point)) / output_scale)) + output_zero_point); equal parameters copy.

    Ties to even. Infinities saturate, NaN gives `low`. Domain: 8-bit integers. Returns int64.
    Source: docs/facts/onnxruntime.md 3.3, verified by running.

    >>> binary32_divide_even(np.int8([5, -5, 127]), 0.5, 0, 1.0, 0, -128, 127).tolist()  # 2.5, -2.5
    [2, -2, 64]
    """
    q = np.asarray(q, np.int64)
    first, second = np.float32(scale), np.float32(output_scale)
    if first == second and zero_point == output_zero_point:
        return q
    with np.errstate(all="ignore"):
        real = first * (q - zero_point).astype(np.float32)
        return clamp_even(real / second, np.asarray(output_zero_point), low, high)


def binary32_multiply_even(
    q: np.ndarray, scale: float, zero_point: int, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """clamp(to_s64(round_even(f32((q - zero_point) * f32(scale / output_scale)))) + output_zero_point).

    Ties to even. What does not fit 64 bits becomes -2^63, so `low`. Domain: 8-bit integers. Returns int64.
    Source: docs/facts/caffe2.md 2 (Int8Concat), verified by running.

    >>> binary32_multiply_even(np.int8([5, -5, 127]), 0.5, 0, 1.0, 0, -128, 127).tolist()  # 2.5, -2.5
    [2, -2, 64]
    >>> binary32_multiply_even(np.int8([5]), 1e30, 0, 1e-5, 0, -128, 127).tolist()
    [-128]
    """
    with np.errstate(all="ignore"):
        factor = np.float32(scale) / np.float32(output_scale)
        real = np.rint((np.asarray(q, np.int64) - zero_point).astype(np.float32) * factor)
    return clamp_of_s64(real, output_zero_point, low, high)


def exact_even(
    q: np.ndarray, scale: float, zero_point: int, output_scale: float, output_zero_point: int, low: int, high: int
) -> np.ndarray:
    """clamp(round_even(scale * (q - zero_point) / output_scale) + output_zero_point) in real numbers.

    Domain: 8-bit integers; scales finite and above 0, else ValueError. Returns int64. Source: definition.

    >>> exact_even(np.int8([5, -5, 127]), 0.5, 0, 1.0, 0, -128, 127).tolist()  # 2.5, -2.5
    [2, -2, 64]
    """
    first, second = float(np.float32(scale)), float(np.float32(output_scale))
    check_scales(first, second)
    moved = steps.apply_steps(
        np.asarray(q, np.int64) - zero_point, steps.even_steps(Fraction(first) / Fraction(second))
    )
    return np.clip(moved + output_zero_point, low, high)


RULES: dict[str, Callable[[np.ndarray, float, int, float, int, int, int], np.ndarray]] = {
    "copy": copy,
    "binary32_affine_away": binary32_affine_away,
    "binary32_divide_even": binary32_divide_even,
    "binary32_multiply_even": binary32_multiply_even,
    "exact_even": exact_even,
}

"""Slot `affine_product`: the product of two quantized numbers of one type as a quantized number.

Rules are of the kind of slot `affine_sum`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arithmetic import floats, steps
from .affine_sum import AffineRule, Pair, Prepared, check_scales, to_type


def _zero_points(first: Pair, second: Pair, output: Pair) -> Prepared:
    return {"zero_points": np.array([first[1], second[1], output[1]], np.int64)}


def _product(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """(a - za)(b - zb): at most 2^16 for 8-bit numbers."""
    zero_points = prepared["zero_points"]
    return (a.astype(np.int64) - zero_points[0]) * (b.astype(np.int64) - zero_points[1])


def _prepare_binary32(first: Pair, second: Pair, output: Pair) -> Prepared:
    with np.errstate(all="ignore"):
        factor = np.float32(first[0]) * np.float32(second[0]) / np.float32(output[0])
    return {"factor": np.asarray(factor), **_zero_points(first, second, output)}


def _apply_binary32(
    a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int
) -> np.ndarray:
    """The zero point is added before ties go to even: 2.5 becomes 2, with zero point 1 it becomes 4.

    >>> rule = RULES["binary32_zero_point_even"]
    >>> for z in (0, 1):
    ...     rule.apply(np.int8([5, -5, 127]), np.int8([1]), rule.prepare((1, 0), (1, 0), (2, z)), -128, 127).tolist()
    [2, -2, 64]
    [4, -2, 64]
    """
    with np.errstate(all="ignore"):
        moved = _product(a, b, prepared).astype(np.float32) * prepared["factor"]
        return to_type(moved + prepared["zero_points"][2].astype(np.float32), low, high)


def _apply_fused(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Product and zero point have one rounding; conversions limit: what is beyond 32 bits saturates, NaN becomes 0.

    >>> rule = RULES["binary32_fused_zero_point_even"]
    >>> rule.apply(np.int8([5, -5, 127]), np.int8([1]), rule.prepare((1, 0), (1, 0), (2, 1)), -128, 127).tolist()
    [4, -2, 64]
    >>> rule.apply(np.int8([1, -1]), np.int8([1]), rule.prepare((1e20, 0), (1, 0), (1, 0)), -128, 127).tolist()
    [127, -128]
    """
    with np.errstate(all="ignore"):
        real = floats.fused_multiply_add(
            _product(a, b, prepared).astype(np.float32), prepared["factor"], prepared["zero_points"][2]
        )
        return np.clip(floats.saturate_to_s32(np.rint(real)), low, high)


def _prepare_exact(first: Pair, second: Pair, output: Pair) -> Prepared:
    from fractions import Fraction

    scales = [float(np.float32(pair[0])) for pair in (first, second, output)]
    check_scales(*scales)
    real = Fraction(scales[0]) * Fraction(scales[1]) / Fraction(scales[2])
    return {"steps": steps.even_steps(real), **_zero_points(first, second, output)}


def _apply_exact(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """The zero point is added after ties have gone to even.

    >>> rule = RULES["exact_even"]
    >>> rule.apply(np.int8([5, -5, 127]), np.int8([1]), rule.prepare((1, 0), (1, 0), (2, 1)), -128, 127).tolist()
    [3, -1, 65]
    """
    rounded = steps.apply_steps(_product(a, b, prepared), prepared["steps"])
    return np.clip(rounded + prepared["zero_points"][2], low, high)


RULES: dict[str, AffineRule] = {
    "binary32_zero_point_even": AffineRule(
        _prepare_binary32,
        _apply_binary32,
        "clamp(round_even(f32(f32(f32((a - za)(b - zb)) * f32(f32(sa * sb) / s)) + f32(z)))); what does not fit 32 "
        "bits becomes -2^31",
        "docs/facts/onnxruntime.md 3.6, verified by running",
    ),
    "binary32_fused_zero_point_even": AffineRule(
        _prepare_binary32,
        _apply_fused,
        "clamp(round_even(fma((a - za)(b - zb), f32(f32(sa * sb) / s), z))); what does not fit 32 bits is limited to "
        "them, NaN becomes 0",
        "docs/facts/onnxruntime.md 3.7 (aarch64), verified by running",
    ),
    "exact_even": AffineRule(
        _prepare_exact,
        _apply_exact,
        "clamp(round_even((a - za)(b - zb) * sa * sb / s) + z) in real numbers",
        "definition",
    ),
}

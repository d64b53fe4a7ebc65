"""Slot `affine_sum`: the sum of two quantized numbers of one type as a quantized number, from their quantized values.

Real numbers are scale * (q - zero point).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import floats, steps
from ..records import dataclass

Prepared = dict[str, np.ndarray]
Pair = tuple[float, int]


@dataclass(frozen=True, eq=False)
class AffineRule:
    """`prepare(first, second, output)` takes a binary32 scale and a zero point of each, raises ValueError for scales
    without a meaning; `apply(a, b, arrays, low, high)` takes quantized values that broadcast and gives int64.
    """

    prepare: Callable[[Pair, Pair, Pair], Prepared]
    apply: Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray], int, int], np.ndarray]
    formula: str
    source: str


def check_scales(*scales: float) -> None:
    """Scales of real arithmetic are finite and above 0."""
    for scale in scales:
        if not 0 < scale < np.inf:
            raise ValueError(f"scale {float(scale)!r} has no meaning, it must be finite and above 0")


def to_type(real: np.ndarray, low: int, high: int) -> np.ndarray:
    """clamp(to_s32(round_even(real))): outside of 32 bits, NaN included, the conversion gives -2^31, so `low`."""
    return np.clip(floats.truncate_to_s32(np.rint(real)), low, high)


def _prepare_fused(first: Pair, second: Pair, output: Pair) -> Prepared:
    f32 = np.float32
    with np.errstate(all="ignore"):
        one, two = f32(first[0]) / f32(output[0]), f32(second[0]) / f32(output[0])
        moved = floats.fused_multiply_add(one, f32(first[1]), two * f32(second[1]))
        constant = f32(output[1]) - moved
    return {"first_factor": np.asarray(one), "second_factor": np.asarray(two), "constant": np.asarray(constant)}


def _apply_fused(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Two roundings in binary32, then ties to even. A tie, a negative tie, a saturation, a number beyond 32 bits.

    >>> rule = RULES["binary32_fused_even"]
    >>> halves = rule.prepare((0.5, 0), (0.5, 0), (1.0, 0))
    >>> rule.apply(np.int8([3, -3, 127]), np.int8([0, 0, 127]), halves, -128, 127).tolist()
    [2, -2, 127]
    >>> rule.apply(np.int8([1]), np.int8([0]), rule.prepare((1e10, 0), (1.0, 0), (1.0, 0)), -128, 127).tolist()
    [-128]
    """
    with np.errstate(all="ignore"):
        inner = floats.fused_multiply_add(b.astype(np.float32), prepared["second_factor"], prepared["constant"])
        return to_type(floats.fused_multiply_add(a.astype(np.float32), prepared["first_factor"], inner), low, high)


def _prepare_scales(first: Pair, second: Pair, output: Pair) -> Prepared:
    return {
        "scales": np.array([first[0], second[0], output[0]], np.float32),
        "zero_points": np.array([first[1], second[1], output[1]], np.int64),
    }


def _apply_reciprocal(
    a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int
) -> np.ndarray:
    """Four roundings in binary32, then ties to even, the zero point included: a half, with it 1.5, a saturation.

    >>> rule = RULES["binary32_fused_reciprocal_even"]
    >>> [rule.apply(np.uint8([1, 255]), np.uint8([0, 255]), rule.prepare((0.5, 0), (0.5, 0), (1.0, z)), 0, 255).tolist()
    ...  for z in (0, 1)]
    [[0, 255], [2, 255]]
    """
    fused, (one, two, output) = floats.fused_multiply_add, prepared["scales"]
    zero_points = prepared["zero_points"].astype(np.float32)
    with np.errstate(all="ignore"):
        constant = fused(-zero_points[0], one, -(zero_points[1] * two))
        total = fused(b.astype(np.float32), two, fused(a.astype(np.float32), one, constant))
        return to_type(fused(total, np.float32(1) / output, zero_points[2]), low, high)


def _apply_quotient(
    a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int
) -> np.ndarray:
    """Four roundings in binary32, then ties to even, the zero point included: a half, with it 1.5, a saturation.

    >>> rule = RULES["binary32_fused_quotient_even"]
    >>> [rule.apply(np.uint8([1, 255]), np.uint8([0, 255]), rule.prepare((0.5, 0), (0.5, 0), (1.0, z)), 0, 255).tolist()
    ...  for z in (0, 1)]
    [[0, 255], [2, 255]]
    """
    one, two, output = prepared["scales"]
    first, second, moved = prepared["zero_points"]
    with np.errstate(all="ignore"):
        start = (a.astype(np.int64) - first).astype(np.float32) * one
        total = floats.fused_multiply_add((b.astype(np.int64) - second).astype(np.float32), two, start)
        real = np.rint(moved.astype(np.float32) + total / output)
    # Limits are applied to real numbers; NaN becomes the upper one.
    limited = np.where(real < np.float32(high), real, np.float32(high))
    return np.where(limited > np.float32(low), limited, np.float32(low)).astype(np.int64)


# Ratios of scales that fixed point takes, the upper end excluded, and the shifts that it knows.
_RATIOS, _SHIFTS = (2.0**-14, 256.0), (13, 31)


def _prepare_22_bits(first: Pair, second: Pair, output: Pair) -> Prepared:
    """The greater ratio becomes a number of 22 bits; a shift of 0 stands for scales that are left to binary32."""
    f32 = np.float32
    multipliers, shift = np.zeros(2), 0
    with np.errstate(all="ignore"):
        ratios = np.array([first[0], second[0]], f32) / f32(output[0])
        # A NaN passes as the second one, and counts as 0.
        if not np.any((ratios < _RATIOS[0]) | (ratios >= _RATIOS[1])) and ratios[0] == ratios[0]:
            shift = 22 - int(np.frexp(np.fmax(*ratios))[1])
            multipliers = np.rint(np.nan_to_num(ratios * f32(2.0**shift)))
    known = _SHIFTS[0] <= shift <= _SHIFTS[1] and multipliers.max() < 2**22
    return {
        **_prepare_scales(first, second, output),
        "multipliers": multipliers.astype(np.int64),
        "shift": np.asarray(shift if known else 0, np.int64),
    }


def _apply_22_bits(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Fixed point, ties away from zero: a half, minus a half. Scales that are too far apart: binary32, ties to even.

    >>> rule = RULES["22_bits_away"]
    >>> rule.apply(np.int8([1, -1]), np.int8([0, 0]), rule.prepare((0.5, 0), (0.5, 0), (1.0, 0)), -128, 127).tolist()
    [1, -1]
    >>> apart = rule.prepare((0.5, 0), (2.0**-20, 0), (1.0, 0))
    >>> rule.apply(np.int8([1, 3]), np.int8([0, 0]), apart, -128, 127).tolist()
    [0, 2]
    """
    first, second, moved = prepared["zero_points"]
    one, two = a.astype(np.int64) - first, b.astype(np.int64) - second
    if shift := int(prepared["shift"]):
        total = one * prepared["multipliers"][0] + two * prepared["multipliers"][1]
        rounded = (total - (total < 0) + (1 << (shift - 1))) >> shift
        return np.clip(rounded + moved, low, high)
    f32, scales = np.float32, prepared["scales"]
    with np.errstate(all="ignore"):
        total = floats.fused_multiply_add(one.astype(f32), scales[0], two.astype(f32) * scales[1]) / scales[2]
        limited = np.minimum(np.maximum(total, f32(low - moved)), f32(high - moved))
        return np.nan_to_num(np.rint(limited + f32(moved))).astype(np.int64)


def _prepare_exact(first: Pair, second: Pair, output: Pair) -> Prepared:
    check_scales(first[0], second[0], output[0])
    return _prepare_scales(first, second, output)


def _apply_exact(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """One rounding, ties to even. A tie, a negative tie and a saturation.

    >>> rule = RULES["exact_even"]
    >>> halves = rule.prepare((0.5, 0), (0.5, 0), (1.0, 0))
    >>> rule.apply(np.int8([3, -3, 127]), np.int8([0, 0, 127]), halves, -128, 127).tolist()
    [2, -2, 127]
    """
    scales, zero_points = prepared["scales"].astype(np.float64), prepared["zero_points"]
    # 24 bits times 9 bits: exact. The sum of two of them is exact together with what it loses.
    one = (a.astype(np.int64) - zero_points[0]) * scales[0]
    two = (b.astype(np.int64) - zero_points[1]) * scales[1]
    total = one + two
    back = total - one
    lost = (one - (total - back)) + (two - back)
    return np.clip(steps.nearest_even_quotient(total, lost, float(scales[2])) + zero_points[2], low, high)


RULES: dict[str, AffineRule] = {
    "binary32_fused_even": AffineRule(
        _prepare_fused,
        _apply_fused,
        "clamp(round_even(fma(a, r, fma(b, t, c)))), r and t = f32(scale / output scale), c = f32(output zero point - "
        "fma(r, first zero point, f32(t * second zero point))); what does not fit 32 bits becomes -2^31",
        "docs/facts/onnxruntime.md 3.1 (machines with fused multiply-add), verified by running",
    ),
    "binary32_fused_reciprocal_even": AffineRule(
        _prepare_scales,
        _apply_reciprocal,
        "clamp(round_even(fma(fma(b, t, fma(a, s, c)), f32(1 / output scale), output zero point))), s and t the "
        "scales, c = fma(-first zero point, s, -f32(second zero point * t)); what does not fit 32 bits becomes -2^31",
        "docs/facts/caffe2.md 2.2 (blocks of 32), verified by running",
    ),
    "binary32_fused_quotient_even": AffineRule(
        _prepare_scales,
        _apply_quotient,
        "clamp(round_even(f32(output zero point + f32(fma(b - second zero point, t, f32((a - first zero point) * s)) / "
        "output scale)))), s and t the scales",
        "docs/facts/caffe2.md 2.2 (the rest), verified by running",
    ),
    "22_bits_away": AffineRule(
        _prepare_22_bits,
        _apply_22_bits,
        "clamp(round_away((m (a - first zero point) + n (b - second zero point)) / 2^k) + output zero point), m and n "
        "= round_even(2^k r), r = f32(scale / output scale), 2^21 <= 2^k times the greater r < 2^22; where that is not "
        "below 2^22 rounded, an r is below 2^-14 or not below 256, or k is not 13 .. 31: round_even(f32(clamp("
        "f32(fma(a - first zero point, s, f32((b - second zero point) t)) / output scale)) + output zero point)), s "
        "and t the scales, NaN becomes 0",
        "docs/facts/onnxruntime.md 3.7 (aarch64), verified by running",
    ),
    "exact_even": AffineRule(
        _prepare_exact,
        _apply_exact,
        "clamp(round_even((first scale * (a - first zero point) + second scale * (b - second zero point)) / output "
        "scale) + output zero point) in real numbers",
        "definition",
    ),
}

"""Slot `affine_average`: the average of quantized numbers over a window as a quantized number.

Elements are looked up first, then added in row-major order of the window, in the type of the looked-up values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from ..arithmetic import steps
from ..records import dataclass
from .affine_sum import Pair, Prepared, check_scales, to_type


@dataclass(frozen=True, eq=False)
class AffineAverageRule:
    """`prepare(input, output, low, high)` takes a binary32 scale and a zero point of each, and the ends of the stored
    type; its array `values` holds a summand per quantized value, `output_zero_point` and more are for the rule. It
    raises ValueError for scales without a meaning. `finish(total, count, arrays, low, high)` gives int64; counts
    broadcast.
    """

    prepare: Callable[[Pair, Pair, int, int], Prepared]
    finish: Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray], int, int], np.ndarray]
    formula: str
    source: str


def _prepare_binary32(source: Pair, output: Pair, low: int, high: int) -> Prepared:
    quantized = np.arange(low, high + 1) - source[1]
    with np.errstate(all="ignore"):
        values = np.float32(source[0]) * quantized.astype(np.float32)
    return {
        "values": values,
        "output_scale": np.asarray(output[0], np.float32),
        "output_zero_point": np.asarray(output[1], np.int64),
    }


def _finish_binary32(
    total: np.ndarray, count: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int
) -> np.ndarray:
    """The zero point is added before ties go to even: 2.5 becomes 2, with zero point 1 it becomes 4.

    >>> rule, total = RULES["binary32_in_order_even"], np.float32([5, -5, 1000])
    >>> for z in (0, 1):
    ...     rule.finish(total, np.int64(2), rule.prepare((1, 0), (1, z), -128, 127), -128, 127).tolist()
    [2, -2, 127]
    [4, -2, 127]
    """
    with np.errstate(all="ignore"):
        moved = total / count.astype(np.float32) / prepared["output_scale"]
        return to_type(moved + prepared["output_zero_point"].astype(np.float32), low, high)


def _prepare_exact(source: Pair, output: Pair, low: int, high: int) -> Prepared:
    check_scales(source[0], output[0])
    return {
        "values": np.arange(low, high + 1, dtype=np.int64) - source[1],
        "scales": np.array([source[0], output[0]], np.float32),
        "output_zero_point": np.asarray(output[1], np.int64),
    }


def _finish_exact(
    total: np.ndarray, count: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int
) -> np.ndarray:
    """The zero point is added after ties have gone to even.

    >>> rule, total = RULES["exact_even"], np.int64([5, -5, 1000])
    >>> rule.finish(total, np.int64(2), rule.prepare((1, 0), (1, 1), -128, 127), -128, 127).tolist()
    [3, -1, 127]
    """
    real = Fraction(float(prepared["scales"][0])) / Fraction(float(prepared["scales"][1]))
    counts = np.broadcast_to(count, total.shape)
    rounded = np.zeros(total.shape, np.int64)
    for one in np.unique(count):
        chosen = counts == one
        rounded[chosen] = steps.apply_steps(total[chosen], steps.even_steps(real / int(one)))
    return np.clip(rounded + prepared["output_zero_point"], low, high)


def _prepare_quantized(source: Pair, output: Pair, low: int, high: int) -> Prepared:
    return {"values": np.arange(low, high + 1, dtype=np.int64)}


def _finish_quantized(
    total: np.ndarray, count: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int
) -> np.ndarray:
    """A tie, a negative tie; the sum of integers is exact before it becomes binary32.

    >>> rule = RULES["codes_binary32_even"]
    >>> rule.finish(np.int64([5, -5, 254]), np.int64(2), rule.prepare((9, 9), (1, 5), -128, 127), -128, 127).tolist()
    [2, -2, 127]
    """
    with np.errstate(all="ignore"):
        return to_type(total.astype(np.float32) / count.astype(np.float32), low, high)


RULES: dict[str, AffineAverageRule] = {
    "binary32_in_order_even": AffineAverageRule(
        _prepare_binary32,
        _finish_binary32,
        "clamp(round_even(f32(f32(f32(total / count) / output scale) + output zero point))), total in binary32 of "
        "f32(scale * (q - zero point)); what does not fit 32 bits becomes -2^31",
        "docs/facts/onnxruntime.md 3.2, verified by running",
    ),
    "codes_binary32_even": AffineAverageRule(
        _prepare_quantized,
        _finish_quantized,
        "clamp(round_even(f32(f32(total) / f32(count)))), total the exact sum of the quantized values, whose scales "
        "and "
        "zero points are not looked at",
        "docs/facts/mxnet.md 1, verified by running",
    ),
    "exact_even": AffineAverageRule(
        _prepare_exact,
        _finish_exact,
        "clamp(round_even(scale * sum of (q - zero point) / (count * output scale)) + output zero point) in real "
        "numbers",
        "definition",
    ),
}

"""Slot `normalize`: rows divided by their Euclidean length, to 1/128 for integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, transcendental
from . import rescale, sum_of_products

NormalizeRule = Callable[[np.ndarray], np.ndarray]

_EIGHTS = sum_of_products.RULES["binary32_eights_then_fused"]
# Lengths below this do not scale a row up, so that a row of zeros stays zero.
_EPSILON = np.float32(1e-6)


def _inverse_length(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # The sum of squares is 32 bits wide; one that wrapped below zero counts like 0 and 1 do.
    squares = fixed_point.wrap_s32((rows * rows).sum(axis=-1, keepdims=True))
    return transcendental.inverse_square_root(np.maximum(squares, 0))


def q31_exponent_plus_7_two_step_up_away(rows: np.ndarray) -> np.ndarray:
    """M, e = 1 / sqrt(sum of squares); then x * M * 2^(e + 7) in two steps, the left part of e + 7 first.

    Ties: up in the doubling high product, then away from zero. Domain: int64 rows of centred values along the last
    axis. Not clamped. Source: docs/facts/litert.md 2.3 (L2_NORMALIZATION int8), verified by running.

    >>> q31_exponent_plus_7_two_step_up_away(np.array([[3, 4], [-1, 0], [18, 9]])).tolist()
    [[77, 102], [-128, 0], [114, 57]]
    """
    multiplier, exponent = _inverse_length(rows)
    prepared = {"multiplier": multiplier, "exponent": exponent + 7}
    return rescale.RULES["q31_two_step_up_away"].apply(rows, prepared)


def q31_exponent_plus_7_one_step_up(rows: np.ndarray) -> np.ndarray:
    """M, e = 1 / sqrt(sum of squares); then x * M * 2^(e + 7), one rounding.

    Ties: up. Domain: int64 rows of centred values along the last axis. Not clamped. Source:
    docs/facts/single_rounding.md 1.2, verified by running.

    >>> q31_exponent_plus_7_one_step_up(np.array([[3, 4], [-1, 0], [18, 9]])).tolist()
    [[77, 102], [-128, 0], [114, 57]]
    """
    multiplier, exponent = _inverse_length(rows)
    return rescale.RULES["q31_one_step_up"].apply(rows, {"multiplier": multiplier, "exponent": exponent + 7})


def q31_times_128_two_step_up_away(rows: np.ndarray) -> np.ndarray:
    """M, e = 1 / sqrt(sum of squares); then (128 * x) * M * 2^e in two steps.

    Ties: up in the doubling high product, then away from zero. Domain: int64 rows of centred values along the last
    axis. Not clamped. Source: docs/facts/litert.md 2.3 (L2_NORMALIZATION uint8), verified by running.

    >>> q31_times_128_two_step_up_away(np.array([[3, 4], [-1, 0], [18, 9]])).tolist()
    [[77, 102], [-128, 0], [115, 57]]
    """
    multiplier, exponent = _inverse_length(rows)
    return rescale.RULES["q31_two_step_up_away"].apply(rows * 128, {"multiplier": multiplier, "exponent": exponent})


def binary32_divide(rows: np.ndarray) -> np.ndarray:
    """f32(x / max(f32(sqrt(sum of f32 squares, left to right)), 1e-6)).

    Every operation rounds to binary32, ties to even. Source: kernels/l2normalization.h, verified by running.

    >>> binary32_divide(np.float32([[3, 4], [0, 0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    with np.errstate(all="ignore"):
        length = np.sqrt(np.add.accumulate(rows * rows, axis=-1)[..., -1:])
        return rows / np.where(length < _EPSILON, _EPSILON, length)


def binary32_divide_by_eights_then_fused(rows: np.ndarray) -> np.ndarray:
    """As binary32_divide with squares that are rounded where they fill whole eights, and joined with their sum behind.

    Source: the runtime's reference kernel for aarch64, its machine code; verified by running.

    >>> row = np.float32([[17 / 7, 17 / 3, 1.5]])
    >>> [RULES[f"binary32_divide{end}"](row)[0, 0].tolist() for end in ("", "_by_eights_then_fused")]
    [0.3827533721923828, 0.3827534019947052]
    """
    with np.errstate(all="ignore"):
        length = np.sqrt(sum_of_products.add_up(_EIGHTS, rows, rows))[..., None]
        return rows / np.where(length < _EPSILON, _EPSILON, length)


RULES: dict[str, NormalizeRule] = {
    "q31_exponent_plus_7_two_step_up_away": q31_exponent_plus_7_two_step_up_away,
    "q31_exponent_plus_7_one_step_up": q31_exponent_plus_7_one_step_up,
    "q31_times_128_two_step_up_away": q31_times_128_two_step_up_away,
    "binary32_divide": binary32_divide,
    "binary32_divide_by_eights_then_fused": binary32_divide_by_eights_then_fused,
}

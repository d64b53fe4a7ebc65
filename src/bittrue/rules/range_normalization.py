"""Slot `range_normalization`: numbers with a range, normalized by given statistics per channel, at another range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..records import dataclass
from .range_levels import HALF, check_factors, narrowed


@dataclass(frozen=True, eq=False)
class RangeNormalizationRule:
    """`prepare(gamma, beta, mean, variance, epsilon, range, output range)` takes binary32 arrays with an element per
    channel and gives a factor and a summand for each; ValueError where they are not finite. `apply(q, type, factor,
    summand)` takes stored s8 or u8 integers and gives s8 numbers as int64.
    """

    prepare: Callable[..., tuple[np.ndarray, np.ndarray]]
    apply: Callable[[np.ndarray, str, np.ndarray, np.ndarray], np.ndarray]
    formula: str
    source: str


def _prepare(
    gamma: np.ndarray,
    beta: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    epsilon: float,
    span: float,
    output_span: float,
) -> tuple[np.ndarray, np.ndarray]:
    f32 = np.float32
    with np.errstate(all="ignore"):
        inverse = (1 / np.sqrt(variance.astype(np.float64) + epsilon)).astype(f32)
        weight = gamma * inverse * f32(span) / f32(output_span)
        summand = (beta - mean * gamma * inverse) * HALF["s8"] / f32(output_span)
        factor = weight / np.sqrt(f32(1) + f32(epsilon))
    check_factors(*factor.tolist(), *summand.tolist())
    return factor, summand


def _apply(q: np.ndarray, dtype: str, factor: np.ndarray, summand: np.ndarray) -> np.ndarray:
    """Ties to even, a saturation; u8 numbers are halved first.

    >>> rule, one = RULES["binary32_epsilon_twice_even"], np.ones(1, np.float32)
    >>> factor, summand = rule.prepare(one, 0 * one, 0 * one, one, 0.0, 1.0, 2.0)
    >>> rule.apply(np.int8([5, -5, 7]), "s8", factor, summand).tolist()  # 2.5, -2.5, 3.5
    [2, -2, 4]
    >>> rule.apply(np.uint8([5, 255]), "u8", 2 * factor, summand + np.float32(1)).tolist()
    [3, 127]
    """
    quantized = narrowed(q, HALF["s8"] / HALF["u8"]) if dtype == "u8" else q.astype(np.float32)
    return np.clip(np.rint(quantized * factor + summand), np.float32(-128), np.float32(127)).astype(np.int64)


RULES: dict[str, RangeNormalizationRule] = {
    "binary32_epsilon_twice_even": RangeNormalizationRule(
        _prepare,
        _apply,
        "clamp(round_even(f32(f32(x * w) + h))), x = q or, for u8, clamp_s8(round_even(f32(q * f32(127.5 / 255.5)))), "
        "i = f32(1 / sqrt(variance + epsilon)) in binary64, w = gamma * i * range / output range / sqrt(1 + epsilon), "
        "h = (beta - mean * gamma * i) * 127.5 / output range, each operation rounded to binary32, from left to right",
        "docs/facts/mxnet.md 1.2, verified by running",
    ),
}

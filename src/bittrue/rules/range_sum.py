"""Slot `range_sum`: the sum of two numbers with ranges as a number with a range, from their quantized values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..records import dataclass
from .range_levels import HALF, check_factors, narrowed

Prepared = dict[str, np.ndarray]
# The element type, and the range; None for a result whose range is the sum of both.
Ranged = tuple[str, float]
Result = tuple[str, float | None]


@dataclass(frozen=True, eq=False)
class RangeSumRule:
    """`prepare(first, second, output)` raises ValueError for ranges without a meaning; `apply(a, b, arrays, low, high)`
    takes quantized values that broadcast and gives int64.
    """

    prepare: Callable[[Ranged, Ranged, Result], Prepared]
    apply: Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray], int, int], np.ndarray]
    formula: str
    source: str


def _prepare(first: Ranged, second: Ranged, output: Result) -> Prepared:
    f32 = np.float32
    spans = [f32(first[1]), f32(second[1])]
    levels = [HALF[first[0]], HALF[second[0]]]
    mixed = first[0] != second[0]
    with np.errstate(all="ignore"):
        if output[1] is None:
            total = spans[0] + spans[1]
            factors = [span * HALF[output[0]] / (total * level) for span, level in zip(spans, levels, strict=True)]
        else:
            scale = HALF[output[0]] / f32(output[1])
            factors = [scale / (level / span) for span, level in zip(spans, levels, strict=True)]
    check_factors(*map(float, factors))
    return {
        "factors": np.array(factors, f32),
        "narrowed": np.array([mixed and first[0] == "u8", mixed and second[0] == "u8"], np.int64),
    }


def _apply(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """A tie, a negative tie, a saturation; 32 bits end at the largest binary32 number below 2^31.

    >>> rule = RULES["binary32_two_products_even"]
    >>> halves = rule.prepare(("s8", 1.0), ("s8", 1.0), ("s8", 2.0))
    >>> rule.apply(np.int8([5, -5, 127]), np.int8([0, 0, 127]), halves, -128, 127).tolist()
    [2, -2, 127]
    >>> exact = rule.prepare(("s8", 1.0), ("s8", 0.0), ("s32", None))
    >>> rule.apply(np.int8([127, -128]), np.int8([0, 0]), exact, -(2**31), 2**31 - 1).tolist()
    [2139062272, -2147483648]
    """
    parts = []
    for q, factor, is_narrowed in zip((a, b), prepared["factors"], prepared["narrowed"], strict=True):
        parts.append(narrowed(q, factor) if is_narrowed else q.astype(np.float32) * factor)
    highest = np.float32(high) if high < 2**24 else np.nextafter(np.float32(high), np.float32(0))
    return np.clip(np.rint(parts[0] + parts[1]), np.float32(low), highest).astype(np.int64)


RULES: dict[str, RangeSumRule] = {
    "binary32_two_products_even": RangeSumRule(
        _prepare,
        _apply,
        "clamp(round_even(f32(f32(a * r) + f32(b * t)))), r = f32(f32(L / output range) / f32(l / range)) with levels "
        "l and L of 127.5 (s8) and 255.5 (u8); without an output range L = 2^31 and r = f32(f32(range * L) / f32(f32("
        "sum of both ranges) * l)); of two types the u8 operand becomes clamp_s8(round_even(f32(q * r))) first and "
        "counts once; s32 ends at 2147483520",
        "docs/facts/mxnet.md 1.1, verified by running",
    ),
}

"""Slot `range_product`: the product of two s8 numbers with ranges, from their quantized values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats
from ..records import dataclass
from .range_levels import HALF


@dataclass(frozen=True, eq=False)
class RangeProductRule:
    """`prepare(first range, second range, output type, output range or None)` gives a binary32 factor;
    `apply(a, b, factor, output type)` takes quantized values and gives the type's numbers as int64 or binary32.
    """

    prepare: Callable[[float, float, str, float | None], np.float32]
    apply: Callable[[np.ndarray, np.ndarray, np.float32, str], np.ndarray]
    formula: str
    source: str


def _prepare(first: float, second: float, output: str, span: float | None) -> np.float32:
    f32 = np.float32
    with np.errstate(all="ignore"):
        one, other = HALF["s8"] / f32(first), HALF["s8"] / f32(second)
        if output == "f32":
            return f32(np.float64(1) / np.float64(one) / np.float64(other))
        if span is None:
            return f32(1)
        return HALF["s8"] / f32(span) / one / other


def _apply(a: np.ndarray, b: np.ndarray, factor: np.float32, output: str) -> np.ndarray:
    """Products of s8 numbers are exact, and 0 has no sign. What does not fit s8 keeps its low bits: nothing saturates.

    >>> rule = RULES["binary32_truncate_low_bits"]
    >>> rule.apply(np.int8([3, -3, 100]), np.int8([1, 1, 2]), np.float32(0.5), "s8").tolist()
    [1, -1, 100]
    >>> rule.apply(np.int8([100, 100]), np.int8([2, 127]), np.float32(1), "s8").tolist()
    [-56, -100]
    """
    product = (a.astype(np.int32) * b.astype(np.int32)).astype(np.float32)
    with np.errstate(all="ignore"):
        scaled = product * factor
    if output == "f32":
        return scaled
    whole = floats.truncate_to_s32(scaled)
    return (whole + 128 & 255) - 128 if output == "s8" else whole


RULES: dict[str, RangeProductRule] = {
    "binary32_truncate_low_bits": RangeProductRule(
        _prepare,
        _apply,
        "s8: low_bits(to_s32(f32(a * b * s))), s = f32(f32(f32(127.5 / output range) / f32(127.5 / first range)) / "
        "f32(127.5 / second range)), to_s32 drops the fraction and makes -2^31 of what does not fit; s32: a * b; f32: "
        "f32(a * b * f32(1 / f32(127.5 / first range) / f32(127.5 / second range))), these quotients in binary64",
        "docs/facts/mxnet.md 1, verified by running",
    ),
}

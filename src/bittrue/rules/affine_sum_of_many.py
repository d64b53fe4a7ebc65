"""Slot `affine_sum_of_many`: the sum of any number of quantized tensors of one type as a quantized tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..records import dataclass
from .affine_sum import Pair, Prepared
from .to_integer import clamp_of_s64


@dataclass(frozen=True, eq=False)
class ManyRule:
    """`prepare(inputs, output, low, high)` takes a binary32 scale and a zero point of each, and the ends of the stored
    type; it raises ValueError for scales without a meaning. `apply(stored integers, arrays, low, high)` gives int64.
    """

    prepare: Callable[[Sequence[Pair], Pair, int, int], Prepared]
    apply: Callable[[Sequence[np.ndarray], Mapping[str, np.ndarray], int, int], np.ndarray]
    formula: str
    source: str


def _middle(lowest: np.float32, highest: np.float32) -> tuple[np.float32, int]:
    """Scale and zero point of 16 bits for the real numbers between `lowest` and `highest`, 0 among them.

    The zero point follows from the end that is nearer to 0. A scale whose reciprocal is infinite becomes 0.1.

    >>> scale, zero_point = _middle(np.float32(-1), np.float32(2))
    >>> float(scale), zero_point
    (4.577706567943096e-05, 21845)
    """
    low, high = np.minimum(lowest, np.float32(0)), np.maximum(highest, np.float32(0))
    scale = np.float32((float(high) - float(low)) / 65535)
    if scale == 0 or np.isinf(np.float32(1) / scale):
        scale = np.float32(0.1)
    steps = float(low) / float(scale), float(high) / float(scale)
    exact = -steps[0] if abs(steps[0]) < 65535 + abs(steps[1]) else 65535 - steps[1]
    return scale, min(max(round(exact), 0), 65535)


def _prepare(inputs: Sequence[Pair], output: Pair, low: int, high: int) -> Prepared:
    f32 = np.float32
    with np.errstate(all="ignore"):
        ends = [f32(scale) * f32(end - zero_point) for scale, zero_point in inputs for end in (low, high)]
        lowest, highest = min(ends), max(ends)
        if not np.isfinite(highest - lowest) or not output[0] > 0:
            raise ValueError(f"real numbers between {lowest} and {highest} have no scale of 16 bits")
        scale, zero_point = _middle(lowest, highest)
        factors = np.array([f32(one) / scale for one, _ in inputs], np.float32)
        result = np.asarray(scale / f32(output[0]), np.float32)
    return {
        "factors": factors,
        "zero_points": np.array([point for _, point in inputs], np.int64),
        "middle_zero_point": np.asarray(zero_point, np.int64),
        "factor": result,
        "output_zero_point": np.asarray(output[1], np.int64),
    }


def _apply(quantized: Sequence[np.ndarray], prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Ties to even, once per input and once for the sum.

    >>> rule = RULES["binary32_16_bits_even"]
    >>> prepared = rule.prepare([(0.5, 0)] * 3, (1.0, 0), 0, 255)
    >>> rule.apply([np.uint8([1, 2, 255])] * 3, prepared, 0, 255).tolist()
    [2, 3, 255]
    """
    middle = int(prepared["middle_zero_point"])
    total: np.ndarray | int = 0
    for q, factor, zero_point in zip(quantized, prepared["factors"], prepared["zero_points"], strict=True):
        steps = np.rint((q.astype(np.int64) - zero_point).astype(np.float32) * factor).astype(np.int64)
        total = total + np.clip(steps + middle, 0, 65535)
    raw = np.asarray(total, np.int64) - len(quantized) * middle
    with np.errstate(all="ignore"):
        real = np.rint(raw.astype(np.float32) * prepared["factor"])
    return clamp_of_s64(real, prepared["output_zero_point"], low, high)


RULES: dict[str, ManyRule] = {
    "binary32_16_bits_even": ManyRule(
        _prepare,
        _apply,
        "clamp(round_even(f32(f32(sum of q' - n Z) * f32(S / output scale))) + output zero point), "
        "q' = clamp(round_even(f32((q - zero point) * f32(scale / S))) + Z, 0, 65535), S and Z such that 16 bits hold "
        "every input; what does not fit 64 bits becomes -2^63",
        "docs/facts/caffe2.md 2.3, verified by running",
    ),
}

"""Slot `affine_scale`: quantized numbers times a real factor plus a real number per channel, quantized."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arithmetic import floats
from .affine_sum import Pair, Prepared, to_type


@dataclass(frozen=True)
class AffineScaleRule:
    """`prepare(input, output, (gamma, beta, mean, variance), epsilon)` takes a binary32 scale and a zero point of both
    tensors and binary32 vectors; `apply(stored integers, arrays, low, high)` gives int64, channels being last.
    """

    prepare: Callable[[Pair, Pair, Sequence[np.ndarray], float], Prepared]
    apply: Callable[[np.ndarray, Mapping[str, np.ndarray], int, int], np.ndarray]
    formula: str
    source: str


def _prepare(source: Pair, output: Pair, vectors: Sequence[np.ndarray], epsilon: float) -> Prepared:
    f32 = np.float32
    gamma, beta, mean, variance = (np.asarray(vector, np.float32) for vector in vectors)
    with np.errstate(all="ignore"):
        factor = gamma * (f32(1) / np.sqrt(variance + f32(epsilon)))
        addend = beta - factor * mean
        return {
            "factors": factor * (f32(source[0]) / f32(output[0])),
            "addends": addend / f32(output[0]),
            "zero_points": np.array([source[1], output[1]], np.int64),
        }


def _apply(q: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Ties to even before the zero point is added.

    >>> rule, ones = RULES["binary32_fused_even"], np.ones(1, np.float32)
    >>> prepared = rule.prepare((0.5, 0), (1.0, 1), (ones, 0 * ones, 0 * ones, ones), 0.0)
    >>> rule.apply(np.uint8([[1], [3], [255]]), prepared, 0, 127).tolist()
    [[1], [3], [127]]
    """
    zero_point, output_zero_point = prepared["zero_points"]
    moved = (q.astype(np.int64) - zero_point).astype(np.float32)
    real = np.rint(floats.fused_multiply_add(prepared["factors"], moved, prepared["addends"]))
    # -2^31 plus a zero point of the type stays below it.
    return np.clip(floats.truncate_to_s32(real) + output_zero_point, low, high)


RULES: dict[str, AffineScaleRule] = {
    "binary32_fused_even": AffineScaleRule(
        _prepare,
        _apply,
        "clamp(round_even(fma(f32(a * f32(scale / output scale)), q - zero point, f32(b / output scale))) + output "
        "zero point), a = f32(gamma * f32(1 / f32(sqrt(f32(variance + epsilon))))), b = f32(beta - f32(a * mean)); "
        "what does not fit 32 bits becomes -2^31",
        "facts/caffe2.md 2 (Int8SpatialBN), verified by running",
    ),
}

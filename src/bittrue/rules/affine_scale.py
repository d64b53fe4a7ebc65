"""Slot `affine_scale`: quantized numbers times a real factor plus a real number per channel, quantized."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..arithmetic import fixed_point, floats, reciprocal_root
from ..records import dataclass
from .affine_sum import Pair, Prepared
from .to_integer import clamp_of_s64


@dataclass(frozen=True, eq=False)
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
        shifted = variance + f32(epsilon)
        inverse = f32(1) / np.sqrt(shifted)
        # Vectors of four channels go by the processor's estimate, what does not fill one by the root.
        vectors_end = shifted.size - shifted.size % 4
        inverse[:vectors_end] = reciprocal_root.refined(shifted[:vectors_end])
        factor = gamma * inverse
        addend = beta - factor * mean
        return {
            "factors": factor * (f32(source[0]) / f32(output[0])),
            "addends": addend / f32(output[0]),
            "zero_points": np.array([source[1], output[1]], np.int64),
        }


def _real(q: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    moved = (q.astype(np.int64) - prepared["zero_points"][0]).astype(np.float32)
    return np.rint(floats.fused_multiply_add(prepared["factors"], moved, prepared["addends"]))


def _apply(q: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Ties to even before the zero point is added.

    >>> rule, ones = RULES["binary32_fused_even"], np.ones(1, np.float32)
    >>> prepared = rule.prepare((0.5, 0), (1.0, 1), (ones, 0 * ones, 0 * ones, ones), 0.0)
    >>> rule.apply(np.uint8([[1], [3], [255]]), prepared, 0, 127).tolist()
    [[1], [3], [127]]
    """
    # Sums with the zero point wrap; only those of the largest numbers can.
    moved = floats.truncate_to_s32(_real(q, prepared)) + prepared["zero_points"][1]
    return np.clip(fixed_point.wrap_s32(moved), low, high)


def _apply_64(q: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """The same with 64 bits: 2^31 saturates.

    >>> ones = np.ones(1, np.float32)
    >>> for name in RULES:
    ...     prepared = RULES[name].prepare((1.0, 0), (2.0**-30, 1), (ones, 0 * ones, 0 * ones, ones), 0.0)
    ...     RULES[name].apply(np.uint8([[2]]), prepared, 0, 255).tolist()
    [[0]]
    [[255]]
    """
    return clamp_of_s64(_real(q, prepared), prepared["zero_points"][1], low, high)


_FORMULA = (
    "clamp(round_even(fma(f32(a * f32(scale / output scale)), q - zero point, f32(b / output scale))) + output "
    "zero point), a = f32(gamma * r), b = f32(beta - f32(a * mean)), r = 1 / sqrt(f32(variance + epsilon)) refined "
    "from an estimate of 12 bits in groups of four channels, f32(1 / f32(sqrt)) in what is left; "
    "what does not fit {bits} bits becomes -2^{last}"
)
_SOURCE = "docs/facts/caffe2.md 2 (Int8SpatialBN), verified by running"

RULES: dict[str, AffineScaleRule] = {
    "binary32_fused_even": AffineScaleRule(_prepare, _apply, _FORMULA.format(bits=32, last=31), _SOURCE),
    "binary32_fused_even_64_bits": AffineScaleRule(_prepare, _apply_64, _FORMULA.format(bits=64, last=63), _SOURCE),
}

"""Slot `cached_product`: products of real rows and a cache of integers with scales, one per cache or one per column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arithmetic.floats import fused_multiply_add
from .real_product import Layout, RealProductRule

_LANES = 8


@dataclass(frozen=True, eq=False)
class CachedProductRule:
    """The products of one cache.

    Attributes:
        scores: (q [S, H], k [T, H] of integers as binary32, scales [1] or [H], whether these are multiplied first,
            factor) to factor * q k^T [S, T].
        sums: (weights [S, T], v [T, V] of integers, scales, whether these are multiplied first, what the sums begin
            with) to [S, V].
    """

    scores: Callable[[np.ndarray, np.ndarray, np.ndarray, bool, np.float32], np.ndarray]
    sums: Callable[[np.ndarray, np.ndarray, np.ndarray, bool, np.ndarray | None], np.ndarray]
    formula: str
    source: str

    def of(self, keys: np.ndarray, values: np.ndarray, scaled: bool) -> RealProductRule:
        """Both products as attention asks for them: its second factor is turned for scores.

        Args:
            keys, values: their scales.
            scaled: integers are multiplied by their scale before anything is added up.
        """

        def apply(
            a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float, layout: Layout
        ) -> np.ndarray:
            if layout.turned_b:
                return self.scores(a, b.T, keys, scaled, np.float32(alpha))
            return self.sums(a, b, values, scaled, c)

        return RealProductRule(apply, self.formula, self.source)


def _scores(q: np.ndarray, k: np.ndarray, scales: np.ndarray, scaled: bool, factor: np.float32) -> np.ndarray:
    """Eights take turns between two sets of lanes; a last one without a partner goes to the first."""
    numbers = k * scales if scaled else k
    lanes = np.zeros((2, q.shape[0], k.shape[0], _LANES), np.float32)
    paired = k.shape[1] // (2 * _LANES) * 2
    for i in range(k.shape[1] // _LANES):
        which, part = i % 2 if i < paired else 0, slice(i * _LANES, (i + 1) * _LANES)
        lanes[which] = fused_multiply_add(q[:, None, part], numbers[None, :, part], lanes[which])
    eight = lanes[0] + lanes[1]
    four = eight[..., :4] + eight[..., 4:]
    total = (four[..., 0] + four[..., 1]) + (four[..., 2] + four[..., 3])
    return np.asarray(factor * (total if scaled else total * scales[0]))


def _sums(weights: np.ndarray, v: np.ndarray, scales: np.ndarray, scaled: bool, begin: np.ndarray | None) -> np.ndarray:
    """Key after key. One scale multiplies the finished sum, or the weights where there are sums to begin with."""
    if scaled:
        v = v * scales
    elif begin is not None:
        weights = weights * scales
    total = np.zeros((weights.shape[0], v.shape[1]), np.float32) if begin is None else begin
    for t in range(v.shape[0]):
        total = fused_multiply_add(weights[:, t : t + 1], v[t : t + 1], total)
    return np.asarray(total if scaled or begin is not None else total * scales)


RULES: dict[str, CachedProductRule] = {
    "binary32_8_lanes": CachedProductRule(
        _scores,
        _sums,
        "scores: lane = fma(q, k, lane) in two sets of 8 lanes, with a scale per column fma(q, f32(k s), lane); halves "
        "and then neighbours are added; times s, times the factor; sums: o = fma(w, f32(v s), o) key by key; one scale "
        "o = fma(f32(w s), v, o), or fma(w, v, o) from 0 on and last times s",
        "a runtime's kernels of quantized caches for x86-64 with AVX2, read; verified by running",
    ),
}

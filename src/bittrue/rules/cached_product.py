"""Slot `cached_product`: products of real rows and a cache of integers with scales, one per cache or one per column."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic.floats import fused_multiply_add
from ..records import dataclass
from .real_product import Layout, RealProductRule


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


def _scores(
    lanes: int, q: np.ndarray, k: np.ndarray, scales: np.ndarray, scaled: bool, factor: np.float32
) -> np.ndarray:
    """Vectors take turns between two sets of lanes; a last one without a partner goes to the first."""
    numbers = k * scales if scaled else k
    sets = np.zeros((2, q.shape[0], k.shape[0], lanes), np.float32)
    whole = k.shape[1] // lanes
    for i in range(whole):
        which, part = i % 2 if i < whole // 2 * 2 else 0, slice(i * lanes, (i + 1) * lanes)
        sets[which] = fused_multiply_add(q[:, None, part], numbers[None, :, part], sets[which])
    total = sets[0] + sets[1]
    while total.shape[-1] > 4:
        lower, upper = np.split(total, 2, axis=-1)
        total = lower + upper
    # By halves or by neighbours.
    across = (0, 2, 1, 3) if lanes == 16 else (0, 1, 2, 3)
    total = (total[..., across[0]] + total[..., across[1]]) + (total[..., across[2]] + total[..., across[3]])
    for i in range(whole * lanes, k.shape[1]):
        part = q[:, i : i + 1] * k[:, i]
        if not scaled:
            total = total + part
        else:
            total = fused_multiply_add(part, scales, total) if scales.size == 1 else total + part * scales[i]
    return np.asarray(factor * (total if scaled else total * scales[0]))


def _sums(
    lanes: int, weights: np.ndarray, v: np.ndarray, scales: np.ndarray, scaled: bool, begin: np.ndarray | None
) -> np.ndarray:
    """Key after key. One scale multiplies the finished sum, or the weights where there are sums to begin with."""
    if not scaled and begin is not None:
        weights = weights * scales
    total = np.zeros((weights.shape[0], v.shape[1]), np.float32) if begin is None else begin.copy()
    vectors, rest = slice(v.shape[1] // lanes * lanes), slice(v.shape[1] // lanes * lanes, None)
    numbers, scale = v * scales if scaled else v, np.broadcast_to(scales, v.shape[1])
    for t in range(v.shape[0]):
        weight = weights[:, t : t + 1]
        total[:, vectors] = fused_multiply_add(weight, numbers[t, vectors], total[:, vectors])
        # Of three factors the first two make a product that is rounded.
        one, other = (weight * v[t, rest], scale[rest]) if scaled else (weight, v[t, rest])
        total[:, rest] = fused_multiply_add(one, other, total[:, rest])
    return np.asarray(total if scaled or begin is not None else total * scales)


def _scores_of_rows(q: np.ndarray, k: np.ndarray, scales: np.ndarray, _: bool, factor: np.float32) -> np.ndarray:
    """Fours take turns between four sets of lanes; those without three partners, and then single ones, go to the
    first.
    """
    numbers = k * scales
    sets = np.zeros((4, q.shape[0], k.shape[0], 4), np.float32)
    whole = k.shape[1] // 4
    for i in range(whole):
        which, part = i % 4 if i < whole // 4 * 4 else 0, slice(i * 4, (i + 1) * 4)
        sets[which] = fused_multiply_add(q[:, None, part], numbers[None, :, part], sets[which])
    lanes = (sets[0] + sets[1]) + (sets[2] + sets[3])
    total = (lanes[..., 0] + lanes[..., 1]) + (lanes[..., 2] + lanes[..., 3])
    for i in range(whole * 4, k.shape[1]):
        total = fused_multiply_add(q[:, i : i + 1], numbers[:, i], total)
    return np.asarray(factor * total)


def _sums_of_rows(
    weights: np.ndarray, v: np.ndarray, scales: np.ndarray, _: bool, begin: np.ndarray | None
) -> np.ndarray:
    """Key after key. One scale multiplies the finished sum where there is nothing to begin with."""
    last = begin is None and scales.size == 1
    numbers = v if last else v * scales
    total = np.zeros((weights.shape[0], v.shape[1]), np.float32) if begin is None else begin
    for t in range(v.shape[0]):
        total = fused_multiply_add(weights[:, t : t + 1], numbers[t], total)
    return np.asarray(total * scales if last else total)


RULES: dict[str, CachedProductRule] = {
    "binary32_8_lanes": CachedProductRule(
        partial(_scores, 8),
        partial(_sums, 8),
        "scores: lane = fma(q, k, lane) in two sets of 8 lanes, with a scale per column fma(q, f32(k s), lane); halves "
        "and then neighbours are added; times s, times the factor; sums: o = fma(w, f32(v s), o) key by key; one scale "
        "o = fma(f32(w s), v, o), or fma(w, v, o) from 0 on and last times s",
        "a runtime's kernels of quantized caches for x86-64 with AVX2, read; verified by running",
    ),
    "binary32_16_lanes": CachedProductRule(
        partial(_scores, 16),
        partial(_sums, 16),
        "the same with 16 lanes, folded by halves; columns behind the last 16 one by one: sum + q k, sum + f32(q k) s, "
        "and of 4 bits with one scale fma(f32(q k), s, sum); o = fma(w, v, o), with a scale per column, or 4 bits, "
        "fma(f32(w v), s, o)",
        "a runtime's kernels of quantized caches for x86-64 with AVX-512 VNNI, read; verified by running",
    ),
    "binary32_4_lanes": CachedProductRule(
        _scores_of_rows,
        _sums_of_rows,
        "scores: lane = fma(q, f32(k s), lane) in four sets of 4 lanes, added as ((0 + 1) + (2 + 3)), then by "
        "neighbours, times the factor; sums: o = fma(w, f32(v s), o) key by key; one scale fma(w, v, o) from 0 on and "
        "last times s",
        "a runtime's kernels of quantized caches for aarch64, read; verified by running",
    ),
}

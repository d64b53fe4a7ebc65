"""Layers over tensors with ranges: their weights and bias, and what follows their sums.

A tensor's scale is L / R: quantized values per unit, L = 127.5 (s8) or 255.5 (u8), R = max(|low|, |high|). Everything
is binary32, in the order written, unless said.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats
from .range_levels import HALF, Ends, reach, saturate_even, scale_of

Folded = tuple[np.ndarray, np.ndarray]
Codes = tuple[np.ndarray, np.ndarray, np.ndarray]

_S32 = np.float32(2**31)


def binary64_root(
    weights: np.ndarray, bias: np.ndarray | None, numbers: tuple[np.ndarray, ...], epsilon: float
) -> Folded:
    """al = f32(f64(gamma) / sqrt(f64(variance) + epsilon)); w al, and beta + al (b - mean), or beta - al mean.

    Args:
        weights: f32 [O, K]; bias: f32 [O] or None; numbers: gamma, beta, mean, variance, f32 [O].

    Source: docs/facts/mxnet.md 2, verified by running.
    """
    gamma, beta, mean, variance = (array.astype(np.float32) for array in numbers)
    with np.errstate(all="ignore"):
        factor = (gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)).astype(np.float32)
        moved = beta - factor * mean if bias is None else beta + factor * (bias - mean)
        return weights * factor[:, None], moved


def binary32_half_levels(weights: np.ndarray, bias: np.ndarray, ends: Ends, dtype: str, per_channel: bool) -> Codes:
    """s = 127.5 / max |w| of a channel or of all; q = saturate(round_even(w s)); round_even(b f32(s s_data)) as s32.

    Per channel, s is lowered to ((+-2^31 / 2) / b) / s_data where the bias would leave 32 bits.

    Args:
        weights: f32 [O, K]; bias: f32 [O]; ends, dtype: of the data that the weights meet.

    Returns:
        s8 [O, K]; integers of 32 bits as f32 [O]; f32 [O] or [1]. Source: docs/facts/mxnet.md 2, verified by running.
    """
    quantized, wide, scales = _half_levels(weights, bias, ends, dtype, per_channel)
    return saturate_even(quantized, "s8").astype(np.int8), wide, scales


def binary32_half_levels_halved(
    weights: np.ndarray, bias: np.ndarray, ends: Ends, dtype: str, per_channel: bool
) -> Codes:
    """As `binary32_half_levels`, then half of it: round_even(f32(w s) / 2), half of the rounded bias, s / 2.

    Args and result: as there, but that the bias has halves. Source: docs/facts/mxnet.md 3.1, verified by running.

    >>> ends = np.float32(-1), np.float32(1)
    >>> weights, bias, _ = binary32_half_levels_halved(np.float32([[1, -0.3]]), np.float32([0.001]), ends, "s8", True)
    >>> weights.tolist(), bias.tolist()
    ([[64, -19]], [8.0])
    """
    half = np.float32(0.5)
    quantized, wide, scales = _half_levels(weights, bias, ends, dtype, per_channel)
    return saturate_even(quantized * half, "s8").astype(np.int8), wide * half, scales * half


def _half_levels(weights: np.ndarray, bias: np.ndarray, ends: Ends, dtype: str, per_channel: bool) -> Codes:
    """w s before it is rounded, f32(round_even(b f32(s s_data))) and s."""
    data_scale = scale_of(ends, dtype)
    with np.errstate(all="ignore"):
        largest = np.abs(weights).max(axis=1, initial=0).astype(np.float32)
        scales = HALF["s8"] / (largest if per_channel else largest.max(initial=0, keepdims=True))
        if per_channel:
            half = np.where(bias > 0, _S32, -_S32) / np.float32(2)
            most = half / bias / data_scale
            scales = np.where((bias != 0) & (most < scales), most, scales)
        wide = saturate_even(bias * (scales * data_scale), "s32").astype(np.float32)
        return weights * scales[:, None], wide, scales


def binary32_rescale_away(weights: np.ndarray, bias: np.ndarray, ends: tuple[Ends, Ends, Ends], dtype: str) -> Codes:
    """b32 = round_away(f32(b) * f32(f32(s_data s_weight) / s_bias)), s_weight = 127.5 / R, s_bias = 127.5 / R.

    Where that factor exceeds ((2^30 / R_bias) / s_bias), it is lowered to it, and the weights by the same ratio r:
    r = ((factor * s_bias) / s_data) / s_weight, w = round_away(f32(w) r), s_weight r.

    Args:
        weights: s8 [O, K]; bias: s8 [O]; ends: ranges of the data, the weights and the bias; dtype: of the data.

    Returns:
        s8 [O, K]; integers of 32 bits as f32 [O]; f32 [1]. Source: docs/facts/mxnet.md 2, verified by running.
    """
    data_scale, scale, bias_scale = (scale_of(e, t) for e, t in zip(ends, (dtype, "s8", "s8"), strict=True))
    with np.errstate(all="ignore"):
        factor = data_scale * scale / bias_scale
        most = np.float32(2**30) / reach(ends[2]) / bias_scale
        if factor > most:
            factor = most
            ratio = factor * bias_scale / data_scale / scale
            weights = floats.round_away(weights.astype(np.float32) * ratio).astype(np.int8)
            scale = scale * ratio
        wide = floats.round_away(bias.astype(np.float32) * factor)
    return weights, floats.saturate_to_s32(wide).astype(np.float32), np.array([scale], np.float32)


def binary32_rescale_trunc(weights: np.ndarray, bias: np.ndarray, ends: tuple[Ends, Ends, Ends], dtype: str) -> Codes:
    """b32 = trunc(f32(b) * rs), rs = (((L / R_data) * (127.5 / R_weight)) * R_bias) / 127.5.

    Args and result: as `binary32_rescale_away`. Source: docs/facts/mxnet.md 1, verified by running.
    """
    data_scale, scale = scale_of(ends[0], dtype), scale_of(ends[1], "s8")
    with np.errstate(all="ignore"):
        factor = data_scale * scale * reach(ends[2]) / HALF["s8"]
        wide = floats.truncate_to_s32(bias.astype(np.float32) * factor).astype(np.float32)
    return weights, wide, np.array([scale], np.float32)


def binary32_sum(acc: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """to_s32(f32(f32(acc) + f32(bias))): exact below 2^24. Source: docs/facts/mxnet.md 3, verified by running.

    >>> binary32_sum(np.int64([2**24 + 1, 5]), np.int64([1, 2])).tolist()
    [16777216, 7]
    """
    return saturate_even(acc.astype(np.float32) + bias.astype(np.float32), "s32")


def s32_sum(acc: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """acc + bias, exact. Source: docs/facts/mxnet.md 3, verified by running.

    >>> s32_sum(np.int64([2**24 + 1]), np.float32([0])).tolist()
    [16777217]
    """
    return acc + bias.astype(np.int64)


def binary32_doubled_sum(acc: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """to_s32(2 f32(f32(acc) + f32(bias))). Source: docs/facts/mxnet.md 3.1, verified by running.

    >>> binary32_doubled_sum(np.int64([5]), np.float32([1.5])).tolist()
    [13]
    """
    return saturate_even((acc.astype(np.float32) + bias.astype(np.float32)) * np.float32(2), "s32")


def fused_multiply_even(value: np.ndarray, previous: np.ndarray, factor: np.float32, dtype: str) -> np.ndarray:
    """saturate(round_even(fma(f32(previous), factor, value))): the sum is rounded once.

    Source: docs/facts/mxnet.md 2, verified by running.

    >>> fused_multiply_even(np.float32([1.5]), np.int8([2]), np.float32(0.5), "s8").tolist()
    [2]
    """
    with np.errstate(all="ignore"):
        total = floats.fused_multiply_add(previous.astype(np.float32), factor, value)
    return saturate_even(total, dtype)


def fused_multiply_doubled_even(value: np.ndarray, previous: np.ndarray, factor: np.float32, dtype: str) -> np.ndarray:
    """saturate(round_even(2 fma(f32(previous), factor, value))).

    Source: docs/facts/mxnet.md 3.1, verified by running.

    >>> fused_multiply_doubled_even(np.float32([1.5]), np.int8([2]), np.float32(0.5), "s32").tolist()
    [5]
    """
    with np.errstate(all="ignore"):
        total = floats.fused_multiply_add(previous.astype(np.float32), factor, value)
        return saturate_even(total * np.float32(2), dtype)


FOLD: dict[str, Callable[..., Folded]] = {"binary64_root": binary64_root}
WEIGHTS: dict[str, Callable[..., Codes]] = {
    "binary32_half_levels": binary32_half_levels,
    "binary32_half_levels_halved": binary32_half_levels_halved,
}
BIAS: dict[str, Callable[..., Codes]] = {
    "binary32_rescale_away": binary32_rescale_away,
    "binary32_rescale_trunc": binary32_rescale_trunc,
}
ADD: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "s32_sum": s32_sum,
    "binary32_sum": binary32_sum,
    "binary32_doubled_sum": binary32_doubled_sum,
}
SUM: dict[str, Callable[..., np.ndarray]] = {
    "fused_multiply_even": fused_multiply_even,
    "fused_multiply_doubled_even": fused_multiply_doubled_even,
}

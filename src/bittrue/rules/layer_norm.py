"""Slot `layer_norm`: normalization of a recurrent gate over its cells, in 16 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, transcendental

LayerNorm = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


def _divide_trunc(x: np.ndarray, divisor: int) -> np.ndarray:
    return np.sign(x) * (np.abs(x) // divisor)


def s32_newton_inverse_root(gate: np.ndarray, weights: np.ndarray, bias: np.ndarray, guard: int) -> np.ndarray:
    """round_away(((g - mean) / deviation * 2^10 * weight + bias) / 2^10), along the last axis of n cells.

    mean = trunc(2^10 * sum(g) / n); variance = trunc((sum(g^2) * (2^20 div n) - mean^2) / 2^20), `guard` when that is
    below 1. 1 / deviation comes from Newton's inverse root; the quotient is rescaled in two steps (ties up, then away).
    2^20 div n drops a fraction, so that the variance is a little small unless n is a power of two.
    Domain: gate and weights s16, bias s32. Raises OverflowError when the product plus the bias leaves 32 bits.
    Source: the runtime's portable kernel, read; verified by running.

    A tie (1.5) and a negative tie: the deviation is 1, the weights 2, the bias half of 2^10.

    >>> one = np.array([[1, -1]])
    >>> s32_newton_inverse_root(one, np.array([2, 2]), np.array([-512, 512]), 1).tolist()
    [[2, -2]]
    >>> s32_newton_inverse_root(0 * one, np.array([2, 2]), np.array([2048, -1536]), 1).tolist()
    [[2, -2]]
    """
    count = gate.shape[-1]
    total = gate.sum(axis=-1, keepdims=True)
    mean = _divide_trunc(total * 1024, count)
    squares = (gate * gate).sum(axis=-1, keepdims=True)
    variance = _divide_trunc(squares * ((1 << 20) // count) - mean * mean, 1 << 20)
    inverse, exponent = transcendental.inverse_square_root(np.where(variance < 1, guard, variance))
    shifted = 1024 * gate - mean
    # The inverse root of a variance of 1 or more needs no left shift.
    normal = fixed_point.divide_by_power_of_two_away(fixed_point.doubling_high_multiply_up(shifted, inverse), -exponent)
    weighted = normal * weights + bias
    if weighted.size and max(int(weighted.max()), ~int(weighted.min())) > fixed_point.S32_MAX:
        raise OverflowError("a normalized gate leaves 32 bits before it is scaled")
    return _divide_trunc(weighted + np.where(weighted > 0, 512, -512), 1024)


RULES: dict[str, LayerNorm] = {"s32_newton_inverse_root": s32_newton_inverse_root}

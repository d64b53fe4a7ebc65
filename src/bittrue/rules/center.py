"""Slot `center`: how a zero point is taken off a quantized value before it is rescaled or multiplied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point

# (quantized values as s64, zero points) to s64 or real numbers.
CenterRule = Callable[[np.ndarray, "np.ndarray | np.int64"], np.ndarray]


def s32_wrap(q: np.ndarray, zero_point: np.ndarray | np.int64) -> np.ndarray:
    """wrap32(q - zero_point), as s64. Source: docs/facts/tvm_qnn.md 4 (int64), read.

    >>> s32_wrap(np.array([5, -(2**31)]), np.int64(1)).tolist()
    [4, 2147483647]
    """
    return fixed_point.wrap_s32(q - zero_point)


def s16_wrap(q: np.ndarray, zero_point: np.ndarray | np.int64) -> np.ndarray:
    """wrap16(q - zero_point), as s64. Source: docs/facts/tvm_qnn.md 5, verified by running.

    >>> s16_wrap(np.array([5, -32768, 65535]), np.int64(1)).tolist()
    [4, 32767, -2]
    """
    return fixed_point.wrap_s16(q - zero_point)


def binary32(q: np.ndarray, zero_point: np.ndarray | np.int64) -> np.ndarray:
    """f32(f32(q) - f32(zero_point)). Source: docs/facts/tvm_qnn.md 4 (float32), read.

    >>> binary32(np.array([16777217, 5]), np.int64(1)).tolist()
    [16777215.0, 4.0]
    """
    return q.astype(np.float32) - np.asarray(zero_point).astype(np.float32)


def binary64(q: np.ndarray, zero_point: np.ndarray | np.int64) -> np.ndarray:
    """f64(q) - f64(zero_point). Source: docs/facts/tvm_qnn.md 4 (float64), read.

    >>> binary64(np.array([16777217, -(2**31)]), np.int64(1)).tolist()
    [16777216.0, -2147483649.0]
    """
    return q.astype(np.float64) - np.asarray(zero_point).astype(np.float64)


RULES: dict[str, CenterRule] = {
    "s16_wrap": s16_wrap,
    "s32_wrap": s32_wrap,
    "binary32": binary32,
    "binary64": binary64,
}

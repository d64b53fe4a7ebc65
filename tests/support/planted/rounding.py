"""Multipliers and roundings in NumPy on 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
# accumulators, multipliers, exponents -> integers
Rounding = Callable[[Array, Array, Array], Array]


def encode(real: Array) -> tuple[Array, Array]:
    """31-bit multipliers and exponents: real = m * 2^(e - 31)."""
    fraction, exponent = np.frexp(np.asarray(real, np.float64))
    m = np.floor(fraction * 2.0**31 + 0.5).astype(np.int64)
    big = m == 1 << 31
    m, e = np.where(big, m >> 1, m), np.where(big, exponent + 1, exponent).astype(np.int64)
    small = e < -31
    return np.where(small, 0, m), np.where(small, 0, e)


def _down(value: Array, places: Array) -> Array:
    """To a power of two: nearest, ties away from zero."""
    half = np.where(places > 0, np.int64(1) << np.maximum(places - 1, 0), 0)
    return np.sign(value) * ((np.abs(value) + half) >> places)


def two_step(acc: Array, m: Array, e: Array) -> Array:
    """Doubling high product, ties up; then the power of two, ties away."""
    raised = np.clip(acc << np.maximum(e, 0), -(1 << 31), (1 << 31) - 1)
    return _down((raised * m + (1 << 30)) >> 31, np.maximum(-e, 0))


def two_step_toward_zero(acc: Array, m: Array, e: Array) -> Array:
    """Doubling high product, ties up; then the power of two, ties toward zero."""
    high = (np.clip(acc << np.maximum(e, 0), -(1 << 31), (1 << 31) - 1) * m + (1 << 30)) >> 31
    places = np.maximum(-e, 0)
    half = np.where(places > 0, (np.int64(1) << np.maximum(places - 1, 0)) - 1, 0)
    return np.sign(high) * ((np.abs(high) + half) >> places)


def two_step_down(acc: Array, m: Array, e: Array) -> Array:
    """Doubling high product, ties up; then the power of two, ties down."""
    high = (np.clip(acc << np.maximum(e, 0), -(1 << 31), (1 << 31) - 1) * m + (1 << 30)) >> 31
    places = np.maximum(-e, 0)
    return (high + np.where(places > 0, (np.int64(1) << np.maximum(places - 1, 0)) - 1, 0)) >> places


def two_step_up(acc: Array, m: Array, e: Array) -> Array:
    """Both ties up."""
    high = (np.clip(acc << np.maximum(e, 0), -(1 << 31), (1 << 31) - 1) * m + (1 << 30)) >> 31
    places = np.maximum(-e, 0)
    return (high + np.where(places > 0, np.int64(1) << np.maximum(places - 1, 0), 0)) >> places


def one_step_up(acc: Array, m: Array, e: Array) -> Array:
    """In one step, ties up."""
    right = np.minimum(31 - e, 62)
    return (acc * m + (np.int64(1) << (right - 1))) >> right


def one_step_away(acc: Array, m: Array, e: Array) -> Array:
    """In one step, ties away from zero."""
    right = np.minimum(31 - e, 62)
    return np.sign(acc) * ((np.abs(acc) * m + (np.int64(1) << (right - 1))) >> right)


def floored(acc: Array, m: Array, e: Array) -> Array:
    """Rounded down."""
    return (acc * m) >> np.minimum(31 - e, 62)


def truncated(acc: Array, m: Array, e: Array) -> Array:
    """Rounded toward zero."""
    return np.sign(acc) * ((np.abs(acc) * m) >> np.minimum(31 - e, 62))


def real_even(acc: Array, m: Array, e: Array) -> Array:
    """Binary32 product, ties to even."""
    scale = np.ldexp(m.astype(np.float64), (e - 31).astype(np.int32)).astype(np.float32)
    return np.rint(acc.astype(np.float32) * scale).astype(np.int64)


def nearest_away(value: Array) -> Array:
    """Real numbers to integers, ties away from zero; numbers just below a half do not become one."""
    whole = np.trunc(value)
    return whole + np.sign(value) * (np.abs(value - whole) >= 0.5)

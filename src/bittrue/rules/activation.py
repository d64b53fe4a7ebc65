"""Slot `activation`: the activation functions of real numbers inside of a recurrent cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic import elementary, rational
from ..records import dataclass

_f32 = np.float32


def scalar_logistic(x: np.ndarray) -> np.ndarray:
    """e^x / (1 + e^x) in binary32 with the pinned exponential, x limited to 16.6355324 from above.

    >>> scalar_logistic(np.float32([0, 1, 30])).tolist()
    [0.5, 0.7310585975646973, 1.0]
    """
    with np.errstate(all="ignore"):
        e = elementary.exp(np.where(x > _f32(16.6355324), _f32(16.6355324), x))
        return np.asarray(e / (_f32(1) + e))


def logistic_lanes_4(x: np.ndarray, start: int, fused: bool = False) -> np.ndarray:
    """Logistic of a vector whose first element stands `start` elements behind a boundary of four.

    Elements before the first boundary, and those after the last one, are computed one at a time, the rest in vectors of
    four, with another approximation of the exponential, `fused` or not.

    >>> logistic_lanes_4(np.float32([1] * 5), 3)[:2].tolist()
    [0.7310585975646973, 0.7310585379600525]
    """
    head = min(-start % 4, x.size)
    tail = head + (x.size - head) // 4 * 4
    out = np.empty(x.shape, np.float32)
    out[head:tail] = rational.logistic(x[head:tail], fused)
    for part in (slice(0, head), slice(tail, x.size)):
        out[part] = scalar_logistic(x[part])
    return out


@dataclass(frozen=True, eq=False)
class ActivationRule:
    """`logistic(x, start)` of a binary32 vector and its position in memory; `tanh(x)` of any array."""

    logistic: Callable[[np.ndarray, int], np.ndarray]
    tanh: Callable[[np.ndarray], np.ndarray]
    formula: str
    source: str


RULES: dict[str, ActivationRule] = {
    "binary32_rational_lanes_4": ActivationRule(
        logistic_lanes_4,
        rational.tanh,
        "logistic by a squared polynomial in fours, by the C library's exponential at the ends; rational tanh",
        "a linear algebra library's functions for x86-64, read; verified by running",
    ),
    "binary32_fused_rational_lanes_4": ActivationRule(
        partial(logistic_lanes_4, fused=True),
        partial(rational.tanh, fused=True),
        "the same functions with one rounding of each product and its sum, but for the C library's exponential",
        "the same library for aarch64, its machine code; verified by running",
    ),
}


def apply(name: str, x: np.ndarray, rule: str) -> np.ndarray:
    """The activation `name` of a layer: relu, relu_n1_to_1, relu6, tanh or sign_bit, as C's comparisons have it.

    NaN becomes the lower bound. Raises KeyError for other names.

    >>> apply("relu6", np.float32([-1, 7, 2, np.nan]), "binary32_rational_lanes_4").tolist()
    [0.0, 6.0, 2.0, 0.0]
    """
    if name == "tanh":
        return RULES[rule].tanh(x)
    if name == "sign_bit":
        return np.signbit(x).astype(np.float32)
    low, high = {"relu": (0, np.inf), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}[name]
    limited = np.where(x > _f32(high), _f32(high), x)
    return np.where(limited > _f32(low), limited, _f32(low))

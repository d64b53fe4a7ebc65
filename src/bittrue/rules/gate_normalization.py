"""Slot `gate_normalization`: normalization of a recurrent gate over its cells, of real numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic.dots import add_pairs
from ..arithmetic.floats import fused_multiply_add

_f32 = np.float32
# The variance is made larger by this.
_EPSILON = _f32(1e-8)
_LANES, _BLOCK = 4, 16

GateNormalization = Callable[[np.ndarray], np.ndarray]


def binary32_in_order(x: np.ndarray) -> np.ndarray:
    """(x - mean) / sqrt(variance + 1e-8) along the last axis of [batches, cells], by the inverse of the root; sums from
    the first element to the last.

    Source: the runtime's portable kernel, read; verified by running.

    >>> binary32_in_order(np.float32([[1, -1]])).tolist()
    [[1.0, -1.0]]
    """
    count = _f32(x.shape[-1])
    total = np.zeros(len(x), _f32)
    for column in x.T:
        total = total + column
    centred = x - (total / count)[:, None]
    squares = np.zeros(len(x), _f32)
    for column in centred.T:
        squares = squares + column * column
    return centred * (_f32(1) / np.sqrt(squares / count + _EPSILON))[:, None]


def binary32_fused_16_lanes(x: np.ndarray) -> np.ndarray:
    """The same with 16 lanes: for the first four lanes l, l + 12 and l + 4 are added to l + 8 and l; these four are
    added in pairs, and what is left of sixteens one by one. Squares are joined with their sums.

    Source: the runtime's kernel for aarch64, its machine code; verified by running.

    >>> x = np.float32([[2**24, *[1] * 16]])
    >>> [rule(x)[0, 1].tolist() for rule in RULES.values()]
    [-0.24999968707561493, -0.2499999850988388]
    """
    count, whole = _f32(x.shape[-1]), x.shape[-1] // _BLOCK * _BLOCK

    def added(values: np.ndarray, add: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        lanes = np.zeros((len(x), _BLOCK), _f32)
        for first in range(0, whole, _BLOCK):
            lanes = add(lanes, values[:, first : first + _BLOCK])
        four = lanes.reshape(len(x), _BLOCK // _LANES, _LANES)
        total = add_pairs((four[:, 3] + four[:, 1]) + (four[:, 2] + four[:, 0]))
        for column in values[:, whole:].T:
            total = add(total, column)
        return total

    centred = x - (added(x, np.add) / count)[:, None]
    squares = added(centred, lambda total, value: fused_multiply_add(value, value, total))
    return centred * (_f32(1) / np.sqrt(squares / count + _EPSILON))[:, None]


RULES: dict[str, GateNormalization] = {
    "binary32_in_order": binary32_in_order,
    "binary32_fused_16_lanes": binary32_fused_16_lanes,
}

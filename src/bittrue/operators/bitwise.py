"""bitwise_xor and right_shift: integers bit by bit, with NumPy broadcasting; scales and zero points are ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .base import Operator, Step, broadcast_shape, nothing_to_prepare
from .elementwise import blockwise


def _right_shift(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Floor of x / 2^places; places are limited to 0 and the width less one."""
    return x >> np.clip(places, 0, 8 * x.dtype.itemsize - 1).astype(x.dtype)


def reference(
    step: Step, inputs: Sequence[np.ndarray], function: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """Element by element in the type of the inputs."""
    first, second = inputs
    return [blockwise(function, [first, second], first.dtype, first.dtype)]


def _operator(stem: str, function: Callable[[np.ndarray, np.ndarray], np.ndarray], summary: str) -> Operator:
    return Operator(stem, (), broadcast_shape, nothing_to_prepare, partial(reference, function=function), summary)


OPERATORS = (
    _operator("bitwise_xor", np.bitwise_xor, "bits in which two integers differ"),
    _operator("right_shift", _right_shift, "floor of first / 2^second"),
)

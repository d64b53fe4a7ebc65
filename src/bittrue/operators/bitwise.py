"""Integers bit by bit, with NumPy broadcasting; scales and zero points are ignored.

bitwise_and, bitwise_or, bitwise_xor, bitwise_not; right_shift limits its places to the width less one, shift_left and
shift_right leave nothing but the sign when places reach the width, or are negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .base import Operator, Step, broadcast_shape, nothing_to_prepare, same_shape
from .elementwise import blockwise


def _right_shift(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Floor of x / 2^places; places are limited to 0 and the width less one."""
    return x >> np.clip(places, 0, 8 * x.dtype.itemsize - 1).astype(x.dtype)


def _shifted(operation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """What is left where the places reach the width: -1 for a negative number shifted right, else 0."""

    def function(x: np.ndarray, places: np.ndarray) -> np.ndarray:
        width = x.dtype.type(8 * x.dtype.itemsize)
        beyond = (places >= width) | (places < 0)
        negative = (x < 0) & (operation is np.right_shift)
        rest = np.where(negative, ~x.dtype.type(0), x.dtype.type(0))
        return np.where(beyond, rest, operation(x, np.where(beyond, x.dtype.type(0), places)))

    return function


def reference_not(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Every bit the other way."""
    return [np.asarray(np.invert(inputs[0]))]


def reference(
    step: Step, inputs: Sequence[np.ndarray], function: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """Element by element in the type of the inputs."""
    first, second = inputs
    return [blockwise(function, [first, second], first.dtype, first.dtype)]


def _operator(stem: str, function: Callable[[np.ndarray, np.ndarray], np.ndarray], summary: str) -> Operator:
    return Operator(
        stem, (), broadcast_shape, nothing_to_prepare, partial(reference, function=function), summary, elementwise=2
    )


OPERATORS = (
    _operator("bitwise_and", np.bitwise_and, "bits that two integers share"),
    _operator("bitwise_or", np.bitwise_or, "bits that one of two integers has"),
    Operator(
        "bitwise_not", (), same_shape, nothing_to_prepare, reference_not, "every bit the other way", elementwise=1
    ),
    _operator("bitwise_xor", np.bitwise_xor, "bits in which two integers differ"),
    _operator("shift_left", _shifted(np.left_shift), "bits moved up, others lost"),
    _operator("shift_right", _shifted(np.right_shift), "bits moved down, others lost"),
    _operator("right_shift", _right_shift, "floor of first / 2^second"),
)

"""Slot `choice`: how two tensors, each with 0 where the other one is chosen, become one; zeros lose their sign in it.

Rows without the slot copy what is chosen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Choice = Callable[[np.ndarray, np.ndarray, bool], np.ndarray]


def one_unless_zero(first: np.ndarray, second: np.ndarray, exchanged: bool) -> np.ndarray:
    """`first` where it is not 0, else `second`; the other way round when `exchanged`.

    Domain: real numbers; shapes broadcast; a NaN is not 0. Source: ONNX Runtime 1.31.1, Where, and run.

    >>> one_unless_zero(np.float32([-0.0, 3, 0]), np.float32([0, 0, -0.0]), False).tolist()
    [0.0, 3.0, -0.0]
    >>> one_unless_zero(np.float32([-0.0, 3, 0]), np.float32([0, 0, -0.0]), True).tolist()
    [-0.0, 3.0, 0.0]
    """
    first, second = (second, first) if exchanged else (first, second)
    return np.where(first != 0, first, second)


RULES: dict[str, Choice] = {"one_unless_zero": one_unless_zero}

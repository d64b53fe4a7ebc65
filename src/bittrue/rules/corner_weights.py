"""Slot `corner_weights`: the integer weights of the four neighbours of a place between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# (fraction down, fraction across) in [0, 1), binary32, to the weights of the upper left, upper right, lower left and
# lower right neighbour, int64, last axis.
CornerRule = Callable[[np.ndarray, np.ndarray], np.ndarray]

# What a weight of 1 is.
ONE = 255


def binary32_times_255_even(down: np.ndarray, across: np.ndarray) -> np.ndarray:
    """round_even(f32(f32(wy * wx) * 255)) with weights w and f32(1 - w), ties to even; they need not add up to 255.

    Source: docs/facts/caffe2.md 1 (Int8RoIAlign), verified by running.

    >>> binary32_times_255_even(np.float32([0.5]), np.float32([0.0])).tolist()  # 127.5
    [[128, 0, 128, 0]]
    """
    up, left = np.float32(1) - down, np.float32(1) - across
    products = np.stack([up * left, up * across, down * left, down * across], axis=-1)
    return np.rint(products * np.float32(ONE)).astype(np.int64)


RULES: dict[str, CornerRule] = {"binary32_times_255_even": binary32_times_255_even}

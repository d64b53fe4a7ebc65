"""Slot `scale_back`: an integer sum becomes real again with the scales of both factors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ScaleBackRule = Callable[[np.ndarray, "np.ndarray | np.float32", np.ndarray], np.ndarray]


def binary32_product_of_scales(total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray) -> np.ndarray:
    """f32(f32(total) * f32(rows * weights)): the scales are multiplied first.

    Every operation rounds to nearest, ties to even. Domain: total s32. Source: optimized/sse_tensor_utils.cc,
    reference/integer_ops/depthwise_conv.h, verified by running.

    >>> total, row, weight = np.array([5]), np.float32(0.1), np.float32([0.1])
    >>> [float(rule(total, row, weight)[0]) for rule in RULES.values()]
    [0.05000000447034836, 0.05000000074505806]
    """
    with np.errstate(all="ignore"):
        return total.astype(np.float32) * (rows * weights)


def binary32_one_by_one(total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray) -> np.ndarray:
    """f32(f32(f32(total) * weights) * rows): the scale of the weights first.

    Every operation rounds to nearest, ties to even. Domain: total s32. Source: reference/conv.h
    (HybridConvPerChannel), verified by running.
    """
    with np.errstate(all="ignore"):
        return total.astype(np.float32) * weights * rows


RULES: dict[str, ScaleBackRule] = {
    "binary32_product_of_scales": binary32_product_of_scales,
    "binary32_one_by_one": binary32_one_by_one,
}

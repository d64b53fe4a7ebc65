"""Slot `scale_back`: an integer sum becomes real again with the scales of both factors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats

_NO_START = np.float32(0)
ScaleBackRule = Callable[..., np.ndarray]


def binary32_product_of_scales(total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray) -> np.ndarray:
    """f32(f32(total) * f32(rows * weights)): the scales are multiplied first.

    Every operation rounds to nearest, ties to even. Domain: total s32. Source: optimized/sse_tensor_utils.cc,
    reference/integer_ops/depthwise_conv.h, verified by running.

    >>> total, row, weight = np.array([5]), np.float32(0.1), np.float32([0.1])
    >>> [float(rule(total, row, weight)[0]) for rule in (binary32_product_of_scales, binary32_one_by_one)]
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


def binary32_rows_first(total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray) -> np.ndarray:
    """f32(f32(f32(total) * rows) * weights): the scale of the row first.

    Every operation rounds to nearest, ties to even. Domain: total s32. Source: optimized/4bit/sse_fully_connected.cc,
    verified by running.
    """
    with np.errstate(all="ignore"):
        return total.astype(np.float32) * rows * weights


def binary32_one_by_one_by_fours(total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray) -> np.ndarray:
    """binary32_one_by_one for whole fours of channels (the last axis), binary32_rows_first behind them.

    Domain: total s32, a scale of the weights for every channel. Source: optimized/integer_ops/depthwise_conv_hybrid.h,
    verified by running.

    >>> found = binary32_one_by_one_by_fours(np.full(5, 3), np.float32(0.7), np.full(5, 0.1, np.float32))
    >>> found[[3, 4]].tolist()
    [0.21000000834465027, 0.20999999344348907]
    """
    whole = total.shape[-1] // 4 * 4
    found = binary32_one_by_one(total, rows, weights)
    found[..., whole:] = binary32_rows_first(total, rows, weights)[..., whole:]
    return found


def binary32_rows_then_fused(
    total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray, start: np.ndarray | np.float32 = _NO_START
) -> np.ndarray:
    """f32(start + f32(f32(total) * rows) * weights), the last product and the sum rounded once.

    Domain: total s32. Source: docs/facts/xnnpack.md 2.8, verified by running.

    >>> float(binary32_rows_then_fused(np.array([3]), np.float32(0.1), np.float32([0.1]), np.float32([-0.03]))[0])
    2.309680002809955e-09
    """
    with np.errstate(all="ignore"):
        return floats.fused_multiply_add(total.astype(np.float32) * rows, weights, start)


def binary32_rows_first_by_fours(
    total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray, start: np.ndarray | np.float32 = _NO_START
) -> np.ndarray:
    """f32(start + f32(f32(f32(total) * rows) * weights)) for whole fours of channels (the last axis) of several rows;
    binary32_rows_then_fused behind them and for a single row.

    Domain: total s32 [..., rows, channels]. Source: optimized/4bit/neon_fully_connected.cc as compilers for aarch64
    join its operations, verified by running on aarch64.

    >>> total, scales, start = np.full((2, 5), 3), np.full(5, 0.1, np.float32), np.full(5, -0.03, np.float32)
    >>> binary32_rows_first_by_fours(total, np.float32(0.1), scales, start)[0, [0, 4]].tolist()
    [1.862645149230957e-09, 2.309680002809955e-09]
    """
    found = np.array(binary32_rows_then_fused(total, rows, weights, start))
    if total.shape[-2:-1] != (1,):
        whole = total.shape[-1] // 4 * 4
        with np.errstate(all="ignore"):
            found[..., :whole] = (start + binary32_rows_first(total, rows, weights))[..., :whole]
    return found


def binary32_product_then_fused(
    total: np.ndarray, rows: np.ndarray | np.float32, weights: np.ndarray, start: np.ndarray | np.float32 = _NO_START
) -> np.ndarray:
    """f32(start + f32(total) * f32(rows * weights)), the last product and the sum rounded once; without a start the
    product, which may be -0.

    Domain: total s32. Source: mlas/lib/qpostprocessor.cpp as compilers for aarch64 join its operations, verified by
    running on aarch64.

    >>> float(binary32_product_then_fused(np.array([3]), np.float32(0.1), np.float32([0.1]), np.float32([-0.03]))[0])
    2.7939677238464355e-09
    >>> binary32_product_then_fused(np.array([-3]), np.float32(0), np.float32([1])).tolist()
    [-0.0]
    """
    with np.errstate(all="ignore"):
        if start is _NO_START:
            return np.asarray(total.astype(np.float32) * (rows * weights))
        return floats.fused_multiply_add(total.astype(np.float32), rows * weights, start)


RULES: dict[str, ScaleBackRule] = {
    "binary32_product_of_scales": binary32_product_of_scales,
    "binary32_one_by_one": binary32_one_by_one,
    "binary32_rows_first": binary32_rows_first,
    "binary32_one_by_one_by_fours": binary32_one_by_one_by_fours,
    "binary32_rows_then_fused": binary32_rows_then_fused,
    "binary32_rows_first_by_fours": binary32_rows_first_by_fours,
    "binary32_product_then_fused": binary32_product_then_fused,
}
# Rules that take what the result is added to, as it is part of their last rounding.
WITH_START = frozenset({"binary32_rows_then_fused", "binary32_rows_first_by_fours", "binary32_product_then_fused"})
# Rules with which products with nothing but zeros are skipped, so that only a bias is left.
SKIPS_ZEROS = frozenset(RULES) - {"binary32_rows_then_fused"}

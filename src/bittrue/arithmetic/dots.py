"""binary32 dot products, each named by the order of its operations.

Matrices are `[rows, n]`, vectors `[..., n]`, results `[..., rows]`. Products are rounded first, then added; where the
name says fused, a product and its sum are rounded once. Four lanes collect the products of positions i, i + 4, i + 8,
...; what does not fill four lanes is the tail.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bittrue.arithmetic.floats import fused_multiply_add

F32 = np.ndarray
# (matrix [rows, n], x [..., n], start) -> start + x matrix^T; `start` broadcasts over [..., rows].
DotProduct = Callable[[F32, F32, "F32 | float"], F32]
LANES = 4


def _lanes(matrix: F32, x: F32, first: int, stop: int, stride: int) -> F32:
    """Sums of the products of blocks first, first + stride, ... below stop, one per lane: [..., rows, lanes]."""
    total = np.zeros((*x.shape[:-1], matrix.shape[0], LANES), np.float32)
    for block in range(first, stop, stride):
        at = slice(block * LANES, (block + 1) * LANES)
        total += matrix[:, at] * x[..., None, at]
    return total


def _add_tail(total: F32, matrix: F32, x: F32) -> F32:
    for position in range(matrix.shape[1] // LANES * LANES, matrix.shape[1]):
        total = total + matrix[:, position] * x[..., position, None]
    return total


def lanes_4_in_order(matrix: F32, x: F32, start: F32 | float = 0.0) -> F32:
    """(start + (((l0 + l1) + l2) + l3)) + tail, one product after the other.

    Source: the runtime's vector kernels on processors without a horizontal sum, read; verified by running.

    2^24 swallows every single 1 (a tie, to even), but not a sum of two.

    >>> matrix = np.float32([[2**24, 1, 1, 1, 1]])
    >>> lanes_4_in_order(matrix, np.ones(5, np.float32)), lanes_4_by_halves(matrix, np.ones(5, np.float32))
    (array([1.6777216e+07], dtype=float32), array([1.677722e+07], dtype=float32))
    """
    with np.errstate(all="ignore"):
        lanes = _lanes(matrix, x, 0, matrix.shape[1] // LANES, 1)
        total = ((lanes[..., 0] + lanes[..., 1]) + lanes[..., 2]) + lanes[..., 3]
        return _add_tail(start + total, matrix, x)


def _halves(lanes: F32) -> F32:
    return (lanes[..., 0] + lanes[..., 2]) + (lanes[..., 1] + lanes[..., 3])


def lanes_4_by_halves(matrix: F32, x: F32, start: F32 | float = 0.0) -> F32:
    """start + (((l0 + l2) + (l1 + l3)) + tail), one product after the other.

    A matrix of one row has four sets of four lanes, s0 to s3: block b goes to set b mod 4 as long as four blocks are
    left, the last up to three blocks go to s0, s1, s2. They are added as s0 + (s1 + (s2 + s3)), lane by lane.
    Source: a linear algebra library's row-major matrix-vector and dot products, read; verified by running.
    """
    rows, count = matrix.shape
    blocks = count // LANES
    with np.errstate(all="ignore"):
        if rows != 1 or blocks == 0:
            total = _halves(_lanes(matrix, x, 0, blocks, 1))
        else:
            full = max(blocks // 4, 1) * 4
            sets = [_lanes(matrix, x, s, min(full, blocks), 4) for s in range(min(4, blocks))]
            for s in range(blocks - full):
                sets[s] = sets[s] + _lanes(matrix, x, full + s, full + s + 1, 1)
            while len(sets) > 1:
                last = sets.pop()
                sets[-1] = sets[-1] + last
            total = _halves(sets[0])
        return start + _add_tail(total, matrix, x)


def _fused_lanes(matrix: F32, x: F32) -> F32:
    total = np.zeros((*x.shape[:-1], matrix.shape[0], LANES), np.float32)
    for first in range(0, matrix.shape[1] - LANES + 1, LANES):
        at = slice(first, first + LANES)
        total = fused_multiply_add(matrix[:, at], x[..., None, at], total)
    return total


def add_pairs(lanes: F32) -> F32:
    """(l0 + l1) + (l2 + l3) along the last axis.

    >>> add_pairs(np.float32([2**24, 1, 1, 1])).tolist()
    16777218.0
    """
    return (lanes[..., 0] + lanes[..., 1]) + (lanes[..., 2] + lanes[..., 3])


def _fused_in_order(total: F32, matrix: F32, x: F32, first: int) -> F32:
    for position in range(first, matrix.shape[1]):
        total = fused_multiply_add(matrix[:, position], x[..., position, None], total)
    return total


def fused_lanes_4_in_pairs(matrix: F32, x: F32, start: F32 | float = 0.0) -> F32:
    """(start + ((l0 + l1) + (l2 + l3))) + tail, every product and its sum rounded once.

    Source: the runtime's vector kernels for aarch64, their machine code; verified by running.

    >>> one = np.float32(1 + 2**-12)
    >>> fused_lanes_4_in_pairs(np.full((1, 5), one), np.full(5, one), -5.0).tolist()
    [0.0024414658546447754]
    >>> lanes_4_in_order(np.full((1, 5), one), np.full(5, one), -5.0).tolist()
    [0.00244140625]
    """
    with np.errstate(all="ignore"):
        total = start + add_pairs(_fused_lanes(matrix, x))
        return _fused_in_order(total, matrix, x, matrix.shape[1] // LANES * LANES)


def fused_lanes_4_or_in_order(matrix: F32, x: F32, start: F32 | float = 0.0) -> F32:
    """start + ((l0 + l1) + (l2 + l3)), where the tail is part of the last lanes, or start + the products in order from
    +0 on in matrices of fewer than 4 rows or columns; every product and its sum is rounded once.

    Lanes of the tail's last step that the tail does not fill multiply the elements before it by 0. Source: the
    runtime's matrix-vector kernel for aarch64, its machine code; verified by running.

    >>> matrix, x = np.float32([[2**24, 1, 1, 1, 1, 1]] * 4), np.ones(6, np.float32)
    >>> fused_lanes_4_or_in_order(matrix, x)[0].tolist(), fused_lanes_4_or_in_order(matrix[:3], x)[0].tolist()
    (16777220.0, 16777216.0)
    """
    rows, count = matrix.shape
    with np.errstate(all="ignore"):
        if rows < LANES or count < LANES:
            return start + _fused_in_order(np.zeros((*x.shape[:-1], rows), np.float32), matrix, x, 0)
        lanes = _fused_lanes(matrix, x)
        if count % LANES:
            last = x[..., -LANES:].copy()
            last[..., : LANES - count % LANES] = 0
            lanes = fused_multiply_add(matrix[:, -LANES:], last[..., None, :], lanes)
        return start + add_pairs(lanes)


def sums(x: F32, product: DotProduct) -> F32:
    """Sums along the last axis in the order of `product`, as of a dot product with ones in a matrix of many rows.

    >>> sums(np.float32([[1, 2, 3, 4, 5]]), lanes_4_in_order).tolist()
    [15.0]
    """
    return product(np.ones((2, x.shape[-1]), np.float32), x, 0.0)[..., 0]

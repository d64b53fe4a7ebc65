"""Products of binary32 matrices whose sums follow the tiles that libraries cut results into.

Weights are [M, K], rows [n, K], results [n, M]. The rows may be some of `count`, from row `first` on, which is a
multiple of eight; what a tile is goes by all of them. Every result is added up from +0 on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bittrue.arithmetic.dots as dots
import bittrue.arithmetic.floats as floats

# (weights, rows, count, first) -> weights rows^T.
TiledProduct = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]
_Add = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

# Rows and columns of a tile, and terms that two chains take together.
_TALL, _WIDE, _TOGETHER = 8, 4, 8
# Smaller products are made result by result.
_SMALL = 20


def _rounded(total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(total + a * b)


def _fused(total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return floats.fused_multiply_add(a, b, total)


def _chains(weights: np.ndarray, rows: np.ndarray, count: int, whole: int, add: _Add) -> np.ndarray:
    """Terms below `whole` take turns in chains, whose sum, by neighbours, takes the rest one by one."""
    parts = [np.zeros((len(rows), len(weights)), np.float32) for _ in range(count)]
    by_term, own = np.ascontiguousarray(weights.T), np.ascontiguousarray(rows.T)[:, :, None]
    for k in range(whole):
        parts[k % count] = add(parts[k % count], own[k], by_term[k])
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    for k in range(whole, len(by_term)):
        parts[0] = add(parts[0], own[k], by_term[k])
    return parts[0]


def _in_turns(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Every result by itself: fours of products take turns in two sets of lanes, of which the first takes one that is
    left of pairs; (l0 + l2) + (l1 + l3) of both sets' sum, and then the last up to three products.
    """
    products = rows[:, None, :] * weights
    depth = products.shape[-1]
    fours = [products[..., k : k + 4] for k in range(0, depth - 3, 4)]
    if not fours:
        total = products[..., 0]
        rest = 1
    else:
        pairs = len(fours) // 2 * 2
        sets = fours[:2]
        for k in range(2, pairs):
            sets[k % 2] = sets[k % 2] + fours[k]
        lanes = sets[0] + sets[1] if pairs else sets[0]
        if 0 < pairs < len(fours):
            lanes = lanes + fours[-1]
        total = (lanes[..., 0] + lanes[..., 2]) + (lanes[..., 1] + lanes[..., 3])
        rest = 4 * len(fours)
    for k in range(rest, depth):
        total = total + products[..., k]
    return np.asarray(total)


def in_tiles(weights: np.ndarray, rows: np.ndarray, count: int, first: int = 0) -> np.ndarray:
    """f32(total + f32(w * x)) from +0 on, in an order that goes by where the result lies.

    A single row, or single weights, add up in four lanes (`dots.lanes_4_by_halves`). Where M + K and the rows are fewer
    than 20 every result is made by itself (`_in_turns`). Else whole fours of rows meet eights of weights in one chain,
    four weights behind the last eight in two chains (k mod 2 as far as eights of terms go), and the last up to three
    weights in four (k mod 4 as far as fours go); rows behind the last four have one chain.

    Source: a library of matrix templates for vectors of four lanes without fused operations, read; verified by running.

    >>> weights, row = np.ones((9, 4), np.float32), np.float32([[2**24, 1, 1, 1]])
    >>> in_tiles(weights, np.tile(row, (13, 1)), 13)[[0, 0, 12], [0, 8, 8]].tolist()
    [16777216.0, 16777218.0, 16777216.0]
    """
    with np.errstate(all="ignore"):
        many, depth = weights.shape
        if count == 1:
            return dots.lanes_4_by_halves(weights, rows)
        if many == 1:
            return dots.lanes_4_by_halves(rows, weights[0])[:, None]
        if many + count + depth < _SMALL:
            return _in_turns(weights, rows)
        found = _chains(weights, rows, 1, depth, _rounded)
        inside, tall = max(0, min(len(rows), count // _WIDE * _WIDE - first)), many // _TALL * _TALL
        four = many // _WIDE * _WIDE
        found[:inside, tall:four] = _chains(
            weights[tall:four], rows[:inside], 2, depth // _TOGETHER * _TOGETHER, _rounded
        )
        found[:inside, four:] = _chains(weights[four:], rows[:inside], 4, depth // 4 * 4, _rounded)
        return found


def fused_in_tiles(weights: np.ndarray, rows: np.ndarray, count: int, first: int = 0) -> np.ndarray:
    """f32(total + w * x) with one rounding from +0 on, term by term in tiles of eight rows and eight weights.

    From eight terms on, the last whole four of terms is walked as 1, 2, 3, 0, but where both the row and the weights
    are among the first four of a tile. A single row that meets four weights or more of four terms or more does so in
    four lanes by k mod 4, (l0 + l1) + (l2 + l3), where terms behind the last four keep their lanes counted from the
    end.

    Source: a library of matrix kernels for aarch64 and a kernel for single columns beside it, read; verified by
    running.

    >>> weights, row = np.ones((5, 8), np.float32), np.float32([[0, 0, 0, 0, 1, 0, 2**24, -(2**24)]])
    >>> fused_in_tiles(weights, np.tile(row, (2, 1)), 2)[0].tolist()
    [0.0, 0.0, 0.0, 0.0, 1.0]
    """
    with np.errstate(all="ignore"):
        many, depth = weights.shape
        if count == 1 and many >= _WIDE and depth >= _WIDE:
            return _row_in_lanes(weights, rows[0])[None]
        found = _chains(weights, rows, 1, depth, _fused)
        if depth < _TOGETHER:
            return found
        turned = np.arange(depth)
        last = depth // 4 * 4 - 4
        turned[last : last + 4] = last + 1, last + 2, last + 3, last
        late = _chains(weights[:, turned], rows[:, turned], 1, depth, _fused)
        upper = [np.arange(begin, begin + size) % _TALL < 4 for begin, size in ((first, len(rows)), (0, many))]
        return np.where(upper[0][:, None] & upper[1], found, late)


def _row_in_lanes(weights: np.ndarray, row: np.ndarray) -> np.ndarray:
    depth = row.size
    lanes = np.zeros((len(weights), 4), np.float32)
    for k in range(0, depth - 3, 4):
        lanes = _fused(lanes, weights[:, k : k + 4], row[k : k + 4])
    if depth % 4:
        last = row[-4:].copy()
        last[: 4 - depth % 4] = 0
        lanes = _fused(lanes, weights[:, -4:], last)
    return np.asarray((lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3]))

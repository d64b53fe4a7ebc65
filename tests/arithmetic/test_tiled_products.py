"""Products of matrices in tiles against sums that are written down term by term."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bittrue.arithmetic import floats, tiled_products

F32 = np.float32


_NOTHING = F32(0)


def _chain(x: np.ndarray, w: np.ndarray, terms: list[int], start: np.float32 = _NOTHING) -> np.float32:
    for k in terms:
        start = start + x[k] * w[k]
    return start


def _in_tile(x: np.ndarray, w: np.ndarray, filters: int, at: int, row: int, rows: int) -> np.float32:
    depth = x.size
    if row >= rows // 4 * 4 or at < filters // 8 * 8:
        return _chain(x, w, list(range(depth)))
    if at < filters // 4 * 4:
        whole = depth // 8 * 8
        total = _chain(x, w, list(range(0, whole, 2))) + _chain(x, w, list(range(1, whole, 2)))
    else:
        whole = depth // 4 * 4
        parts = [_chain(x, w, list(range(first, whole, 4))) for first in range(4)]
        total = (parts[0] + parts[1]) + (parts[2] + parts[3])
    return _chain(x, w, list(range(whole, depth)), total)


@given(rows=st.integers(2, 13), filters=st.integers(2, 20), depth=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_tiles_against_sums_of_single_terms(rows: int, filters: int, depth: int, seed: int) -> None:
    if rows + filters + depth < 20:
        depth = 20
    rng = np.random.default_rng(seed)
    x, w = (rng.standard_normal((n, depth)).astype(F32) for n in (rows, filters))
    found = tiled_products.in_tiles(w, x, rows)
    for row, at in np.ndindex(rows, filters):
        assert found[row, at] == _in_tile(x[row], w[at], filters, at, row, rows)
    later = tiled_products.in_tiles(w, x[8:], rows, 8) if rows > 8 else found[8:]
    assert later.tobytes() == found[8:].tobytes()


@given(rows=st.integers(2, 10), filters=st.integers(1, 10), depth=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_fused_tiles_against_sums_of_single_terms(rows: int, filters: int, depth: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = (rng.standard_normal((n, depth)).astype(F32) for n in (rows, filters))
    found = tiled_products.fused_in_tiles(w, x, rows)
    for row, at in np.ndindex(rows, filters):
        order = list(range(depth))
        if depth >= 8 and (row % 8 > 3 or at % 8 > 3):
            last = depth // 4 * 4 - 4
            order[last : last + 4] = [last + 1, last + 2, last + 3, last]
        total = F32(0)
        for k in order:
            total = floats.fused_multiply_add(x[row, k], w[at, k], total)
        assert found[row, at] == total


def test_lanes_of_a_single_row_end_with_the_row() -> None:
    """2^24 and 1 meet in lane 0, where 1 is lost, unless the ends of rows are counted from behind."""
    w = np.ones((4, 9), F32)
    for at, expected in ((4, 2.0**24), (5, 2.0**24), (8, 2.0**24)):
        x = np.zeros((1, 9), F32)
        x[0, 0], x[0, at] = 2.0**24, 1
        assert tiled_products.fused_in_tiles(w, x, 1)[0, 0] == expected
    x[0] = 0
    x[0, [3, 8]] = 2.0**24, 1
    x[0, 2] = -(2.0**24)
    assert tiled_products.fused_in_tiles(w, x, 1)[0, 0] == 0


@given(depth=st.integers(1, 16), seed=st.integers(0, 2**32 - 1))
def test_few_of_all_are_made_result_by_result(depth: int, seed: int) -> None:
    """Two sets of four lanes take turns as far as eights go."""
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((2, depth)).astype(F32), rng.standard_normal((2, depth)).astype(F32)
    if depth + 4 >= 20:
        return
    found = tiled_products.in_tiles(w, x, 2)
    for row, at in np.ndindex(2, 2):
        p = x[row] * w[at]
        sets = [p[k : k + 4] for k in range(0, depth - 3, 4)]
        if not sets:
            total, rest = p[0], 1
        else:
            lanes = sets[0] if len(sets) == 1 else sets[0] + sets[1]
            lanes = lanes + sets[2] if len(sets) == 3 else lanes
            total, rest = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]), 4 * len(sets)
        for k in range(rest, depth):
            total = total + p[k]
        assert found[row, at] == total

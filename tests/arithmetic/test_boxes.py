"""boxes against exact fractions, each operation rounded to binary32 by the oracle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bittrue.arithmetic import boxes
from bittrue.arithmetic.exact import nearest_binary


def rounded(value: Fraction) -> Fraction:
    return Fraction(nearest_binary(value))


def overlap(one: list[float], two: list[float]) -> float:
    a, b = ([Fraction(v) for v in box] for box in (one, two))
    areas = [rounded(rounded(c[2] - c[0]) * rounded(c[3] - c[1])) for c in (a, b)]
    if min(areas) <= 0:
        return 0.0
    high = max(rounded(min(a[2], b[2]) - max(a[0], b[0])), Fraction(0))
    wide = max(rounded(min(a[3], b[3]) - max(a[1], b[1])), Fraction(0))
    shared = rounded(high * wide)
    return float(rounded(shared / rounded(rounded(areas[0] + areas[1]) - shared)))


def test_overlap_equals_oracle() -> None:
    rng = np.random.default_rng(0)
    corners = rng.random((400, 2, 4)).astype(np.float32)
    grid = np.round(rng.random((400, 2, 4)) * 3).astype(np.float32)
    for pairs in (corners, grid):
        pairs = boxes.sorted_corners(pairs)
        got = boxes.intersection_over_union(pairs[:, 0], pairs[:, 1])
        assert got.dtype == np.float32
        assert got.tolist() == [overlap(*pair) for pair in pairs.tolist()]


def test_sorted_corners() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((50, 4)).astype(np.float32)
    expected = [[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in x.tolist()]
    assert boxes.sorted_corners(x).tolist() == expected


def test_nan() -> None:
    nan = float("nan")
    # The second corner is taken only where it is truly smaller or larger.
    assert np.isnan(boxes.sorted_corners([nan, 0, 1, 1])).tolist() == [True, False, True, False]
    assert boxes.sorted_corners([1, 0, nan, 1]).tolist() == [1, 0, 1, 1]
    assert np.isnan(boxes.intersection_over_union([0, 0, nan, 1], [0, 0, 1, 1]))
    assert boxes.intersection_over_union([0, 0, nan, 1], [0, 0, 0, 1]) == 0

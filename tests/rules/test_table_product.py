"""Slot table_product: sums by tables against single operations on fractions, one element at a time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bittrue.rules import table_product
from support.rounding import f32

F32 = np.float32
TWO = (-1, 1)


def element(row: list[Fraction], column: list[int], scales: list[Fraction], points: list[int] | None) -> Fraction:
    block = len(row) // len(scales)
    group = min(block, 64)
    low = high = Fraction(0)
    for begin in range(0, len(row), group):
        fours = [row[k : k + 4] for k in range(begin, begin + group, 4)]
        t = max(f32(f32(f32(abs(a) + abs(b)) + f32(abs(c) + abs(d))) / 127) for a, b, c, d in fours)
        inverse = f32(1 / t) if t else Fraction(0)
        sums = [0, 0]
        for place, four in enumerate(fours):
            for bit in (0, 1):
                signed = [TWO[column[begin + 4 * place + i] >> bit & 1] * value for i, value in enumerate(four)]
                total = signed[0]
                for value in signed[1:]:
                    total = f32(total + value)
                sums[bit] += max(-128, min(127, round(f32(total * inverse))))
        bias = Fraction(0)
        for first in range(0, len(fours), 8):
            lanes = [-f32(f32(f32(a + b) + c) + d) for a, b, c, d in fours[first : first + 8]]
            halves = [f32(lanes[4 + i] + lanes[i]) for i in range(4)]
            bias = f32(bias + f32(f32(halves[0] + halves[2]) + f32(halves[1] + halves[3])))
        scale = scales[begin // block]
        low = f32(f32(sums[0] * t + bias) * scale + low)
        high = f32(f32(sums[1] * t) * scale + high)
        if points is not None:
            low = f32(f32((points[begin // block] - 2) * scale) * (2 * bias) + low)
    return f32(low / 2 + high)


@pytest.mark.parametrize("pointed", [False, True])
@pytest.mark.parametrize(("depth", "block"), [(64, 32), (128, 64), (256, 128)])
def test_sums_by_tables(depth: int, block: int, pointed: bool) -> None:
    """binary32_tables_of_fours, also of a group of zeros alone."""
    rng = np.random.default_rng([depth, pointed])
    rows = rng.standard_normal((2, depth)).astype(F32)
    rows[1, :block] = 0
    columns = rng.integers(0, 4, (3, depth)).astype(np.uint8)
    scales = np.exp2(rng.uniform(-6, 0, (3, depth // block))).astype(F32)
    points = rng.integers(0, 4, scales.shape) if pointed else None
    found = table_product.RULES["binary32_tables_of_fours"](rows, columns, scales, points)
    for m in range(2):
        for n in range(3):
            exact = [[Fraction(float(x)) for x in line] for line in (rows[m], scales[n])]
            wanted = element(exact[0], columns[n].tolist(), exact[1], None if points is None else points[n].tolist())
            assert Fraction(float(found[m, n])) == wanted

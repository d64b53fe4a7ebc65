"""Slot row_blocks: quantized values and scales against single operations on fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bittrue.rules import row_blocks

F32 = np.float32


def nearest(value: Fraction) -> np.float32:
    """The binary32 number nearest to a value, found among neighbours; ties to the even one."""
    guess = F32(float(value))
    candidates = [guess, np.nextafter(guess, F32(np.inf)), np.nextafter(guess, F32(-np.inf))]
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - value), int(c.view(np.uint32)) & 1))


@pytest.mark.parametrize("block", [16, 32])
@pytest.mark.parametrize("depth", [1, 16, 50])
def test_largest_becomes_127(block: int, depth: int) -> None:
    """binary32_over_127, ties among the quantized values."""
    rng = np.random.default_rng([block, depth])
    rows = (rng.standard_normal((3, depth)) * np.exp2(rng.uniform(-6, 6, (3, depth)))).astype(F32)
    rows[0, : depth // 2] = np.round(rows[0, : depth // 2] * 2) / 2
    rows[2] = 0
    quantized, scales = row_blocks.RULES["binary32_over_127"](rows, block)
    blocks = -(-depth // block)
    assert quantized.shape == (3, blocks, block)
    for m in range(3):
        for n in range(blocks):
            part = rows[m, n * block : (n + 1) * block]
            largest = max(abs(Fraction(float(v))) for v in part)
            assert scales[m, n] == nearest(largest / 127)
            inverse = Fraction(float(nearest(127 / largest))) if largest else Fraction(0)
            wanted = [round(Fraction(float(nearest(Fraction(float(v)) * inverse)))) for v in part]
            assert quantized[m, n].tolist() == [*wanted, *[0] * (block - len(part))]

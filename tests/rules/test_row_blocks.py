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
    found = row_blocks.RULES["binary32_over_127"](rows, block)
    quantized, scales = found.values, found.scales
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


def test_rows_of_other_kernels() -> None:
    """The rules for aarch64 against single operations, halves among the quotients, rows of zeros and a NaN."""
    rng = np.random.default_rng(16)
    rows = (rng.integers(-254, 255, (6, 64)) / 2).astype(F32)
    rows[0, :32] = 0
    rows[:, [0, 33]] = 127
    rows[1] *= F32(np.pi)
    for name, rule in row_blocks.RULES.items():
        found = rule(rows, 32)
        quantized, scales = found.values, found.scales
        assert found.depth == 64
        if name == "binary32_range_of_row":
            continue
        assert found.zero_points is None
        for m, n in np.ndindex(6, 2):
            part = rows[m, 32 * n : 32 * n + 32]
            largest = max(abs(Fraction(float(v))) for v in part)
            scale = Fraction(float(nearest(largest / 127)))
            if name == "binary32_away_by_inverse":
                inverse = nearest(1 / scale) if scale else F32(0)
            else:
                inverse = nearest(127 / largest) if largest else F32(0)
            if name == "binary32_inverse_of_scale":
                scale = Fraction(float(nearest(1 / Fraction(float(inverse))))) if inverse else Fraction(0)
            assert Fraction(float(scales[m, n])) == scale, name
            products = [Fraction(float(nearest(Fraction(float(v)) * Fraction(float(inverse))))) for v in part]
            away = [int(p) if p.denominator == 1 else int(p + Fraction(1 if p > 0 else -1, 2)) for p in products]
            assert quantized[m, n].tolist() == (away if "away" in name else [round(p) for p in products]), name


def test_range_of_a_row() -> None:
    """binary32_range_of_row: ends of both signs, of one sign, nothing, and a zero point between two numbers."""
    rows = np.zeros((5, 32), F32)
    rows[0, :3], rows[1, :3], rows[2, :3] = (-1, 2, 0.7), (3, 1, 0.4), (-3, -1, -0.4)
    rows[3, :3] = (-127.5, 127.5, 0.5)
    rows[4, :2] = np.nan, 5
    found = row_blocks.RULES["binary32_range_of_row"](rows, 16)
    quantized, scales = found.values, found.scales
    assert found.zero_points is not None
    assert found.zero_points.tolist() == [-43, -128, 127, 0, 127]
    factors = [Fraction(float(nearest(Fraction(255, size)))) for size in (3, 3, 3, 255, 255)]
    assert scales[:, 0].tolist() == [nearest(1 / factor) for factor in factors]
    assert quantized[:, 0, :3].tolist() == [[-128, 127, 17], [127, -43, -94], [-128, 42, 93], [-128, 127, 1], [127] * 3]


def test_row_blocks_are_told_apart() -> None:
    rng = np.random.default_rng(17)
    rows = (rng.integers(-254, 255, (64, 64)) / 2).astype(F32) * F32(1.7)
    rows[0, 3] = np.nan
    found = [rule(rows, 32) for rule in row_blocks.RULES.values()]
    results = {blocks.values.tobytes() + blocks.scales.tobytes() for blocks in found}
    assert len(results) == len(row_blocks.RULES)

"""Sums of products in a fixed order against Python's own floats."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from bittrue.arithmetic.ordered_sums import add_products


def to_binary32(value: float) -> float:
    """The nearest binary32 value; of a sum or product of two of them in binary64 this is the single rounding."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


@pytest.mark.parametrize(
    ("batch", "rows", "depth", "columns"), [((), 3, 50, 4), ((2, 3), 2, 17, 3), ((), 0, 3, 2), ((), 2, 0, 3)]
)
def test_add_products_equals_the_plain_loop(batch: tuple[int, ...], rows: int, depth: int, columns: int) -> None:
    rng = np.random.default_rng(depth)
    a = rng.standard_normal((*batch, rows, depth)).astype(np.float32)
    b = rng.standard_normal((depth, columns)).astype(np.float32)
    total = rng.standard_normal((*batch, rows, columns)).astype(np.float32)
    expected = total.copy()
    for index in np.ndindex(*expected.shape):
        acc = float(expected[index])
        for k in range(depth):
            acc = to_binary32(acc + to_binary32(float(a[(*index[:-1], k)]) * float(b[k, index[-1]])))
        expected[index] = acc
    add_products(total, a, b)
    np.testing.assert_array_equal(total, expected)


def test_order_and_single_roundings_show() -> None:
    a = np.float32([[1 + 2**-12, -(1 + 2**-11)]])
    total = np.zeros((1, 1), np.float32)
    add_products(total, a, np.float32([[1 + 2**-12], [1]]))
    assert total[0, 0] == 0  # a fused multiply-add would keep 2^-24

"""Verdicts on bytes: nothing is rounded away, and what cannot be compared says so."""

from __future__ import annotations

import numpy as np
import pytest

from bittrue.compare import difference
from bittrue.compare.difference import Difference, summary


def test_equal_bytes() -> None:
    x = np.arange(-128, 128).astype(np.int8)
    assert difference("y", x, x.copy()).equal
    assert difference("y", x[None], x[:, None]).equal
    assert str(difference("y", x, x)) == "equal"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
def test_extremes_do_not_wrap(dtype: type) -> None:
    info = np.iinfo(dtype)
    found = difference("y", np.array([info.min, 0, 5], dtype), np.array([info.max, 0, 5], dtype))
    assert not found.equal
    assert found.largest == float(info.max - info.min)
    assert found.bytes == 3 * np.dtype(dtype).itemsize


def test_bytes_are_counted_not_values() -> None:
    found = difference("y", np.int16([0x0101, 7]), np.int16([0x0102, 7]))
    assert (found.differing, found.bytes, found.largest) == (1, 4, 1.0)


def test_floats_by_bytes() -> None:
    zero = difference("y", np.float32([0.0]), np.float32([-0.0]))
    assert not zero.equal
    assert zero.largest == 0
    nan = difference("y", np.float32([np.nan, 1]), np.float32([1, 1]))
    assert not nan.equal
    assert nan.largest is None
    same = np.float32([np.nan, np.inf])
    assert difference("y", same, same.copy()).equal


@pytest.mark.parametrize("other", [np.zeros(3, np.float32), np.zeros(4, np.int8), np.zeros((3, 2), np.int8)])
def test_no_verdict_is_not_equal(other: np.ndarray) -> None:
    found = difference("y", np.zeros(3, np.int8), other)
    assert found.incomparable
    assert not found.equal
    assert "no verdict" in str(found)
    assert "no verdict" in summary([Difference("a", 0, 4), found])


def test_booleans() -> None:
    assert difference("y", np.array([True, False]), np.array([True, True])).largest == 1

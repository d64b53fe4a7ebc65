"""range against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import runs_in_runtime


def numbers(dtype: str, start: float, limit: float, delta: float) -> bytes:
    inputs = [T(dtype, (), data=np.array(value)) for value in (start, limit, delta)]
    return single("RANGE", None, inputs, [T(dtype, (), name="y")])


@given(st.sampled_from(["s32", "s64"]), st.integers(-60, 60), st.integers(-60, 60), st.integers(-9, 9))
def test_integers(dtype: str, start: int, limit: int, delta: int) -> None:
    if start != limit:  # the interpreter cannot hand out results without elements that it computed while preparing
        check(numbers(dtype, start, limit, delta), [[]])


@given(st.floats(-60, 60, width=32), st.floats(-60, 60, width=32), st.floats(-9, 9, width=16))
def test_floats(start: float, limit: float, delta: float) -> None:
    if start != limit and not 0 < abs(delta) < 0.01:
        check(numbers("f32", start, limit, delta), [[]])


def ends(bits: int) -> st.SearchStrategy[int]:
    """Numbers of a type near its ends, its middle and the ends of narrower types."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    near = [low, high, low // 2, high // 2, -(2**31), 2**31 - 1, 2**30, 0, high // 7, low // 50]
    return st.builds(lambda number, by: min(max(number + by, low), high), st.sampled_from(near), st.integers(-3, 3))


@given(st.sampled_from([32, 64]), st.data())
def test_integers_whose_difference_leaves_the_type(bits: int, data: st.DataObject) -> None:
    start, limit, delta = (data.draw(ends(bits)) for _ in range(3))
    difference = (limit - start + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    count = abs(difference) // abs(delta or 1) % 2**32
    if not 0 <= count < 10**5 and count < 2**31 - 1:
        return  # memory, which the runtime takes and bittrue may not
    operands = [T(f"s{bits}", ()) for _ in range(3)]
    values = [np.array(value, f"i{bits // 8}") for value in (start, limit, delta)]
    check(single("RANGE", None, operands, [T(f"s{bits}", (0,), name="y")]), [values])


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 3.4e38, -3.4e38, 2.0**31, 2.0**32, 0.3]


@given(st.sampled_from(SPECIAL), st.sampled_from(SPECIAL), st.sampled_from(SPECIAL))
def test_special_floats(start: float, limit: float, delta: float) -> None:
    with np.errstate(all="ignore"):
        count = abs((np.float32(limit) - np.float32(start)) / np.float32(delta))
    if not 10**5 < count < 2**31:
        operands = [T("f32", ()) for _ in range(3)]
        values = [np.array(value, np.float32) for value in (start, limit, delta)]
        check(single("RANGE", None, operands, [T("f32", (0,), name="y")]), [values])


def test_floats_are_added_one_after_the_other() -> None:
    values = bittrue.load(numbers("f32", 0.1, 2.0, 0.3)).prepare().run()["y"]
    assert values.tolist() == np.float32([0.1, 0.4, 0.70000005, 1.0, 1.3, 1.5999999, 1.8999999]).tolist()


@pytest.mark.parametrize("dtype", ["s32", "s64", "f32"])
@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 3, 0), (0, 3, -1), (3, 0, 1)])
def test_errors(dtype: str, start: int, limit: int, delta: int) -> None:
    content = numbers(dtype, start, limit, delta)
    with pytest.raises(bittrue.InvalidModelError, match="BT-RANGE"):
        bittrue.load(content).prepare()
    assert not runs_in_runtime(content, [])


def test_too_many_numbers_are_refused_before_they_are_made() -> None:
    with pytest.raises(bittrue.ResourceError, match="BT-MEMORY"):
        bittrue.load(numbers("s32", 0, 2**31 - 1, 1)).prepare()
    with pytest.raises(bittrue.InvalidModelError, match="BT-RANGE"):
        bittrue.load(numbers("f32", 0, 1, 1e-30)).prepare()

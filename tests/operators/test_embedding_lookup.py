"""embedding_lookup against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T, single
from support.differential import check, only_output
from support.strategies import scales, seeded, seeds

PLAIN = ("f32", "f16", "f64", "s8", "u8", "s16", "s32", "u32", "s64", "bool")


def lookup(table: T, count: int, output: str, constant: np.ndarray | None = None) -> bytes:
    scale = 0.5 if isinstance(table.scale, list) else table.scale
    parameters = (scale, table.zero_point) if output == table.dtype else (None, 0)
    inputs = [T("s32", (count,), data=constant), table]
    return single("EMBEDDING_LOOKUP", None, inputs, [T(output, (), *parameters)], version=5)


@st.composite
def lookups(draw: st.DrawFn) -> tuple[bytes, list[np.ndarray]]:
    seed, rows, count = draw(seeds), draw(st.integers(1, 6)), draw(st.integers(0, 5))
    shape = (rows, *draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, rows, count).astype(np.int32)
    if draw(st.booleans()):
        dtype = draw(st.sampled_from(PLAIN))
        output, scale, zero_point = dtype, draw(st.sampled_from([None, 0.5])) if dtype in ("s8", "u8") else None, 3
    else:
        dtype, output = draw(st.sampled_from(["s8", "u8", "s4", "s2"])), draw(st.sampled_from(["f32", "f32", "f16"]))
        scale, zero_point = draw(st.one_of(st.just(1e-41), scales(1e-3, 1e3))), 0
        if draw(st.booleans()):
            scale = [draw(scales(1e-3, 1e3)) for _ in range(rows)]
    table = T(dtype, shape, scale, zero_point if scale is not None else 0, 0, seeded(dtype, shape, seed))
    return lookup(table, count, output), [positions]


@given(lookups())
def test_embedding_lookup(case: tuple[bytes, list[np.ndarray]]) -> None:
    content, feed = case
    check(content, [feed])


@pytest.mark.parametrize("dtype", PLAIN)
def test_a_table_computed_at_run_time(dtype: str) -> None:
    content = lookup(T(dtype, (4, 3, 2)), 3, dtype)
    assert check(content, [[np.int32([3, 0, 3]), seeded(dtype, (4, 3, 2), 1).astype(NUMPY[dtype])]]) == "equal"


def test_by_hand() -> None:
    table = T("s8", (2, 2), [0.5, 2.0], 0, 0, np.array([[1, 2], [3, -4]]))
    assert only_output(lookup(table, 3, "f32"), np.int32([1, 0, 1])).tolist() == [[6, -8], [0.5, 1], [6, -8]]


def test_odd_rows_of_4_bits_begin_at_whole_bytes() -> None:
    """The kernel rounds the place of row 1, element 3 of the table, down to a byte: it reads elements 2, 3 and 4."""
    table = T("s4", (2, 3), 1.0, data=np.array([[0, 1, 2], [3, 4, 5]]))
    content = lookup(table, 1, "f32")
    assert only_output(content, np.int32([1])).tolist() == [[2, 3, 4]]
    assert check(content, [[np.int32([1])]]) == "equal"


@pytest.mark.parametrize("position", [-1, 4])
@pytest.mark.parametrize("dtype", ["f32", "s8"])
def test_positions_outside_of_the_table(position: int, dtype: str) -> None:
    content = lookup(T(dtype, (4, 3), 0.5 if dtype == "s8" else None, data=seeded(dtype, (4, 3), 1)), 2, "f32")
    feed = [np.int32([0, position])]
    assert check(content, [feed]) == "refused"
    with pytest.raises(bittrue.RunError, match="between 0 and 3"):
        bittrue.load(content).prepare().run(*feed)


@pytest.mark.parametrize(
    ("table", "output", "code"),
    [
        (T("s8", (2, 3), 0.5, 3, data=np.zeros((2, 3))), "f32", "BT-QUANT-ZERO-POINT"),
        (T("s8", (2, 3), [0.5, 1, 2], 0, 1, np.zeros((2, 3))), "f32", "BT-QUANT-AXIS"),
        (T("s8", (2, 3), [0.5, 1], 0, 0, np.zeros((2, 3))), "s8", "BT-QUANT-PER-AXIS"),
        (T("f32", (2,), data=np.zeros(2)), "f32", "BT-SHAPE-RANK"),
    ],
)
def test_contradictions_are_refused(table: T, output: str, code: str) -> None:
    content = lookup(table, 2, output)
    assert check(content, [[np.int32([0, 1])]]) == "refused"
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code


def test_a_table_without_rows_is_refused() -> None:
    content = lookup(T("f32", (0, 3), data=np.zeros((0, 3))), 2, "f32")
    assert check(content, [[np.int32([0, 1])]], may_refuse=("BT-EMBEDDING",)) == "refused"

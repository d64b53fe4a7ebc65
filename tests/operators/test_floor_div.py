"""FLOOR_DIV and FLOOR_MOD against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import NUMPY, T, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, constants, nans, outputs_of, plain_values, refusal
from support.strategies import seeds

Case = tuple[bytes, list[list[np.ndarray]]]


@st.composite
def cases(draw: st.DrawFn, operator: str) -> Case:
    dtype = draw(st.sampled_from(["f32", "f32", "s8", "s16", "s32", *(["s64"] if operator == "FLOOR_MOD" else [])]))
    shapes = draw(broadcast_shapes())
    nan = draw(nans)
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, dtype, shape, pattern) for shape, pattern in zip(shapes, nan, strict=True)]
    if draw(st.integers(0, 9)):
        values[1] = np.asarray(np.where(values[1] == 0, NUMPY[dtype](-1), values[1]), NUMPY[dtype])
    inputs = [T(dtype, shape) for shape in shapes]
    return binary(operator, None, {}, inputs, T(dtype, ()), values, draw(constants), 2)


@given(cases("FLOOR_DIV"))
def test_floor_div(case: Case) -> None:
    # In 8 and 16 bits minimum / -1 is the maximum in the kernel's vector loop and the minimum elsewhere.
    check(*case, may_refuse={"BT-DIVIDE-RANGE"})


@given(cases("FLOOR_MOD"))
def test_floor_mod(case: Case) -> None:
    # A trap of the processor's division instruction: the runtime's process dies on minimum mod -1.
    check(*case)


def _model(operator: str, dtype: str, count: int) -> bytes:
    return single(operator, None, [T(dtype, (count,)), T(dtype, (count,))], [T(dtype, (count,))], version=2)


def test_literal() -> None:
    feeds = np.int8([7, -7, 7, -7, -128]), np.int8([2, 2, -2, -2, 1])
    assert outputs_of(_model("FLOOR_DIV", "s8", 5), *feeds) == [3, -4, -4, 3, -128]
    assert outputs_of(_model("FLOOR_DIV", "s32", 1), np.int32([-(2**31)]), np.int32([-1])) == [-(2**31)]
    assert outputs_of(_model("FLOOR_MOD", "s8", 5), *feeds) == [1, 1, -1, -1, 0]
    feeds = np.float32([7.5, -7.5, 7.5]), np.float32([2, 2, -2])
    assert outputs_of(_model("FLOOR_DIV", "f32", 3), *feeds) == [3.0, -4.0, -4.0]
    assert outputs_of(_model("FLOOR_MOD", "f32", 3), *feeds) == [1.5, 0.5, -0.5]


def test_infinite_divisors() -> None:
    first, second = np.float32([[0.0], [-0.0], [2.5], [-2.5]]), np.float32([np.inf, -np.inf, np.finfo("f4").max])
    inputs = [T("f32", (4, 1)), T("f32", (3,))]
    check(*binary("FLOOR_MOD", None, {}, inputs, T("f32", ()), [first, second], 0, 2))


@pytest.mark.parametrize(
    ("operator", "first", "second", "code"),
    [
        ("FLOOR_DIV", np.int32([1]), np.int32([0]), "BT-DIVIDE-ZERO"),
        ("FLOOR_DIV", np.float32([1]), np.float32([-0.0]), "BT-DIVIDE-ZERO"),
        ("FLOOR_DIV", np.int8([-128]), np.int8([-1]), "BT-DIVIDE-RANGE"),
        ("FLOOR_DIV", np.int16([-32768]), np.int16([-1]), "BT-DIVIDE-RANGE"),
        ("FLOOR_MOD", np.int64([1]), np.int64([0]), "BT-DIVIDE-ZERO"),
        ("FLOOR_MOD", np.int32([-(2**31)]), np.int32([-1]), "BT-DIVIDE-RANGE"),
    ],
)
def test_refusals(operator: str, first: np.ndarray, second: np.ndarray, code: str) -> None:
    dtype = {np.dtype(NUMPY[name]): name for name in ("s8", "s16", "s32", "s64", "f32")}[first.dtype]
    assert refusal(_model(operator, dtype, 1), first, second) == code

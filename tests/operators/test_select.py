"""SELECT and SELECT_V2 against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T, chain, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, outputs_of, plain_values, refusal
from support.strategies import seeds, shapes

Case = tuple[bytes, list[list[np.ndarray]]]
TYPES = ("s8", "u8", "s16", "s32", "s64", "f32", "bool", "u16", "u32", "u64", "f16", "bf16", "f64", "c64")


def _values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype in ("f16", "bf16", "f64", "c64"):
        # Arbitrary bit patterns, NaNs of every kind among them: this is a copy.
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(NUMPY[dtype]).itemsize), NUMPY[dtype]).reshape(
            shape
        )
    return plain_values(rng, dtype, shape, 0x7F812345)


@st.composite
def cases(draw: st.DrawFn, operator: str) -> Case:
    dtype = draw(st.sampled_from(TYPES))
    if operator == "SELECT_V2":
        found = draw(broadcast_shapes(3))
        declared = draw(st.sampled_from([(), (1,), (1, 1), (2,)]))
    else:
        shape = draw(shapes(0, 4))
        condition = draw(st.sampled_from([shape, (), shape[:1], shape[-1:], (*shape[:1], 1)]))
        found = (condition, shape, shape if draw(st.integers(0, 9)) else (*shape, 1))
        declared = draw(st.sampled_from([(), (1,), (1, 1)]))
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, "bool", found[0]), *(_values(rng, dtype, shape) for shape in found[1:])]
    inputs = [T("bool", found[0]), *(T(dtype, shape) for shape in found[1:])]
    constant = draw(st.sampled_from([0, 0, 2, 4, 6, 1, 7]))
    return binary(operator, None, {}, inputs, T(dtype, declared), values, constant, 1)


@given(cases("SELECT"))
def test_select(case: Case) -> None:
    check(*case)


@given(cases("SELECT_V2"))
def test_select_v2(case: Case) -> None:
    check(*case)


def test_literal() -> None:
    x, y = np.int8([[1, 2], [3, 4]]), np.int8([[-1, -2], [-3, -4]])
    # One truth value per row for SELECT, one per column (broadcasting) for SELECT_V2.
    for operator, expected in (("SELECT", [[1, 2], [-3, -4]]), ("SELECT_V2", [[1, -2], [3, -4]])):
        model = single(operator, None, [T("bool", (2,)), T("s8", (2, 2)), T("s8", (2, 2))], [T("s8", (2, 2))])
        assert outputs_of(model, np.array([True, False]), x, y) == expected


@pytest.mark.parametrize(
    ("operator", "found", "code"),
    [
        ("SELECT", ((3,), (2, 2), (2, 2)), "BT-SELECT-SHAPE"),
        ("SELECT", ((2,), (2, 2), (2, 1)), "BT-SELECT-SHAPE"),
        ("SELECT_V2", ((3,), (2, 2), (2, 2)), "BT-SHAPE-BROADCAST"),
        ("SELECT_V2", ((2,), (2,) + (1,) * 8, (1,)), "BT-SHAPE-RANK"),
    ],
)
def test_refusals(operator: str, found: tuple[tuple[int, ...], ...], code: str) -> None:
    inputs = [T("bool", found[0]), T("s8", found[1]), T("s8", found[2])]
    assert refusal(single(operator, None, inputs, [T("s8", ())])) == code


def test_a_choice_that_follows_from_bytes() -> None:
    """Natively a table of 256 entries, with whatever shape: which of two numbers each byte gives."""
    shape = (1, 8, 8, 16)
    x, real, where = T("s8", shape, 0.05, 3), T("f32", shape), T("bool", shape)
    first, second, y = (T("s8", shape, 0.1, 5) for _ in range(3))
    nodes = [
        ("DEQUANTIZE", None, [x], [real], 2),
        ("GREATER", ("GreaterOptions", {}), [real, T("f32", (), data=np.float32(0.7))], [where]),
        ("QUANTIZE", None, [real], [first]),
        ("QUANTIZE", None, [x], [second], 2),
        ("SELECT_V2", ("SelectV2Options", {}), [where, first, second], [y]),
    ]
    feed = np.arange(-512, 512).astype(np.int8).reshape(shape)
    assert check(chain(nodes), [[feed]]) == "equal"
    notes = bittrue.load(chain(nodes)).prepare("litert", executor="native").plan.execution
    assert any("functions of bytes looked up: SELECT_V2" in line for line in notes)

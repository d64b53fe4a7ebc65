"""SCATTER_ND and SPARSE_TO_DENSE against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.differential import check
from support.elementwise import outputs_of, plain_values
from support.movement import sizes
from support.selection import Case, given_as, refused_by_both
from support.strategies import seeds


@st.composite
def scatter_nd(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8", "s32", "s64", "f32", "bool"]))
    target = draw(sizes(1, 4, 4))
    depth = draw(st.integers(1, len(target)))
    outer = draw(sizes(0, 2, 5))
    rng = np.random.default_rng(draw(seeds))
    wild = draw(st.integers(0, 9)) == 0
    columns = [rng.integers(-1 if wild else 0, max(1, size + wild), outer) for size in target[:depth]]
    updates = plain_values(rng, dtype, (*outer, *target[depth:]))
    if not updates.ndim:
        outer, columns, updates = (1,), [column.reshape(1) for column in columns], updates.reshape(1)
    operands = [("s32", np.stack(columns, axis=-1)), (dtype, updates), ("s32", np.array(target))]
    return given_as("SCATTER_ND", None, operands, [dtype], 4 | draw(st.sampled_from([0, 1, 2])))


@given(scatter_nd())
def test_scatter_nd(case: Case) -> None:
    check(*case)


@st.composite
def sparse_to_dense(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8", "s32", "s64", "f32"]))
    rank = draw(st.integers(0, 2))
    target = draw(sizes(1, 4, 4)) if rank == 2 else draw(sizes(1, 1, 6))
    count = draw(st.integers(1, 5)) if rank else 1
    rng = np.random.default_rng(draw(seeds))
    wild = draw(st.integers(0, 9)) == 0
    columns = [rng.integers(-1 if wild else 0, max(1, size + wild), count) for size in target]
    indices = np.stack(columns, axis=-1).reshape([(), (count,), (count, len(target))][rank])
    single = draw(st.integers(0, 2)) == 0
    values = plain_values(rng, dtype, () if single else (count,), 0x7F812345)
    default = plain_values(rng, dtype, draw(st.sampled_from([(), (1,)])))
    types = st.sampled_from(["s32", "s64"])
    operands = [(draw(types), indices), (draw(types), np.array(target)), (dtype, values), (dtype, default)]
    return given_as("SPARSE_TO_DENSE", None, operands, [dtype], 2 | draw(st.sampled_from([0, 8, 9, 13])), version=3)


@given(sparse_to_dense())
def test_sparse_to_dense(case: Case) -> None:
    check(*case)


def scatter_case(
    indices: object = ((3,), (1,), (3,)), updates: object = (1, 2, 4), shape: object = (5,), dtype: str = "s8"
) -> Case:
    operands = [("s32", np.array(indices)), (dtype, np.array(updates)), ("s32", np.array(shape))]
    return given_as("SCATTER_ND", None, operands, [dtype], 4)


def sparse_case(
    indices: object = ((0, 1), (1, 0), (0, 1)), shape: object = (2, 2), values: object = (1, 2, 4), default: object = -1
) -> Case:
    operands = [
        ("s32", np.array(indices)),
        ("s32", np.array(shape)),
        ("s8", np.array(values)),
        ("s8", np.array(default)),
    ]
    return given_as("SPARSE_TO_DENSE", None, operands, ["s8"], 2, version=2)


def test_literal() -> None:
    content, (feed,) = scatter_case()
    assert outputs_of(content, *feed) == [0, 2, 0, 5, 0]
    content, (feed,) = scatter_case(updates=(127, 2, 2))
    assert outputs_of(content, *feed) == [0, 2, 0, -127, 0]
    content, (feed,) = scatter_case(updates=(True, False, True), dtype="bool")
    assert outputs_of(content, *feed) == [False, False, False, True, False]
    content, (feed,) = sparse_case()
    assert outputs_of(content, *feed) == [[-1, 4], [2, -1]]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"indices": [[5], [0], [0]]}, "BT-GATHER-POSITION"),
        ({"indices": [[-1], [0], [0]]}, "BT-GATHER-POSITION"),
        ({"updates": [1, 2]}, "BT-SCATTER"),
        ({"updates": [[1], [2], [3]]}, "BT-SCATTER"),
        ({"shape": [5, 2]}, "BT-SCATTER"),
        ({"shape": 5}, "BT-SHAPE-RANK"),
    ],
)
def test_refusals_of_scatter_nd(changes: dict[str, object], code: str) -> None:
    refused_by_both(scatter_case(**changes), code)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"indices": [[0, 1], [2, 0], [0, 0]]}, "BT-GATHER-POSITION"),
        ({"values": [1, 2]}, "BT-SCATTER"),
        ({"shape": [2, 2, 2]}, "BT-SCATTER"),
        ({"default": [1, 2]}, "BT-SCATTER"),
        ({"indices": np.zeros((3, 5)), "shape": (1,) * 5}, "BT-SCATTER"),
        ({"values": [[1, 2, 3]]}, "BT-SHAPE-RANK"),
        ({"indices": [[[0, 0]]]}, "BT-SHAPE-RANK"),
    ],
)
def test_refusals_of_sparse_to_dense(changes: dict[str, object], code: str) -> None:
    refused_by_both(sparse_case(**changes), code)  # type: ignore[arg-type]

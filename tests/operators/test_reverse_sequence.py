"""reverse_sequence against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.differential import check
from support.elementwise import outputs_of, plain_values
from support.movement import sizes
from support.selection import Case, given_as, refused, refused_by_both
from support.strategies import seeds


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["u8", "s16", "s32", "s64", "f32"]))
    shape = draw(sizes(2, 4, 5).filter(lambda found: 0 not in found))
    along, batch = draw(st.permutations(range(len(shape))))[:2]
    rng = np.random.default_rng(draw(seeds))
    lengths = rng.integers(-2, shape[along] + 1, shape[batch])
    options = ("ReverseSequenceOptions", {"seqDim": along, "batchDim": batch})
    operands = [(dtype, plain_values(rng, dtype, shape, 0x7F812345)), (draw(st.sampled_from(["s32", "s64"])), lengths)]
    return given_as("REVERSE_SEQUENCE", options, operands, [dtype], draw(st.sampled_from([0, 2])))


@given(cases())
def test_reverse_sequence(case: Case) -> None:
    check(*case)


def literal(along: int = 1, batch: int = 0, lengths: object = (2, 3)) -> Case:
    options = ("ReverseSequenceOptions", {"seqDim": along, "batchDim": batch})
    x = np.array([[1, 2, 3], [4, 5, 6]])
    return given_as("REVERSE_SEQUENCE", options, [("s32", x), ("s32", np.array(lengths))], ["s32"])


def test_literal() -> None:
    content, (feed,) = literal()
    assert outputs_of(content, *feed) == [[2, 1, 3], [6, 5, 4]]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"along": 0}, "BT-REVERSE-SEQUENCE"),
        ({"along": -1}, "BT-REVERSE-SEQUENCE"),
        ({"along": 2}, "BT-REVERSE-SEQUENCE"),
        ({"lengths": [1, 1, 1]}, "BT-REVERSE-SEQUENCE"),
        ({"lengths": [4, 1]}, "BT-REVERSE-SEQUENCE-LENGTH"),
    ],
)
def test_refusals(changes: dict[str, object], code: str) -> None:
    refused_by_both(literal(**changes), code)  # type: ignore[arg-type]


def test_the_runtime_checks_the_first_length_only() -> None:
    refused(literal(lengths=[1, 4]), "BT-REVERSE-SEQUENCE-LENGTH")

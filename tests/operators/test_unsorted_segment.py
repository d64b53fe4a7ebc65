"""unsorted_segment, every reduction, against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.differential import check
from support.elementwise import outputs_of, plain_values
from support.movement import sizes
from support.selection import Case, given_as, refused_by_both
from support.strategies import seeds

KINDS = ("SUM", "PROD", "MAX", "MIN")


@st.composite
def cases(draw: st.DrawFn, kind: str) -> Case:
    dtype, shape = draw(st.sampled_from(["s32", "f32"])), draw(sizes(1, 4, 5))
    rng = np.random.default_rng(draw(seeds))
    # Which of two NaNs survives a sum or a product is up to the compiler.
    data = plain_values(rng, dtype, shape, 0x7FC12345 if kind in ("MAX", "MIN") else None)
    segments = draw(st.integers(1, 4))
    numbers = rng.integers(-1, segments + (draw(st.integers(0, 9)) == 0), shape[: draw(st.integers(1, len(shape)))])
    count = np.full(draw(st.sampled_from([(), (1,)])), segments)
    operands = [(dtype, data), ("s32", numbers), ("s32", count)]
    # The runtime cannot hand out an output that got its shape at run time and is empty.
    constant = 2 if 0 in shape else draw(st.sampled_from([0, 2]))
    assume(numbers.size or 0 not in shape)
    return given_as(f"UNSORTED_SEGMENT_{kind}", None, operands, [dtype], 4 | constant)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_unsorted_segment(kind: str, data: st.DataObject) -> None:
    check(*data.draw(cases(kind)))


def literal(kind: str, numbers: object = (1, -1, 1), count: object = 3) -> Case:
    operands = [("s32", np.array([3, 9, 4])), ("s32", np.array(numbers)), ("s32", np.array(count))]
    return given_as(f"UNSORTED_SEGMENT_{kind}", None, operands, ["s32"], 4)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("SUM", [0, 7, 0]), ("PROD", [1, 12, 1]), ("MAX", [-(2**31), 4, -(2**31)]), ("MIN", [2**31 - 1, 3, 2**31 - 1])],
)
def test_literal(kind: str, expected: list[int]) -> None:
    content, (feed,) = literal(kind)
    assert outputs_of(content, *feed) == expected


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"numbers": [0, 3, 0]}, "BT-SEGMENT-NUMBER"),
        ({"numbers": [0, 1]}, "BT-SEGMENT"),
        ({"count": -1}, "BT-SEGMENT"),
        ({"count": [1, 2]}, "BT-SEGMENT"),
        ({"count": [[3]]}, "BT-SEGMENT"),
    ],
)
def test_refusals(changes: dict[str, object], code: str) -> None:
    refused_by_both(literal("SUM", **changes), code)  # type: ignore[arg-type]

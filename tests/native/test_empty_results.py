"""Steps whose results hold no elements: bad values among their other operands are the same error on every executor."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.build import T, single
from support.movement import runs_in_runtime

BAD = 2**30


CASES = {
    "unsorted_segment": (
        single(
            "UNSORTED_SEGMENT_MIN",
            None,
            [T("s32", (1,)), T("s32", (1,)), T("s32", (), data=np.array(0))],
            [T("s32", (0,))],
        ),
        [np.int32([3]), np.int32([BAD])],
    ),
    "reverse_v2": (
        single("REVERSE_V2", None, [T("f32", (0, 4)), T("s32", (1,))], [T("f32", (0, 4))], version=2),
        [np.zeros((0, 4), np.float32), np.int32([BAD])],
    ),
    "embedding_lookup": (
        single("EMBEDDING_LOOKUP", None, [T("s32", (3,)), T("s8", (2, 0))], [T("s8", (3, 0))]),
        [np.int32([0, 1, BAD]), np.zeros((2, 0), np.int8)],
    ),
    "floor_div": (
        single("FLOOR_DIV", None, [T("s32", (0, 2)), T("s32", ())], [T("s32", (0, 2))]),
        [np.zeros((0, 2), np.int32), np.int32(0)],
    ),
    "pow": (
        single("POW", ("PowOptions", {}), [T("s32", (0, 2)), T("s32", ())], [T("s32", (0, 2))]),
        [np.zeros((0, 2), np.int32), np.int32(-1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_beside_empty_results(name: str) -> None:
    content, feed = CASES[name]
    codes = []
    for executor in ("reference", "native"):
        session = bittrue.load(content).prepare(executor=executor)
        with pytest.raises(bittrue.RunError) as caught:
            session.run(*feed)
        codes.append(str(caught.value))
        if name != "unsorted_segment":
            # No number is below 0 segments; elsewhere there are good values.
            assert session.run(*(np.full_like(x, name in ("floor_div", "pow")) for x in feed))
    assert codes[0] == codes[1]
    assert not runs_in_runtime(content, feed)

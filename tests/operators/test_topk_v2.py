"""topk_v2 against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T, single
from support.differential import check
from support.elementwise import plain_values
from support.movement import constant, feeds, runs_in_runtime, sizes
from support.strategies import seeds

TYPES = st.sampled_from(["s8", "u8", "s16", "s32", "s64", "f32"])


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, list[list[np.ndarray]]]:
    dtype, shape = draw(TYPES), draw(sizes(1, 3, draw(st.sampled_from([4, 40]))))
    k = draw(st.integers(-1, shape[-1] + (draw(st.integers(0, 9)) == 0)))
    rng = np.random.default_rng(draw(seeds))
    values = plain_values(rng, dtype, shape, 0x7F812345)
    if draw(st.booleans()):
        values = rng.integers(0, 3, shape).astype(NUMPY[dtype])
    counts = T(draw(st.sampled_from(["s32", "s16"])), draw(st.sampled_from([(), (1,), (1, 1)])), data=np.array(k))
    outputs = [T(dtype, ()), T(draw(st.sampled_from(["s32", "s16"])), ())]
    return single("TOPK_V2", None, [T(dtype, shape), counts], outputs, version=3), [[values]]


@given(cases())
def test_topk_v2(case: tuple[bytes, list[list[np.ndarray]]]) -> None:
    check(*case)


def test_literal() -> None:
    content = single("TOPK_V2", None, [T("f32", (5,)), constant(4)], [T("f32", ()), T("s32", ())])
    values, places = bittrue.load(content).prepare().run(np.float32([np.nan, 1, 3, 3, -0.0])).values()
    assert values.tolist() == [3, 3, 1, 0]
    assert places.tolist() == [2, 3, 1, 4]


@pytest.mark.parametrize(
    ("shape", "k", "positions"), [((3,), 4, "s32"), ((), 1, "s32"), ((3,), [1, 2], "s32"), ((40000,), 2, "s16")]
)
def test_refusals(shape: tuple[int, ...], k: object, positions: str) -> None:
    content = single("TOPK_V2", None, [T("s8", shape), constant(k)], [T("s8", ()), T(positions, ())], version=3)
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code in ("BT-SHAPE-RANK", "BT-TOPK")
    assert not runs_in_runtime(content, feeds(content, 0)[0])

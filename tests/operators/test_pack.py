"""pack against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import COMMON, feeds, nearly, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeded, seeds


@st.composite
def pack(draw: st.DrawFn) -> bytes:
    dtype, shape = draw(st.sampled_from((*COMMON, "u32"))), draw(sizes(0, 4))
    common = draw(parameters(dtype))
    inputs = []
    for _ in range(draw(st.integers(1, 4))):
        data = seeded(dtype, shape, draw(seeds)) if draw(st.integers(0, 3)) == 0 else None
        inputs.append(tensor(dtype, shape, draw(nearly(dtype, common)), data))
    if shape and draw(st.integers(0, 20)) == 0:
        inputs.append(tensor(dtype, (*shape[:-1], shape[-1] + 1), common))
    rank = len(shape) + 1
    wild = draw(st.integers(0, 20)) == 0
    options = {"valuesCount": len(inputs), "axis": draw(st.integers(-rank - wild, rank - 1 + wild))}
    return single("PACK", ("PackOptions", options), inputs, [tensor(dtype, (), draw(nearly(dtype, common)))], version=4)


@given(pack(), seeds)
def test_pack(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_stacked_along_the_last_axis() -> None:
    options = ("PackOptions", {"valuesCount": 2, "axis": -1})
    content = single("PACK", options, [T("s8", (2,)), T("s8", (2,))], [T("s8", (), name="y")])
    values = bittrue.load(content).prepare().run(np.int8([1, 2]), np.int8([3, 4]))
    assert values["y"].tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("options", "inputs", "code"),
    [
        ({"valuesCount": 1}, [T("s8", (2,)), T("s8", (2,))], "BT-PACK"),
        ({"valuesCount": 2}, [T("s8", (2,)), T("s8", (3,))], "BT-PACK"),
        ({"valuesCount": 1, "axis": 2}, [T("s8", (2,))], "BT-SHAPE-AXIS"),
        ({"valuesCount": 1}, [T("s8", (2,), 0.5, 1)], "BT-QUANT-SAME"),
    ],
)
def test_errors(options: dict[str, int], inputs: list[T], code: str) -> None:
    content = single("PACK", ("PackOptions", options), inputs, [T("s8", ())])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, feeds(content, 0)[0])

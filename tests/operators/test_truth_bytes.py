"""Truth values stored as bytes other than 0 and 1: what the runtime makes of them, byte by byte."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue
from support.build import T, single
from support.differential import check

BYTES = np.array([0, 1, 2, 3, 255, 128, 254, 129], np.uint8)
ODD = BYTES.view(np.bool_)
AXIS = T("s32", (1,), data=np.array([1]))


def truths(*shape: int) -> T:
    return T("bool", shape)


PAIR = [truths(8, 1), truths(1, 8)]
CASES = {
    "and": ("LOGICAL_AND", None, PAIR, truths(8, 8), 1),
    "or": ("LOGICAL_OR", None, PAIR, truths(8, 8), 1),
    "not": ("LOGICAL_NOT", None, [truths(8)], truths(8), 1),
    "equal": ("EQUAL", None, PAIR, truths(8, 8), 1),
    "not equal": ("NOT_EQUAL", None, PAIR, truths(8, 8), 1),
    "equal to one value": ("EQUAL", None, [truths(8), T("bool", (1,), data=ODD[3:4])], truths(8), 1),
    "select": ("SELECT_V2", ("SelectV2Options", {}), [truths(8)] * 3, truths(8), 1),
    "any": ("REDUCE_ANY", ("ReducerOptions", {}), [truths(4, 2), AXIS], truths(4), 1),
    "all": ("REDUCE_ALL", ("ReducerOptions", {}), [truths(4, 2), AXIS], truths(4), 1),
    "reshape": ("RESHAPE", None, [truths(8), T("s32", (2,), data=np.array([2, 4]))], truths(2, 4), 1),
    "tile": ("TILE", None, [truths(8), T("s32", (1,), data=np.array([3]))], truths(24), 1),
    **{
        f"cast to {dtype}": ("CAST", ("CastOptions", {}), [truths(8)], T(dtype, (8,)), 7)
        for dtype in ("bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "f16", "f32", "f64")
    },
}


# Other numerics build on these; their runtimes' own way to reduce takes truth values.
@pytest.mark.numerics("litert")
@pytest.mark.parametrize("name", CASES)
def test_bytes(name: str) -> None:
    operator, options, inputs, output, version = CASES[name]
    content = single(operator, options, inputs, [output], version=version)
    # A tensor that is read twice is one input.
    shapes = list({id(x): x.shape for x in inputs if x.data is None}.values())
    assert check(content, [[ODD.reshape(shape) for shape in shapes]]) == "equal"


def test_constants_that_are_outputs_keep_their_bytes() -> None:
    kept, moved = T("bool", (8,), data=ODD), truths(8)
    content = single("REVERSE_V2", None, [kept, T("s32", (1,), data=np.array([0]))], [moved], version=2)
    assert check(content, [[]]) == "equal"
    (value,) = bittrue.load(content).prepare().run().values()
    assert value.view(np.uint8).tolist() == BYTES[::-1].tolist()


@pytest.mark.parametrize("executor", ["native", "reference"])
def test_what_the_kernels_leave_undefined_is_refused(executor: str) -> None:
    """The runtime counts the bytes' values as positions, and reads beyond its memory."""
    axis = T("s32", (), data=np.array(0))
    place = single("ARG_MAX", ("ArgMaxOptions", {"outputType": 2}), [truths(8), axis], [T("s32", ())])
    for content in (single("WHERE", ("WhereOptions", {}), [truths(8)], [T("s64", (0, 1))]), place):
        session = bittrue.load(content).prepare(executor=executor)
        with pytest.raises(bittrue.RunError, match="BT-TRUTH-BYTE"):
            session.run(ODD)
        assert session.run(ODD[:2].repeat(4))

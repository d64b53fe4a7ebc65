"""stablehlo_gather against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import NUMPY, T, single
from support.differential import check, random_values
from support.elementwise import outputs_of
from support.movement import EVERY, sizes
from support.selection import Case, refused
from support.strategies import seeds


def gather(
    x: np.ndarray,
    corners: np.ndarray,
    sizes: object,
    collapsed: object = (),
    offsets: object = (),
    axes: object = (),
    vector: int = 0,
    dtype: str = "s8",
    index: str = "s32",
    rank: int | None = None,
) -> Case:
    fields = {
        "sliceSizes": np.array(sizes, np.int64),
        "collapsedSliceDims": np.array(collapsed, np.int64),
        "offsetDims": np.array(offsets, np.int64),
        "startIndexMap": np.array(axes, np.int64),
        "indexVectorDim": vector,
    }
    x, corners = x.astype(NUMPY[dtype]), corners.astype(NUMPY[index])
    found = corners.ndim - (vector < corners.ndim) + len(fields["offsetDims"]) if rank is None else rank
    inputs, output = [T(dtype, x.shape), T(index, corners.shape)], T(dtype, (1,) * found)
    return single("STABLEHLO_GATHER", ("StablehloGatherOptions", fields), inputs, [output]), [[x, corners]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype, shape = draw(st.sampled_from(EVERY)), draw(sizes(1, 4, 5).filter(lambda found: 0 not in found))
    rng = np.random.default_rng(draw(seeds))
    pieces = [draw(st.integers(1, size)) for size in shape]
    collapsed = sorted(draw(st.sets(st.sampled_from(range(len(shape))))))
    for axis in collapsed:
        pieces[axis] = 1
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    batch = list(draw(sizes(0, 2, 3)))
    rank = len(batch) + len(shape) - len(collapsed)
    offsets = sorted(draw(st.permutations(range(rank)))[: len(shape) - len(collapsed)])
    vector = draw(st.integers(0, len(batch)))
    corners = rng.integers(-2, 7, [*batch[:vector], len(axes), *batch[vector:]])
    x = random_values(rng, np.dtype(NUMPY[dtype]), shape)
    index = draw(st.sampled_from(["s32", "s64"]))
    return gather(x, corners, pieces, collapsed, offsets, axes, vector, dtype, index)


@given(cases())
def test_stablehlo_gather(case: Case) -> None:
    check(*case)


X = np.arange(12).reshape(3, 4)


def test_literal() -> None:
    # Rows 2 and 0; the corner at row 9 moves back to the last row.
    content, (feed,) = gather(X, np.array([[2], [0], [9]]), (1, 4), [0], [1], [0], 1)
    assert outputs_of(content, *feed) == [[8, 9, 10, 11], [0, 1, 2, 3], [8, 9, 10, 11]]


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": (1, 5)},
        {"sizes": (1,)},
        {"sizes": (2, 4)},
        {"collapsed": [1]},
        {"collapsed": [0, 0]},
        {"offsets": [2]},
        {"offsets": [-1]},
        {"offsets": []},
        {"axes": [2]},
        {"axes": [-1]},
        {"axes": [0, 1]},
        # The specification allows corners without an axis of coordinates; the kernel reads beyond the shape.
        {"vector": 2},
        {"rank": 3},
    ],
)
def test_what_the_specification_forbids(changes: dict[str, object]) -> None:
    arguments = {"sizes": (1, 4), "collapsed": [0], "offsets": [1], "axes": [0], "vector": 1, **changes}
    refused(gather(X, np.array([[2], [0]]), **arguments), "BT-GATHER")  # type: ignore[arg-type]

"""Strategies that the tests of element-wise operators share: shapes that broadcast (or nearly do), special floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import bittrue

from .build import NUMPY, T, single
from .differential import check, random_values

Shape = tuple[int, ...]
# Few of rank 9: the runtime aborts.
_RANKS = st.one_of(*[st.integers(0, 4)] * 4, st.sampled_from([5, 6, 7, 8] * 4 + [9]))


@st.composite
def broadcast_shapes(draw: st.DrawFn, count: int = 2) -> tuple[Shape, ...]:
    """Shapes that broadcast together, up to rank 9 (one more than kernels take); now and then one that does not fit."""
    rank = draw(_RANKS)
    largest = 5 if rank <= 4 else 2
    full = draw(st.lists(st.integers(1, largest), min_size=rank, max_size=rank))
    # Not beyond rank 8: some kernels look at the rank first, some at the emptiness.
    if 0 < rank <= 8 and draw(st.integers(0, 19)) == 0:
        full[draw(st.integers(0, rank - 1))] = 0
    shapes = []
    for _ in range(count):
        kept = [1 if draw(st.integers(0, 3)) == 0 else size for size in full]
        shapes.append(tuple(kept[draw(st.sampled_from([0, 0, 0, 1, rank])) :]))
    if draw(st.integers(0, 3)) == 0:
        shapes = [tuple(full)] * count
    if rank and draw(st.integers(0, 19)) == 0:
        shapes[-1] = (*shapes[-1][:-1], 7)
    return tuple(shapes)


def special_floats(rng: np.random.Generator, shape: Shape, nan: int | None) -> np.ndarray:
    """Normal floats; infinities, signed zeros, subnormals and extremes among them, and NaNs of bit pattern `nan`."""
    values = (rng.standard_normal(shape) * 4).astype(np.float32)
    special = np.array([np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 3.4e38, -3.4e38, 6, 1, -1], np.float32)
    values = np.where(rng.random(shape) < 0.4, rng.choice(special, shape), values).astype(np.float32)
    if nan is not None:
        bits = np.where(rng.random(shape) < 0.1, np.uint32(nan), values.view(np.uint32))
        values = bits.astype(np.uint32).view(np.float32)
    return np.asarray(values, np.float32).reshape(shape)


# Which operands hold NaNs. Never two different ones: which of two payloads survives is up to the kernels' vector loop.
nans = st.sampled_from([(None, None), (0x7FC00001, None), (None, 0xFF812345), (0xFFC00002, 0xFFC00002)])


def plain_values(rng: np.random.Generator, dtype: str, shape: Shape, nan: int | None = None) -> np.ndarray:
    """Values over the whole type, with a share of small ones so that equality and division meet often."""
    if dtype == "f32":
        return special_floats(rng, shape, nan)
    wide = random_values(rng, np.dtype(NUMPY[dtype]), shape)
    if dtype == "bool":
        return wide
    small = rng.integers(0 if dtype[0] == "u" else -4, 5, shape).astype(NUMPY[dtype])
    return np.where(rng.random(shape) < 0.4, small, wide).astype(NUMPY[dtype])


def binary(
    operator: str,
    table: str | None,
    options: dict[str, object],
    inputs: list[T],
    output: T,
    values: list[np.ndarray],
    constant: int,
    version: int = 1,
) -> tuple[bytes, list[list[np.ndarray]]]:
    """A model of one operator and its feeds; bit i of `constant` makes input i a constant instead of a model input."""
    feeds = []
    for position, (tensor, value) in enumerate(zip(inputs, values, strict=True)):
        # An empty buffer reads as no constant at all.
        if constant >> position & 1 and value.size:
            tensor.data = value
        else:
            feeds.append(value)
    content = single(operator, (table, options) if table else None, inputs, [output], version=version)
    return content, [feeds]


constants = st.sampled_from([0, 0, 0, 0, 1, 2, 3])


def outputs_of(content: bytes, *feeds: np.ndarray) -> list[object]:
    """The only output as a list, after checking that the real runtime agrees."""
    assert check(content, [list(feeds)]) == "equal"
    return next(iter(bittrue.load(content).prepare().run(*feeds).values())).tolist()


def refusal(content: bytes, *feeds: np.ndarray) -> str:
    """The code of the error with which bittrue refuses a model, or its run on `feeds`."""
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare().run(*feeds)
    return caught.value.code

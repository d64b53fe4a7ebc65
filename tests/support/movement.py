"""What the tests of data-movement operators share: element types, parameters that may or may not agree, constants."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from hypothesis import event
from hypothesis import strategies as st

import bittrue

from .build import T
from .differential import check, feeds_for
from .oracle import oracle
from .strategies import scales

EVERY = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "c64", "bool")
COMMON = ("s8", "u8", "s16", "s32", "s64", "f32")

Parameters = tuple[float, int] | None


@st.composite
def parameters(draw: st.DrawFn, dtype: str) -> Parameters:
    """Scale and zero point of an 8- or 16-bit type (sometimes none, sometimes not 0 for 16 bits); None for others."""
    bounds = {"s8": (-128, 127), "u8": (0, 255), "s16": (-3, 3)}.get(dtype)
    if bounds is None or draw(st.integers(0, 5)) == 0:
        return None
    low, high = bounds
    if dtype == "s16" and draw(st.integers(0, 3)):
        low = high = 0
    return draw(scales()), draw(st.sampled_from([low, high, max(low, 0)]) | st.integers(low, high))


@st.composite
def nearly(draw: st.DrawFn, dtype: str, given: Parameters) -> Parameters:
    """The same parameters, and now and then others, so that kernels which compare them refuse."""
    return given if draw(st.integers(0, 7)) else draw(parameters(dtype))


def tensor(dtype: str, shape: Sequence[int], given: Parameters = None, data: np.ndarray | None = None) -> T:
    scale, zero_point = given if given is not None else (None, 0)
    return T(dtype, tuple(shape), scale, zero_point, data=data)


def constant(values: object, dtype: str = "s32", shape: Sequence[int] | None = None) -> T:
    """A small constant, for axes, shapes and paddings."""
    array = np.array(values, np.int64)
    return T(dtype, array.shape if shape is None else tuple(shape), data=array)


def sizes(low_rank: int = 0, high_rank: int = 4, largest: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes, a dimension of 0 among them now and then."""
    size = st.one_of(st.integers(1, largest), st.integers(1, largest), st.integers(0, largest))
    return st.lists(size, min_size=low_rank, max_size=high_rank).map(tuple)


def feeds(content: bytes, seed: int) -> list[list[np.ndarray]]:
    """One set of seeded inputs; those of 4 bits stay inside their range."""
    graph = bittrue.load(content).graph
    (found,) = feeds_for(content, seed)
    four = [graph.tensors[i].dtype in ("s4", "u4") for i in graph.inputs]
    return [[np.asarray(x >> 4, x.dtype) if packed else x for x, packed in zip(found, four, strict=True)]]


def runs_in_runtime(content: bytes, inputs: list[np.ndarray]) -> bool:
    """Whether the real runtime gives any result (for models that bittrue refuses)."""
    return oracle().run(content, [inputs], []).ran


def check_defined(content: bytes, inputs: list[list[np.ndarray]], undefined: Collection[str]) -> str:
    """As `check`, but the runtime is not even tried on what is undefined there: it would write beyond its buffers."""
    try:
        bittrue.load(content).prepare().run(*inputs[0])
    except bittrue.BittrueError as error:
        if error.code in undefined:
            event(f"undefined {error.code}")
            return "undefined"
    return check(content, inputs)

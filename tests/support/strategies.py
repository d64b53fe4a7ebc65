"""Hypothesis strategies that all operator tests share."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1)


def f32(value: float) -> float:
    """The nearest binary32 value."""
    return float(np.float32(value))


@st.composite
def scales(draw: st.DrawFn, low: float = 1e-3, high: float = 1.0) -> float:
    """A positive binary32 scale: log-uniform, or a power of two (which makes exact ties common)."""
    if draw(st.booleans()):
        exponent = draw(st.integers(int(np.ceil(np.log2(low))), int(np.floor(np.log2(high)))))
        return float(2.0**exponent)
    fraction = draw(st.floats(0, 1, allow_nan=False))
    return min(max(f32(low * (high / low) ** fraction), f32(low)), f32(high))


# Hypothesis looks through a strategy when it first draws from it, so builders that are called for every example share
# theirs.
@cache
def zero_points(dtype: str) -> st.SearchStrategy[int]:
    """A zero point of the type; 0 for 16 bits, where kernels demand it."""
    if dtype == "s16":
        return st.just(0)
    low, high = {"s8": (-128, 127), "u8": (0, 255), "s4": (-8, 7)}[dtype]
    return st.one_of(st.sampled_from([low, high, 0 if low < 0 else 128]), st.integers(low, high))


@cache
def shapes(low_rank: int = 1, high_rank: int = 4, largest: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes without empty dimensions."""
    return st.lists(st.integers(1, largest), min_size=low_rank, max_size=high_rank).map(tuple)


def seeded(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Constant content over the whole range of a type."""
    from .build import NUMPY
    from .differential import random_values

    rng = np.random.default_rng(seed)
    if dtype in ("s2", "s4"):
        end = 2 if dtype == "s2" else 8
        return rng.integers(-end, end, shape).astype(np.int8)
    return random_values(rng, np.dtype(NUMPY[dtype]), shape)


activations = st.sampled_from([0, 0, 1, 2, 3])
"""Fused activations by schema number: NONE, RELU, RELU_N1_TO_1, RELU6."""

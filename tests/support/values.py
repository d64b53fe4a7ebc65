"""Random values of every type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def random_values(rng: np.random.Generator, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    """Uniform integers with a share of extremes; normal floats."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "cV":
        # Complex numbers and bfloat16 are only moved: any bit pattern will do.
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 4).astype(dtype)
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    extreme = rng.random(shape) < 0.1
    ends = np.where(rng.random(shape) < 0.5, info.min, info.max).astype(dtype)
    return np.where(extreme, ends, values).astype(dtype)

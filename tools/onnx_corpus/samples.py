"""Random inputs of the corpus's models, made from what stands beside them. Needs NumPy alone."""

from typing import Any

import numpy as np

# The input that says which branch of a merged network runs.
BRANCH = "use_cache_branch"


def sample(inputs: dict[str, dict[str, Any]], free: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One value per input; free dimensions have the sizes of `free`."""
    return {
        name: _value(i["kind"], i["high"], tuple(size(d, free) for d in i["shape"]), rng) for name, i in inputs.items()
    }


def size(dimension: int | str, free: dict[str, int]) -> int:
    """A dimension's size: a number, the size of a name, or a sum of names ("past + sequence")."""
    return dimension if isinstance(dimension, int) else sum(free[name] for name in dimension.split(" + "))


def _value(kind: str, high: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if kind == "tokens":
        return rng.integers(3, high, shape)
    if kind == "labels":
        return rng.integers(0, high, shape)
    if kind == "mask":
        lengths = rng.integers(max(1, shape[-1] // 2), shape[-1] + 1, shape[:-1])
        return (np.arange(shape[-1]) < lengths[..., None]).astype(np.int64)
    if kind == "image":
        return rng.random(shape, np.float32)
    return rng.standard_normal(shape, np.float32)

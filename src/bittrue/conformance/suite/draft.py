"""What generators of cases are made of: drafts, and random numbers that are the same everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...graph import data_type


@dataclass(frozen=True, eq=False)
class Draft:
    """A case before it has its number; the fields are those of `SuiteCase`."""

    aim: str
    content: bytes
    inputs: Mapping[str, np.ndarray]
    note: str = ""
    rejects: str = ""
    seeks: Mapping[str, Any] = field(default_factory=dict)
    advisory: bool = False


def generator(*words: object) -> np.random.Generator:
    """Random numbers that depend on `words` alone.

    >>> generator("CONV_2D", "s8", 3).integers(1000, size=3).tolist()
    [668, 881, 720]
    """
    seed = hashlib.sha256("/".join(map(str, words)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed[:16], "little")))


def between(drawn: np.random.Generator, low: float, high: float) -> float:
    """A random real number of [low, high), alike on every machine, unlike that of `uniform`."""
    return low + (high - low) * float(drawn.random())


def all_between(drawn: np.random.Generator, low: float, high: float, shape: int | Sequence[int]) -> np.ndarray:
    """Random real numbers of [low, high) in binary64, likewise alike on every machine."""
    return low + (high - low) * drawn.random(shape)


def distinct(types: str, shape: Sequence[int], *words: object) -> np.ndarray:
    """Quantized values as different from each other as the type allows, both of its ends among them, in random
    order.
    """
    kind = data_type(types)
    drawn = generator(types, *shape, *words, "distinct")
    size = int(np.prod(shape, dtype=np.int64))
    span = kind.maximum - kind.minimum + 1
    steps = np.arange(size) * span // size if size < span else np.arange(size) % span
    quantized = kind.minimum + steps
    if 1 < size < span:
        quantized[-1] = kind.maximum
    return drawn.permutation(quantized).reshape(tuple(shape)).astype(kind.numpy)


def values_of_sum(total: int, count: int, low: int, high: int, random: np.random.Generator) -> np.ndarray:
    """Quantized values in no order whose sum is `total`."""
    values = np.full(count, total // count, np.int64)
    values[: total - int(values.sum())] += 1
    for _ in range(count):
        i, k = (int(v) for v in random.integers(0, count, 2))
        room = int(min(high - values[i], values[k] - low))
        if i != k and room > 0:
            by = int(random.integers(0, room + 1))
            values[i] += by
            values[k] -= by
    return random.permutation(values)

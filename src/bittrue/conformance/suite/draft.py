"""What generators of cases are made of: drafts, and random numbers that are the same everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Draft:
    """A case before it has its number; the fields are those of `SuiteCase`."""

    aim: str
    content: bytes
    inputs: Mapping[str, np.ndarray]
    note: str = ""
    rejects: str = ""
    seeks: Mapping[str, Any] = field(default_factory=dict)


def generator(*words: object) -> np.random.Generator:
    """Random numbers that depend on `words` alone.

    >>> generator("CONV_2D", "s8", 3).integers(1000, size=3).tolist()
    [668, 881, 720]
    """
    seed = hashlib.sha256("/".join(map(str, words)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed[:16], "little")))


def between(drawn: np.random.Generator, low: float, high: float) -> float:
    """A random real number of [low, high), the same on every machine: `uniform` may be compiled with fused operations."""
    return low + (high - low) * float(drawn.random())

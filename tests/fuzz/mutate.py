"""Deterministic mutations of model files, aimed at the bytes that describe structure rather than at weights."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import bittrue

WORDS = (0, 1, 2, 3, 255, 256, 0x7FFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x7FC00000, 0x00800000)


@lru_cache(64)
def structural_bytes(content: bytes) -> np.ndarray:
    """Offsets outside the content of large constants."""
    whole = np.frombuffer(content, np.uint8)
    start = whole.__array_interface__["data"][0]
    keep = np.ones(len(content), bool)
    for graph in bittrue.load(whole).graphs:
        for tensor in graph.tensors:
            if tensor.data is not None and tensor.data.nbytes > 64:
                first = tensor.data.__array_interface__["data"][0] - start
                if 0 <= first < len(content):
                    keep[first : first + tensor.data.nbytes] = False
    return np.flatnonzero(keep)


def mutate(content: bytes, structure: np.ndarray, seed: int) -> bytes:
    """One to eight mutations: bit flips, words, swapped bytes, inserted or removed spans, truncation."""
    rng = np.random.default_rng(seed)
    data = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        place = int(rng.choice(structure)) if rng.random() < 0.95 else int(rng.integers(len(content)))
        place = min(place, len(data) - 1)
        kind = rng.integers(10)
        if kind < 4:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind < 7:
            aligned = place & ~3
            data[aligned : aligned + 4] = int(rng.choice(WORDS)).to_bytes(4, "little")
        elif kind == 7:
            data[place] = int(rng.integers(256))
        elif kind == 8:
            other = int(rng.choice(structure)) & ~3
            aligned = place & ~3
            data[aligned : aligned + 4] = content[other : other + 4]
        elif rng.random() < 0.5:
            del data[place : place + int(rng.integers(1, 9))]
        else:
            data[place:] = b"" if rng.random() < 0.5 else data[place:][:-1]
        if len(data) < 8:
            break
    return bytes(data)

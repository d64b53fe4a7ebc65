"""hadamard_rotation: chunks of `size` neighbours multiplied by the Hadamard matrix that is divided by its root.

size is a power of two. In log2(size) passes, of distances h = 1, 2, 4, ..., a pair (a, b) becomes (a + b, a - b); then
each number is multiplied by f32(1 / f32(sqrt(size))). Every operation is rounded to binary32. What is left of a row
after whole chunks is no gap: chunks lie one behind the other, as many as all rows have, and what is behind them stays.
Source: docs/facts/litert.md 2.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """Shape of the input."""
    call.expect(1)
    source, size = call.input(0), call.attribute("hadamard_size")
    if source.rank < 2:
        raise call.invalid("BT-HADAMARD", f"a tensor of rank {source.rank}: the kernel reads at least two dimensions")
    if size < 1 or size & (size - 1):
        raise call.invalid("BT-HADAMARD", f"a rotation of {size} numbers: their number must be a power of 2")
    return [source.shape]


def lower(call: Call) -> Lowered:
    """How many chunks are rotated."""
    shape, size = call.input(0).shape, call.attribute("hadamard_size")
    # Of more than three dimensions the kernel counts two.
    rows, width = (shape[0] * shape[1], shape[2]) if len(shape) == 3 else shape[:2]
    chunks = min(rows * (width // size), math.prod(shape) // size)
    return Lowered({"size": size, "chunks": chunks}, work=chunks * size * size.bit_length())


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All chunks at a time, pass by pass."""
    size, chunks = step["size"], step["chunks"]
    out = inputs[0].copy()
    rotated = out.reshape(-1)[: chunks * size].reshape(chunks, size)
    with np.errstate(all="ignore"):
        for h in (1 << k for k in range(size.bit_length() - 1)):
            pairs = rotated.reshape(chunks, size // (2 * h), 2, h)
            first, second = pairs[:, :, 0].copy(), pairs[:, :, 1]
            pairs[:, :, 0], pairs[:, :, 1] = first + second, first - second
        rotated *= np.float32(1) / np.sqrt(np.float32(size))
    return [out]


OPERATOR = Operator("hadamard_rotation", (), infer, lower, reference, "chunks of neighbours by the Hadamard matrix")

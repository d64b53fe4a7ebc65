"""What `matmul` does with integers of 32 and 64 bits: products and sums wrap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Step

TYPES = ("s32", "u32", "s64", "u64")


def lower(call: Call) -> Lowered:
    """Nothing but its form."""
    a = call.input(0)
    return Lowered({"wraps": True}, work=call.output.size * a.shape[-1], scratch=16 * (a.size + call.input(1).size))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The product modulo 2^32 or 2^64."""
    return [np.asarray(np.matmul(inputs[0], inputs[1]))]

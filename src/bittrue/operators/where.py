"""where with one input: the positions of elements that are not zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Call, Operator, Shape, Step, nothing_to_prepare


def infer(call: Call) -> list[Shape]:
    """[how many, rank]; how many is in the values."""
    call.expect(1)
    source = call.input(0)
    if not source.rank:
        raise call.invalid("BT-SHAPE-RANK", f"'{source.name}' must have an axis, found a scalar")
    count = -1 if source.value is None else int(np.count_nonzero(source.value))
    return [(count, source.rank)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """In row-major order. A NaN is not zero."""
    return [np.argwhere(inputs[0] != 0).astype(np.int64)]


OPERATOR = Operator("where", (), infer, nothing_to_prepare, reference, "positions of elements that are not zero")

"""where with one input: the positions of elements that are not zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import RunError
from .base import Call, Operator, Shape, Step, nothing_to_prepare


def infer(call: Call) -> list[Shape]:
    """[how many, rank]; how many is in the values."""
    call.expect(1)
    source = call.input(0)
    if not source.rank:
        raise call.invalid("BT-SHAPE-RANK", f"'{source.name}' must have an axis, found a scalar")
    count = -1 if source.value is None else int(np.count_nonzero(source.value))
    return [(count, source.rank)]


def refuse_odd_truths(step: Step, x: np.ndarray) -> None:
    """RunError for truth values stored as bytes other than 0 and 1, where kernels' results are undefined."""
    if x.dtype == np.bool_ and (x.view(np.uint8) > 1).any():
        raise RunError(
            "BT-TRUTH-BYTE",
            f"a truth value is stored as the byte {int(x.view(np.uint8).max())}, for which the kernel has no defined"
            " result",
            place=step.place,
            advice="store truth values as 0 and 1",
        )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """In row-major order. A NaN is not zero."""
    refuse_odd_truths(step, inputs[0])
    return [np.argwhere(inputs[0] != 0).astype(np.int64)]


OPERATOR = Operator("where", (), infer, nothing_to_prepare, reference, "positions of elements that are not zero")

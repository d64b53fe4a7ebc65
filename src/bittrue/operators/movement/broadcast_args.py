"""broadcast_args: the shape to which two shapes broadcast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic.fixed_point import wrap_s32
from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """As many dimensions as the longer shape has."""
    call.expect(2)
    first, second = call.input(0), call.input(1)
    call.rank(first, 1)
    call.rank(second, 1)
    return [(max(first.size, second.size),)]


def lower(call: Call) -> Lowered:
    """Number of dimensions."""
    return Lowered(parameters={"rank": call.output.size})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A size of 1 gives way to the other one; only the low 32 bits count."""
    one, two = (np.concatenate([np.ones(step["rank"] - s.size, np.int64), wrap_s32(s)]) for s in inputs)
    if ((one != two) & (one != 1) & (two != 1)).any():
        raise RunError(
            "BT-SHAPE-BROADCAST", f"shapes {inputs[0].tolist()} and {inputs[1].tolist()} do not broadcast together"
        )
    return [np.where(one == 1, two, one).astype(inputs[0].dtype)]


OPERATOR = Operator("broadcast_args", (), infer, lower, reference, "the shape to which two shapes broadcast")

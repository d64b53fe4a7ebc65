"""count_up: start, start + step, ... up to but without the limit; nothing where the step leads away from it."""

from __future__ import annotations

import math

import numpy as np

from .base import Call, Lowered, Operator, Shape
from .indexing import bounded
from .range import reference


def infer(call: Call) -> list[Shape]:
    """max(0, ceil((limit - start) / step)), all in binary64."""
    call.expect(3)
    roles = ("start", "limit", "step")
    for position, role in enumerate(roles):
        if call.input(position, role).shape not in ((), (1,)):
            raise call.invalid("BT-RANGE", f"{role} must be one number, found {list(call.input(position).shape)}")
    start, limit, step = (call.value(p, role).reshape(()) for p, role in enumerate(roles))
    if step == 0:
        raise call.invalid("BT-RANGE", "the step is 0")
    with np.errstate(all="ignore"):
        quotient = float((np.float64(limit) - np.float64(start)) / np.float64(step))
    if not math.isfinite(quotient) or quotient > 2**31:
        raise call.invalid("BT-RANGE", f"from {start} to {limit} in steps of {step} is no finite number of steps")
    return [bounded(call, [max(0, math.ceil(quotient))])]


def lower(call: Call) -> Lowered:
    """The number of elements."""
    return Lowered({"count": call.output.size}, scratch=call.output.size * 8, operator="range")


OPERATOR = Operator("count_up", (), infer, lower, reference, "numbers in equal steps, or none")

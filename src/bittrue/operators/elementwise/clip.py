"""clip: raised to a lower end, then lowered to an upper end; both are operands of one element and may be absent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import blockwise


def infer(call: Call) -> list[Shape]:
    """The first input's shape."""
    call.expect((1, 3))
    for position, role in ((1, "lower end"), (2, "upper end")):
        if call.has(position) and call.input(position).size != 1:
            raise call.invalid(
                "BT-CLIP-END", f"the {role} must be one number, found shape {list(call.input(position).shape)}"
            )
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """Known ends; an absent end is the last finite number of the type."""
    kind = call.output.type
    if kind.is_integer:
        low, high = kind.minimum, kind.maximum
        return Lowered(parameters={"low": int(low), "high": int(high)})
    largest = float(np.finfo(kind.numpy).max)
    return Lowered(parameters={"low": -largest, "high": largest})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """x < low ? low : x, then that > high ? high : that; so NaN and -0 next to 0 stay, and ends that are NaN do
    nothing.
    """
    x = inputs[0]
    ends = [
        inputs[i].reshape(-1)[0] if len(inputs) > i and inputs[i] is not None else x.dtype.type(step[name])
        for i, name in ((1, "low"), (2, "high"))
    ]

    def block(values: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            raised = np.where(values < ends[0], ends[0], values)
            return np.where(raised > ends[1], ends[1], raised)

    return [blockwise(block, [x], x.dtype, x.dtype)]


OPERATOR = Operator("clip", (), infer, lower, reference, "min(max(x, low), high), ends as operands", elementwise=1)

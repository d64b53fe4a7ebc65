"""dynamic_quantize_linear: f32 to u8 by the extremes of the tensor itself.

Outputs: the integers, their scale (f32) and their zero point (u8), both scalars. A step may have the parameter `order`:
the axes in whose order the extremes are looked for, which matters to NaN. Rules: `dynamic_range` finds scale and
zero point, `quotient` and `to_integer` quantize with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import dynamic_range, quotient, to_integer
from ..core.base import Call, Operator, Shape, Step, nothing_to_prepare
from ..core.elementwise import blockwise


def infer(call: Call) -> list[Shape]:
    """The shape of the input, and two scalars."""
    call.expect(1, 3)
    return [call.input(0).shape, (), ()]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All numbers are looked at before the first one is stored."""
    x = inputs[0]
    try:
        seen = x.transpose(step["order"]) if "order" in step.parameters else x
        scale, zero_point = dynamic_range.RULES[step.rules["dynamic_range"]](seen.reshape(-1))
    except OverflowError as error:
        raise RunError(
            "BT-QUANT-DYNAMIC", str(error), place=step.place, advice="quantize finite numbers that are not all zero"
        ) from None
    divide, finish = quotient.RULES[step.rules["quotient"]].divide, to_integer.RULES[step.rules["to_integer"]]
    point = np.asarray(zero_point, np.int64)

    def one(x: np.ndarray) -> np.ndarray:
        return finish(divide(x, np.asarray(scale)), point, 0, 255)

    return [
        blockwise(one, [x], np.dtype(np.uint8), np.dtype(np.float32)),
        np.asarray(scale, np.float32),
        np.asarray(zero_point, np.uint8),
    ]


OPERATOR = Operator(
    "dynamic_quantize_linear",
    ("dynamic_range", "quotient", "to_integer"),
    infer,
    nothing_to_prepare,
    reference,
    "real numbers to u8, with scale and zero point of the tensor's own range",
    layout="order",
)

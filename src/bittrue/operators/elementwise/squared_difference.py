"""squared_difference: (first - second)^2, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import fixed_point
from ...rules import align, plain_range, rescale, store
from ..core.accumulator import fused_range
from ..core.base import Call, Lowered, Operator, Step, broadcast_shape
from ..core.elementwise import blockwise
from .add import aligned_arrays


def lower(call: Call) -> Lowered:
    """Multipliers of both inputs and of the square."""
    if "align" not in call.rules:
        return Lowered(parameters={"form": "plain"})
    first, second = call.input(0), call.input(1)
    return Lowered(
        parameters={
            **fused_range(call),
            "form": "rescaled",
            "first_zero_point": first.zero_point,
            "second_zero_point": second.zero_point,
        },
        arrays=aligned_arrays(call, power=2),
    )


def _square(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        difference = a - b
        square = difference * difference
    return plain_range.with_first_nan(square, a, b) if square.dtype.kind == "f" else square


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Align, subtract, square in 32 bits (wrapping), rescale and store; plain numbers keep their own type."""
    first, second = inputs
    if step["form"] == "plain":
        return [blockwise(_square, [first, second], first.dtype, first.dtype)]
    rule, multiply = step.rules["align"], step.rules["rescale"]
    finish = store.RULES[step.rules["store"]]
    low, high, zero_point = step["low"], step["high"], step["output_zero_point"]

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        one = align.apply(rule, a, step["first_zero_point"], multiply, step.arrays, "first_")
        two = align.apply(rule, b, step["second_zero_point"], multiply, step.arrays, "second_")
        square = fixed_point.wrap_s32((one - two) ** 2)
        return finish(rescale.apply(multiply, square, step.arrays), zero_point, low, high)

    return [blockwise(block, [first, second], first.dtype)]


OPERATOR = Operator(
    "squared_difference",
    ("align", "rescale", "store", "activation_range"),
    broadcast_shape,
    lower,
    reference,
    "element-wise squared difference",
    elementwise=2,
    commutes=True,
)

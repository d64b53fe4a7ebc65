"""power: first ^ second for real numbers, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import power
from .base import Call, Lowered, Operator, Step, broadcast_shape
from .elementwise import blockwise


def lower(call: Call) -> Lowered:
    """Whether rows of bases meet the only exponent, which some rules treat on its own."""
    in_rows = call.output.rank > 0 and call.output.shape[-1] > 1
    return Lowered(parameters={"one_exponent": call.input(1).size == 1 and in_rows})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's power; the exponent is converted to the type of the base."""
    base, exponent = inputs[0], np.asarray(inputs[1], np.float32)
    rule, real = power.RULES[step.rules["power"]], np.dtype(np.float32)
    return [blockwise(lambda x, y: rule(x, y, step["one_exponent"]), [base, exponent], base.dtype, real)]


OPERATOR = Operator(
    "power", ("power",), broadcast_shape, lower, reference, "first ^ second of real numbers", elementwise=2
)

"""add_n: the sum of two or more tensors of one shape, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import plain_range
from .base import EVERY, Call, Lowered, Operator, Shape, Step
from .elementwise import blockwise


def same_shapes(call: Call, least: int) -> Shape:
    """The shape that all inputs share, `least` or more of them."""
    if len(call.inputs) < least:
        raise call.invalid("BT-NODE-ARITY", f"expected {least} inputs or more, found {len(call.inputs)}")
    shape = call.input(0).shape
    for position in range(1, len(call.inputs)):
        if call.input(position).shape != shape:
            raise call.invalid(
                "BT-SHAPE-SAME",
                f"input {position} has shape {list(call.input(position).shape)}, the first input {list(shape)}",
                "all inputs need one shape",
            )
    return shape


def infer(call: Call) -> list[Shape]:
    """The shape that all inputs share."""
    return [same_shapes(call, 2)]


def lower(call: Call) -> Lowered:
    """The range that every sum is kept in."""
    low, high = plain_range.RULES[call.rules["plain_range"]]("none", call.output.type.numpy)
    return Lowered(parameters={"low": low, "high": high}, work=call.output.size * len(call.inputs))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Integers wrap; sums of real numbers that overflow stop at the largest finite one."""

    def plus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            total = a + b
        if total.dtype.kind == "f":
            total = plain_range.with_first_nan(total, a, b)
        return plain_range.clamp(total, step["low"], step["high"])

    total = inputs[0]
    for other in inputs[1:]:
        total = blockwise(plus, [total, other], total.dtype, total.dtype)
    return [total]


OPERATOR = Operator("add_n", ("plain_range",), infer, lower, reference, "sum of many tensors", elementwise=EVERY)

"""add_n: the sum of many tensors, one after the other or in the order of a rule of the slot `real_sum`.

Attributes, where they are there: `broadcasts` (the tensors, one or more, need not have one shape), `mean` (the sum is
divided by their number).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import plain_range, real_sum
from .base import EVERY, Call, Lowered, Operator, Shape, Step
from .elementwise import BLOCK, blockwise


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


def _joined(call: Call) -> Shape:
    """The shape that all operands broadcast to."""
    call.expect((1, max(1, len(call.inputs))))
    shapes = [call.input(position).shape for position in range(len(call.inputs))]
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate((1,) * (rank - len(shape)) + shape):
            if result[axis] != extent and 1 not in (result[axis], extent):
                raise call.invalid(
                    "BT-SHAPE-BROADCAST", f"shapes {[list(s) for s in shapes]} do not broadcast together"
                )
            result[axis] = extent if result[axis] == 1 else result[axis]
    return tuple(result)


def infer(call: Call) -> list[Shape]:
    """The shape that all inputs share, or broadcast to."""
    return [_joined(call) if call.node.attributes.get("broadcasts") else same_shapes(call, 2)]


def lower(call: Call) -> Lowered:
    """The range that every sum is kept in, or what the rule's sum is divided by."""
    count = len(call.inputs)
    if "real_sum" in call.rules:
        return Lowered(
            parameters={"divisor": count if call.node.attributes.get("mean") else 1, "shape": call.output.shape},
            work=call.output.size * count,
            scratch=4 * count * call.output.size + 32 * BLOCK,
        )
    low, high = plain_range.RULES[call.rules["plain_range"]]("none", call.output.type.numpy)
    return Lowered(parameters={"low": low, "high": high}, work=call.output.size * count)


def _by_rule(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's sum of the operands of every element."""
    shape = tuple(step["shape"])
    rows = np.stack([np.broadcast_to(x, shape).reshape(-1) for x in inputs], axis=1)
    total = real_sum.RULES[step.rules["real_sum"]].reductions["sum"]
    out = np.empty(rows.shape[0], inputs[0].dtype)
    for begin in range(0, out.size, BLOCK):
        block = rows[begin : begin + BLOCK]
        divisors = None if step["divisor"] == 1 else np.full(len(block), step["divisor"], np.float64)
        out[begin : begin + BLOCK] = total(block, divisors, real_sum.Way(by_reciprocal=True))
    return [out.reshape(shape)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Integers wrap; sums of real numbers that overflow stop at the largest finite one."""
    if "real_sum" in step.rules:
        return _by_rule(step, inputs)

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


OPERATOR = Operator(
    "add_n", ("plain_range", "real_sum"), infer, lower, reference, "sum of many tensors", elementwise=EVERY
)

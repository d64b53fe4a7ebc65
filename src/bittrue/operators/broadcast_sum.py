"""broadcast_sum and broadcast_mean: one or more tensors that broadcast together, added up; and that over their
number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import real_sum
from .base import EVERY, Call, Lowered, Operator, Shape, Step
from .elementwise import BLOCK


def infer(call: Call) -> list[Shape]:
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
    return [tuple(result)]


def lower(call: Call) -> Lowered:
    """What the sum is divided by."""
    count = len(call.inputs)
    return Lowered(
        parameters={"divisor": count if call.node.operator == "broadcast_mean" else 1, "shape": call.output.shape},
        work=call.output.size * count,
        scratch=4 * count * call.output.size + 32 * BLOCK,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
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


OPERATORS = (
    Operator(
        "broadcast_sum", ("real_sum",), infer, lower, reference, "sum of any number of tensors", elementwise=EVERY
    ),
    Operator(
        "broadcast_mean", ("real_sum",), infer, lower, reference, "mean of any number of tensors", elementwise=EVERY
    ),
)

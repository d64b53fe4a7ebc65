"""add_n: the sum of many tensors of one shape.

The rules of a row decide the arithmetic: `plain_range` of numbers, one after the other; `affine_sum_of_many` of
quantized tensors, rounded once per input and once for all; `real_sum` in the order of its rule.

Attributes, where they are there: `broadcasts` (the tensors, one or more, need not have one shape), `mean` (the sum is
divided by their number).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import affine_sum_of_many, plain_range, real_sum
from ..core.accumulator import fused_range
from ..core.base import EVERY, Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK, blockwise
from .add import pair_of, prepared_or_refused


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
        for axis, size in enumerate((1,) * (rank - len(shape)) + shape):
            if result[axis] != size and 1 not in (result[axis], size):
                raise call.invalid(
                    "BT-SHAPE-BROADCAST", f"shapes {[list(s) for s in shapes]} do not broadcast together"
                )
            result[axis] = size if result[axis] == 1 else result[axis]
    return tuple(result)


def infer(call: Call) -> list[Shape]:
    """The shape that all inputs share, or broadcast to."""
    if call.node.attributes.get("broadcasts"):
        return [_joined(call)]
    return [same_shapes(call, int(call.node.attributes.get("least", 2)))]  # type: ignore[arg-type]


def lower(call: Call) -> Lowered:
    """What the rule makes of scales and zero points, and the range that sums are kept in."""
    work = call.output.size * len(call.inputs)
    if "affine_sum_of_many" in call.rules:
        many = affine_sum_of_many.RULES[call.rules["affine_sum_of_many"]]
        scales = [pair_of(call.input(position)) for position in range(len(call.inputs))]
        arrays = prepared_or_refused(call, many.prepare, [*scales, pair_of(call.output)])
        return Lowered(fused_range(call), arrays, work=work)
    if "real_sum" in call.rules:
        return Lowered(
            parameters={
                "divisor": len(call.inputs) if call.node.attributes.get("mean") else 1,
                "shape": call.output.shape,
            },
            work=work,
            scratch=4 * work + 32 * BLOCK,
        )
    low, high = plain_range.RULES[call.rules["plain_range"]]("none", call.output.type.numpy)
    return Lowered(parameters={"low": low, "high": high}, work=work)


def _by_rule(step: Step, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """The rule's sum of the operands of every element."""
    shape = tuple(step["shape"])
    rows = np.stack([np.broadcast_to(x, shape).reshape(-1) for x in inputs], axis=1)
    total = real_sum.RULES[step.rules["real_sum"]].reductions["sum"]
    out = np.empty(rows.shape[0], inputs[0].dtype)
    for begin in range(0, out.size, BLOCK):
        block = rows[begin : begin + BLOCK]
        divisors = None if step["divisor"] == 1 else np.full(len(block), step["divisor"], np.float64)
        out[begin : begin + BLOCK] = total(block, divisors, real_sum.Way(by_reciprocal=True))
    return out.reshape(shape)


def _plain(step: Step, inputs: Sequence[np.ndarray]) -> np.ndarray:
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
    return total


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule, block by block."""
    if "real_sum" in step.rules:
        return [_by_rule(step, inputs)]
    if "affine_sum_of_many" not in step.rules:
        return [_plain(step, inputs)]
    apply, low, high = affine_sum_of_many.RULES[step.rules["affine_sum_of_many"]].apply, step["low"], step["high"]
    dtype, most = inputs[0].dtype, 16
    if len(inputs) > most:
        # More operands than NumPy's iterator takes.
        return [apply(inputs, step.arrays, low, high).astype(dtype)]
    return [blockwise(lambda *values: apply(values, step.arrays, low, high), inputs, dtype)]


OPERATOR = Operator(
    "add_n",
    ("plain_range", "real_sum", "affine_sum_of_many", "activation_range"),
    infer,
    lower,
    reference,
    "sum of many tensors",
    elementwise=EVERY,
)

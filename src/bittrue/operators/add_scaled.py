"""add_scaled: the sum of one or more quantized tensors of one shape, rounded once per input and once for all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import affine_sum_of_many
from .accumulator import fused_range
from .add import pair_of, prepared_or_refused
from .add_n import same_shapes
from .base import EVERY, Call, Lowered, Operator, Shape, Step
from .elementwise import blockwise


def infer(call: Call) -> list[Shape]:
    """The shape that all inputs share."""
    return [same_shapes(call, 1)]


def lower(call: Call) -> Lowered:
    """What the rule makes of all scales and zero points, and the clamp."""
    rule = affine_sum_of_many.RULES[call.rules["affine_sum_of_many"]]
    scales = [pair_of(call.input(position)) for position in range(len(call.inputs))]
    arrays = prepared_or_refused(call, rule.prepare, [*scales, pair_of(call.output)])
    return Lowered(fused_range(call), arrays, work=call.output.size * len(call.inputs))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule, block by block."""
    apply, low, high = affine_sum_of_many.RULES[step.rules["affine_sum_of_many"]].apply, step["low"], step["high"]
    dtype, most = inputs[0].dtype, 16
    if len(inputs) > most:
        # More operands than NumPy's iterator takes.
        return [apply(inputs, step.arrays, low, high).astype(dtype)]
    return [blockwise(lambda *codes: apply(codes, step.arrays, low, high), inputs, dtype)]


OPERATOR = Operator(
    "add_scaled",
    ("affine_sum_of_many", "activation_range"),
    infer,
    lower,
    reference,
    "sum of one or more quantized tensors",
    elementwise=EVERY,
)

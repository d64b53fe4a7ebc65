"""softmax_along and log_softmax_along: rows of real numbers along any axis, or over all axes from one on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..rules import real_softmax
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import BLOCK


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(1)
    source = call.input(0)
    # A flattened tensor may begin its rows behind the last axis.
    if not (call.attribute("flattened") and call.attribute("axis") == source.rank):
        call.axis(int(call.attribute("axis")), source.rank)
    return [source.shape]


def lower(call: Call) -> Lowered:
    """[outer, rows' length, inner]."""
    shape = call.input(0).shape
    axis = int(call.attribute("axis"))
    axis = axis if axis == len(shape) and call.attribute("flattened") else call.axis(axis, len(shape))
    rest = shape[axis:] if call.attribute("flattened") else shape[axis : axis + 1]
    view = (
        math.prod(shape[:axis]),
        math.prod(rest),
        1 if call.attribute("flattened") else math.prod(shape[axis + 1 :]),
    )
    return Lowered(parameters={"view": view}, scratch=4 * math.prod(shape) + 64 * max(BLOCK, view[1]))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's softmax of rows that lie side by side."""
    x = inputs[0]
    if not x.size:
        return [x.copy()]
    rule = real_softmax.RULES[step.rules["real_softmax"]]
    view = np.moveaxis(x.reshape(step["view"]), 1, 2)
    rows = np.ascontiguousarray(view).reshape(-1, step["view"][1])
    out = np.empty_like(rows)
    per_block = max(1, BLOCK // rows.shape[1])
    for begin in range(0, rows.shape[0], per_block):
        block = rows[begin : begin + per_block]
        out[begin : begin + per_block] = (
            rule.softmax(block, 1.0) if step.operator == "softmax_along" else rule.log_softmax(block)
        )
    return [np.ascontiguousarray(np.moveaxis(out.reshape(view.shape), 2, 1)).reshape(x.shape)]


OPERATORS = (
    Operator("softmax_along", ("real_softmax",), infer, lower, reference, "probabilities along an axis"),
    Operator("log_softmax_along", ("real_softmax",), infer, lower, reference, "their logarithms"),
)

"""qlinear_softmax: shares of exponentials along an axis, or along all axes from one on.

Operands: x, x_scale, x_zero_point, y_scale, y_zero_point; zero points may be absent (0). With constant scales the step
reads x alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import DATA_TYPES
from ..rules import affine_softmax
from .base import Call, Lowered, Operator, Shape, Step
from .late import Prepared, Values, prepare_late, prepare_now
from .roles import OPERAND_UNARY
from .scalar_operands import check_scalars, pair

_PARAMETERS = (1, 2, 3, 4)
# Elements worked on at a time.
_BLOCK = 1 << 16


def infer(call: Call) -> list[Shape]:
    """The shape of x."""
    call.expect((4, 5))
    check_scalars(call, (1, 3), (2, 4))
    source = call.input(0)
    call.rank(source, 1, 32)
    call.axis(call.attribute("axis"), source.rank)
    return [source.shape]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = affine_softmax.RULES[rules["affine_softmax"]]
    return {}, rule.prepare(pair(values, 1, 2), pair(values, 3, 4), known["length"])


def lower(call: Call) -> Lowered:
    """Rows, and the table of exponentials."""
    source, output = call.input(0), call.output
    axis = call.axis(call.attribute("axis"), source.rank)
    end = source.rank if call.attribute("to_the_end") else axis + 1
    length = max(1, math.prod(source.shape[axis:end]))
    parameters, arrays = prepare_now(
        call,
        _PARAMETERS,
        {
            "axes": tuple(range(axis, end)),
            "length": length,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "dtype": output.dtype,
        },
        _prepare,
    )
    scratch = 2 * source.size + 64 * max(_BLOCK, length)
    return Lowered(parameters, arrays, scratch=scratch, inputs=None if parameters["late"] else (0,))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Row by row, in blocks."""
    step, x = prepare_late(step, inputs, _prepare), inputs[0]
    kept = [axis for axis in range(x.ndim) if axis not in step["axes"]]
    order = [*kept, *step["axes"]]
    moved = np.transpose(x, order)
    rows = moved.reshape(-1, step["length"]) if x.size else moved.reshape(0, 1)
    out = np.empty(rows.shape, DATA_TYPES[step["dtype"]].numpy)
    apply = affine_softmax.RULES[step.rules["affine_softmax"]].apply
    count = max(1, _BLOCK // step["length"])
    for first in range(0, len(rows), count):
        block = rows[first : first + count].astype(np.int64)
        out[first : first + count] = apply(block, step.arrays, step["low"], step["high"])
    return [np.ascontiguousarray(np.transpose(out.reshape(moved.shape), np.argsort(order)))]


OPERATOR = Operator(
    "qlinear_softmax",
    ("affine_softmax",),
    infer,
    lower,
    reference,
    "shares of exponentials along axes of a tensor whose scales are operands",
    roles=OPERAND_UNARY,
)

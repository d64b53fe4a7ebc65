"""ranged_add: sums of two tensors with ranges, element by element.

Operands: a, b, minimum and maximum of a, minimum and maximum of b. Attributes: `calibrated`, and then `minimum` and
`maximum` of the result; without them the result is of 32 bits, and its range is the sum of both.

With known ranges the step reads a and b alone. Arrays: `factors` and `narrowed`, see the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import DATA_TYPES
from ..rules import range_sum
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import blockwise
from .late import Prepared, Values, prepare_late, prepare_now
from .range_operands import check_range, given_ends, given_span, span


def equal_shape(call: Call) -> Shape:
    """The shape that the first two inputs have in common."""
    first, second = call.input(0), call.input(1)
    if first.shape != second.shape:
        raise call.invalid(
            "BT-SHAPE-EQUAL",
            f"'{first.name}' has shape {list(first.shape)}, '{second.name}' {list(second.shape)}: they must be equal",
            "this operator does not broadcast",
        )
    return first.shape


def infer(call: Call) -> list[Shape]:
    """The shape of both."""
    call.expect(6)
    check_range(call, 2, 3, 4, 5)
    return [equal_shape(call)]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = range_sum.RULES[rules["range_sum"]]
    types = str(known["types"]).split()
    output = known["dtype"], given_span(known)
    return {}, rule.prepare((types[0], span(values, 2)), (types[1], span(values, 4)), output)


def lower(call: Call) -> Lowered:
    """What the rule makes of the ranges."""
    output = call.output
    known = {
        **given_ends(call),
        "dtype": output.dtype,
        "types": f"{call.input(0).dtype} {call.input(1).dtype}",
        "low": output.type.minimum,
        "high": output.type.maximum,
    }
    if known["calibrated"] == (output.dtype == "s32"):
        raise call.invalid("BT-RANGE-TYPE", f"a sum of type {output.dtype} that is calibrated: {known['calibrated']}")
    parameters, arrays = prepare_now(call, (2, 3, 4, 5), known, _prepare)
    return Lowered(parameters, arrays, inputs=None if parameters["late"] else (0, 1))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule, block by block."""
    step = prepare_late(step, inputs, _prepare)
    apply, low, high = range_sum.RULES[step.rules["range_sum"]].apply, step["low"], step["high"]
    dtype = DATA_TYPES[step["dtype"]].numpy
    return [blockwise(lambda a, b: apply(a, b, step.arrays, low, high), inputs[:2], dtype)]


OPERATOR = Operator(
    "ranged_add", ("range_sum",), infer, lower, reference, "sum of two tensors with ranges", elementwise=2
)

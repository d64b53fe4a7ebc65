"""ranged_multiply: products of two s8 tensors with ranges, element by element.

Operands: a, b, minimum and maximum of a, minimum and maximum of b. Attributes: `calibrated`, and then `minimum` and
`maximum` of an s8 result; a result of 32 bits or a real one has no range of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import DATA_TYPES
from ..rules import range_product
from .base import Call, Lowered, Operator, Step
from .elementwise import blockwise
from .late import Prepared, Values, prepare_late, prepare_now
from .range_operands import given_ends, given_span, span
from .ranged_add import infer


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = range_product.RULES[rules["range_product"]]
    factor = rule.prepare(span(values, 2), span(values, 4), known["dtype"], given_span(known))
    return {}, {"factor": np.asarray(factor)}


def lower(call: Call) -> Lowered:
    """The rule's factor."""
    output = call.output.dtype
    known = {**given_ends(call), "dtype": output}
    if output != "f32" and known["calibrated"] != (output == "s8"):
        raise call.invalid("BT-RANGE-TYPE", f"a product of type {output} that is calibrated: {known['calibrated']}")
    parameters, arrays = prepare_now(call, (2, 3, 4, 5), known, _prepare)
    return Lowered(parameters, arrays, inputs=None if parameters["late"] else (0, 1))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule, block by block."""
    step = prepare_late(step, inputs, _prepare)
    rule, factor, output = range_product.RULES[step.rules["range_product"]], step.arrays["factor"], step["dtype"]
    dtype = DATA_TYPES[output].numpy
    return [blockwise(lambda a, b: rule.apply(a, b, np.float32(factor), output), inputs[:2], dtype)]


OPERATOR = Operator(
    "ranged_multiply",
    ("range_product",),
    infer,
    lower,
    reference,
    "product of two s8 tensors with ranges",
    elementwise=2,
)

"""Sums and products of two tensors with ranges, element by element.

Inputs: a, b, six that are absent (the places of scales and zero points), minimum and maximum of a, minimum and maximum
of b. Attributes: `calibrated`, and then `minimum` and `maximum` of the result. Without them a result of 32 bits has the
range that follows from both, and a real one has none.

With known ranges the step reads a and b alone. Arrays: what the rule of `range_sum` or `range_product` prepares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import DATA_TYPES
from ...rules import range_product, range_sum
from ..core.base import Call, Lowered, Shape, Step
from ..core.elementwise import blockwise
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..quantization.range_operands import check_range, given_ends, given_span, span

_FIRST, _SECOND = 8, 10
COUNT = 12


def infer(call: Call) -> list[Shape]:
    """The shape of both."""
    call.expect(COUNT)
    check_range(call, *range(_FIRST, COUNT))
    first, second = call.input(0), call.input(1)
    if first.shape != second.shape:
        raise call.invalid(
            "BT-SHAPE-EQUAL",
            f"'{first.name}' has shape {list(first.shape)}, '{second.name}' {list(second.shape)}: they must be equal",
            "this operator does not broadcast",
        )
    return [first.shape]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    first, second, output = span(values, _FIRST), span(values, _SECOND), given_span(known)
    if "range_product" in rules:
        factor = range_product.RULES[rules["range_product"]].prepare(first, second, known["dtype"], output)
        return {}, {"factor": np.asarray(factor)}
    types = str(known["types"]).split()
    rule = range_sum.RULES[rules["range_sum"]]
    return {}, rule.prepare((types[0], first), (types[1], second), (known["dtype"], output))


def lower(call: Call) -> Lowered:
    """What the rule makes of the ranges."""
    output = call.output
    known = {
        **given_ends(call),
        "dtype": output.dtype,
        "types": f"{call.input(0).dtype} {call.input(1).dtype}",
        "form": "ranges",
    }
    if output.type.is_integer:
        known |= {"low": output.type.minimum, "high": output.type.maximum}
    if output.dtype != "f32" and known["calibrated"] == (output.dtype == "s32"):
        calibrated = known["calibrated"]
        raise call.invalid("BT-RANGE-TYPE", f"a result of type {output.dtype} that is calibrated: {calibrated}")
    parameters, arrays = prepare_now(call, range(_FIRST, COUNT), known, _prepare)
    return Lowered(parameters, arrays, inputs=None if parameters["late"] else (0, 1))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule, block by block."""
    step = prepare_late(step, inputs, _prepare)
    dtype = DATA_TYPES[step["dtype"]].numpy
    if "range_product" in step.rules:
        product, factor = range_product.RULES[step.rules["range_product"]], np.float32(step.arrays["factor"])
        return [blockwise(lambda a, b: product.apply(a, b, factor, step["dtype"]), inputs[:2], dtype)]
    apply, low, high = range_sum.RULES[step.rules["range_sum"]].apply, step["low"], step["high"]
    return [blockwise(lambda a, b: apply(a, b, step.arrays, low, high), inputs[:2], dtype)]

"""Sums and products of two quantized tensors whose scales and zero points are operands; `range_pairs` has ranges.

Inputs: a, b, scale and zero point of a, of b and of the result; zero points may be absent (0). With the
attribute `side_by_side` elements are taken in their order, whatever dimensions of 1 there are. With constant scales the
step reads two inputs, `first` and `second` of the rule, else all eight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...graph import DATA_TYPES, Attribute
from ...rules import affine_product, affine_sum
from ..core.base import Call, Lowered, Shape, Step
from ..core.elementwise import blockwise
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.roles import OPERAND_PAIR
from ..core.scalar_operands import check_scalars, pair
from . import range_pairs, stored_sums

_RULES: Mapping[str, Any] = {"affine_sum": affine_sum, "affine_product": affine_product}


def infer(call: Call) -> list[Shape]:
    """NumPy broadcasting of the first two inputs; those with ranges have one shape."""
    if len(call.inputs) == range_pairs.COUNT:
        return range_pairs.infer(call)
    call.expect((7, 8))
    check_scalars(call, (2, 4, 6), (3, 5, 7))
    if call.node.attributes.get("side_by_side"):
        return stored_sums.infer_equal_counts(call)
    one, two = call.input(0), call.input(1)
    try:
        return [tuple(np.broadcast_shapes(one.shape, two.shape))]
    except ValueError:
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {list(one.shape)} and {list(two.shape)} do not broadcast together"
        ) from None


def swapped(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether the first operand is the one that stands still along the innermost axis that any of them has.

    A scalar operand is always the second one of the rule.

    >>> swapped((1,), (2, 3)), swapped((2, 1), (2, 3)), swapped((2, 3), (2, 1)), swapped((2, 1), (1, 1))
    (True, True, False, False)
    """
    for one, two in zip(reversed((*(1,) * len(second), *first)), reversed((*(1,) * len(first), *second)), strict=True):
        if (one, two) != (1, 1):
            return one == 1
    return False


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values, slot: str) -> Prepared:
    first, second = pair(values, 2, 3), pair(values, 4, 5)
    if known["swapped"]:
        first, second = second, first
    return {}, _RULES[slot].RULES[rules[slot]].prepare(first, second, pair(values, 6, 7))


def lower(call: Call, slot: str) -> Lowered:
    """What the rule of `affine_sum` or `affine_product` makes of scales and zero points, or others of ranges."""
    if slot not in call.rules:
        return range_pairs.lower(call)
    exchange, output = swapped(call.input(0).shape, call.input(1).shape), call.output
    ends: dict[str, Attribute] = {"low": output.type.minimum, "high": output.type.maximum, "dtype": output.dtype}
    known = {**ends, "swapped": exchange, "form": "operands"}
    parameters, arrays = prepare_now(call, range(2, 8), known, partial(_prepare, slot=slot), OPERAND_PAIR)
    inputs = None if parameters["late"] else ((1, 0) if exchange else (0, 1))
    return Lowered(parameters, arrays, inputs=inputs)


def reference(step: Step, inputs: Sequence[np.ndarray], slot: str) -> list[np.ndarray]:
    """The rule, block by block."""
    first, second = inputs[1::-1] if step["late"] and step["swapped"] else inputs[:2]
    step = prepare_late(step, inputs, partial(_prepare, slot=slot))
    apply, low, high = _RULES[slot].RULES[step.rules[slot]].apply, step["low"], step["high"]
    dtype = DATA_TYPES[step["dtype"]].numpy
    return [blockwise(lambda a, b: apply(a, b, step.arrays, low, high), [first, second], dtype)]

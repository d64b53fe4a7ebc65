"""qlinear_add and qlinear_mul: sums and products of quantized numbers, with NumPy broadcasting.

Operands: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point; zero points may be absent (0).

With constant scales the step reads two inputs, `first` and `second` of the rule, else all eight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..graph import DATA_TYPES
from ..rules import affine_product, affine_sum
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import blockwise
from .late import Prepared, Values, prepare_late, prepare_now
from .roles import OPERAND_PAIR
from .scalar_operands import check_scalars, pair

_PARAMETERS = (1, 2, 4, 5, 6, 7)
_RULES = {"qlinear_add": affine_sum.RULES, "qlinear_mul": affine_product.RULES}
_SLOTS = {"qlinear_add": "affine_sum", "qlinear_mul": "affine_product"}


def broadcast(call: Call, first: int, second: int) -> Shape:
    """The common shape of two inputs."""
    one, two = call.input(first), call.input(second)
    try:
        return tuple(np.broadcast_shapes(one.shape, two.shape))
    except ValueError:
        raise call.invalid(
            "BT-SHAPE-BROADCAST", f"shapes {list(one.shape)} and {list(two.shape)} do not broadcast together"
        ) from None


def infer(call: Call) -> list[Shape]:
    """NumPy broadcasting."""
    call.expect((7, 8))
    check_scalars(call, (1, 4, 6), (2, 5, 7))
    return [broadcast(call, 0, 3)]


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


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values, stem: str) -> Prepared:
    first, second = pair(values, 1, 2), pair(values, 4, 5)
    if known["swapped"]:
        first, second = second, first
    rule = _RULES[stem][rules[_SLOTS[stem]]]
    return {}, rule.prepare(first, second, pair(values, 6, 7))


def lower(call: Call, stem: str) -> Lowered:
    """What the rule makes of scales and zero points."""
    exchange = swapped(call.input(0).shape, call.input(3).shape)
    output = call.output
    parameters, arrays = prepare_now(
        call,
        _PARAMETERS,
        {"swapped": exchange, "low": output.type.minimum, "high": output.type.maximum, "dtype": output.dtype},
        partial(_prepare, stem=stem),
    )
    inputs = None if parameters["late"] else ((3, 0) if exchange else (0, 3))
    return Lowered(parameters, arrays, inputs=inputs)


def reference(step: Step, inputs: Sequence[np.ndarray], stem: str) -> list[np.ndarray]:
    """The rule, block by block."""
    first, second = (
        (inputs[3 if step["swapped"] else 0], inputs[0 if step["swapped"] else 3]) if step["late"] else inputs
    )
    step = prepare_late(step, inputs, partial(_prepare, stem=stem))
    apply, low, high = _RULES[stem][step.rules[_SLOTS[stem]]].apply, step["low"], step["high"]
    dtype = DATA_TYPES[step["dtype"]].numpy
    return [blockwise(lambda a, b: apply(a, b, step.arrays, low, high), [first, second], dtype)]


def _operator(stem: str, summary: str) -> Operator:
    return Operator(
        stem,
        (_SLOTS[stem],),
        infer,
        partial(lower, stem=stem),
        partial(reference, stem=stem),
        summary,
        roles=OPERAND_PAIR,
        elementwise=2,
    )


OPERATORS = (
    _operator("qlinear_add", "sum of two quantized tensors whose scales are operands"),
    _operator("qlinear_mul", "product of two quantized tensors whose scales are operands"),
)

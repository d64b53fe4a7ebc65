"""plain_add, plain_multiply, plain_maximum and plain_minimum: stored numbers of equal shape, in their own type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..rules import plain_range
from .base import Call, Operator, Shape, Step, nothing_to_prepare
from .elementwise import blockwise

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]


def same_shapes(call: Call) -> list[Shape]:
    """`infer` of binary operators that do not broadcast."""
    call.expect(2)
    first, second = call.input(0), call.input(1)
    if first.shape != second.shape:
        raise call.invalid(
            "BT-SHAPE-SAME",
            f"shapes {list(first.shape)} and {list(second.shape)} differ, and this operator does not broadcast",
        )
    return [first.shape]


def _rounded(operation: np.ufunc) -> Function:
    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            result = operation(a, b)
        return plain_range.with_first_nan(result, a, b) if result.dtype == np.float32 else result

    return function


def reference(step: Step, inputs: Sequence[np.ndarray], function: Function) -> list[np.ndarray]:
    """Element by element; integers wrap."""
    first, second = inputs
    return [blockwise(function, [first, second], first.dtype, first.dtype)]


def _operator(stem: str, function: Function, summary: str) -> Operator:
    return Operator(
        stem, (), same_shapes, nothing_to_prepare, partial(reference, function=function), summary, elementwise=2
    )


OPERATORS = (
    _operator("plain_add", _rounded(np.add), "sum of stored numbers"),
    _operator("plain_multiply", _rounded(np.multiply), "product of stored numbers"),
    # The first one stays where neither is beyond the other: with NaN, and with zeros of either sign.
    _operator("plain_maximum", lambda a, b: np.where(a < b, b, a), "larger stored number"),
    _operator("plain_minimum", lambda a, b: np.where(b < a, b, a), "smaller stored number"),
)

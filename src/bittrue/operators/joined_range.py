"""joined_range and sum_range: the range of a result from the ranges of its operands.

Operands are pairs (minimum, maximum) of tensors with one binary32 number each; so are the two results, of shape [1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step, nothing_to_prepare
from .range_operands import end
from .range_quantize import check_range

Ends = list[tuple[np.float32, np.float32]]


def joined(ranges: Ends) -> tuple[np.float32, np.float32]:
    """From the smallest minimum to the largest maximum, both of them or 0.

    >>> [float(v) for v in joined([(np.float32(1), np.float32(2)), (np.float32(-3), np.float32(-1))])]
    [-3.0, 2.0]
    """
    low = high = np.float32(0)
    for minimum, maximum in ranges:
        low, high = (minimum if minimum < low else low), (maximum if maximum > high else high)
    return low, high


def added(ranges: Ends) -> tuple[np.float32, np.float32]:
    """Both ways the sum of max(|minimum|, |maximum|), in binary32."""
    first, second = (max(abs(minimum), abs(maximum)) for minimum, maximum in ranges)
    return -(first + second), first + second


def _infer(call: Call, count: int | None) -> list[Shape]:
    call.expect(count if count else (2, len(call.inputs)), 2)
    if len(call.inputs) % 2:
        raise call.invalid("BT-NODE-ARITY", f"{len(call.inputs)} inputs are no pairs of a minimum and a maximum")
    check_range(call, *range(len(call.inputs)))
    return [(1,), (1,)]


def _reference(inputs: Sequence[np.ndarray], rule: Callable[[Ends], tuple[np.float32, np.float32]]) -> list[np.ndarray]:
    ends = [end(inputs, position) for position in range(len(inputs))]
    with np.errstate(all="ignore"):
        return [np.full(1, value, np.float32) for value in rule(list(zip(ends[::2], ends[1::2], strict=True)))]


def _operator(
    stem: str, rule: Callable[[Ends], tuple[np.float32, np.float32]], count: int | None, summary: str
) -> Operator:
    def infer(call: Call) -> list[Shape]:
        return _infer(call, count)

    def lower(call: Call) -> Lowered:
        return nothing_to_prepare(call)

    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return _reference(inputs, rule)

    return Operator(stem, (), infer, lower, reference, summary)


OPERATORS = (
    _operator("joined_range", joined, None, "the smallest range with 0 that holds all ranges"),
    _operator("sum_range", added, 4, "the range of a sum of two numbers with ranges"),
)

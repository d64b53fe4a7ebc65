"""What becomes of ranges, where they travel beside tensors as two binary32 numbers of shape [1], low and high.

range_of_values: x (f32): its smallest and largest number. symmetric_range: low, high: [-R, R], or [0, R] when
`unsigned`, R = max(|low|, |high|). range_of_sums: acc (s32), low, high: the same for the largest sum that occurs.
product_range: low and high of two factors: [-m, m] of what s32 can hold, `first_level` and `second_level` being the
quantized values that the factors' R stand for. joined_range: pairs of low and high: the smallest range with 0 that
holds them all.
sum_range: two pairs: both ways the sum of both R, in binary32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules.range_levels import SUM_LEVEL, Ends, reach
from ..core.base import Call, Lowered, Operator, Shape, Step, nothing_to_prepare
from .range_operands import check_range, ends_of

_LOWEST = np.iinfo(np.int32).min
_LARGEST = np.finfo(np.float32).max


def infer_values(call: Call) -> list[Shape]:
    """Two numbers."""
    call.expect(1, 2)
    if not call.input(0).size:
        raise call.invalid("BT-RANGE-EMPTY", "the range of an empty tensor is not defined")
    return [(1,), (1,)]


def infer_symmetric(call: Call) -> list[Shape]:
    """Two numbers."""
    call.expect(2, 2)
    check_range(call, 0, 1)
    return [(1,), (1,)]


def infer_sums(call: Call) -> list[Shape]:
    """Two numbers."""
    call.expect(3, 2)
    check_range(call, 1, 2)
    if not call.input(0).size:
        raise call.invalid("BT-RANGE-EMPTY", "the range of an empty tensor is not defined")
    return [(1,), (1,)]


def infer_product(call: Call) -> list[Shape]:
    """Two numbers."""
    call.expect(4, 2)
    check_range(call, 0, 1, 2, 3)
    return [(1,), (1,)]


def infer_joined(call: Call) -> list[Shape]:
    """Two numbers."""
    call.expect((2, len(call.inputs)), 2)
    if len(call.inputs) % 2:
        raise call.invalid("BT-NODE-ARITY", f"{len(call.inputs)} inputs are no pairs of a minimum and a maximum")
    check_range(call, *range(len(call.inputs)))
    return [(1,), (1,)]


def infer_sum(call: Call) -> list[Shape]:
    """Two numbers."""
    call.expect(4, 2)
    check_range(call, 0, 1, 2, 3)
    return [(1,), (1,)]


def lower_unsigned(call: Call) -> Lowered:
    """Whether there are quantized values below 0."""
    return Lowered({"unsigned": bool(call.attribute("unsigned"))})


def lower_product(call: Call) -> Lowered:
    """Both levels."""
    return Lowered({name: int(call.attribute(name)) for name in ("first_level", "second_level")})


def _pair(low: np.float32, high: np.float32) -> list[np.ndarray]:
    return [np.array([low], np.float32), np.array([high], np.float32)]


def joined(ranges: Sequence[Ends]) -> Ends:
    """From the smallest minimum to the largest maximum, both of them or 0.

    >>> [float(v) for v in joined([(np.float32(1), np.float32(2)), (np.float32(-3), np.float32(-1))])]
    [-3.0, 2.0]
    """
    low = high = np.float32(0)
    for minimum, maximum in ranges:
        low, high = (minimum if minimum < low else low), (maximum if maximum > high else high)
    return low, high


def reference_values(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What is no number does not count; low begins at the largest finite number, high at its negative."""
    numbers = inputs[0][~np.isnan(inputs[0])]
    return _pair(numbers.min(initial=_LARGEST), numbers.max(initial=-_LARGEST))


def reference_symmetric(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """R and its negative, or 0."""
    largest = reach(ends_of(inputs, 0))
    return _pair(np.float32(0) if step["unsigned"] else -largest, largest)


def reference_sums(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """f32(f32(largest |acc|) * R) / 2^31; the magnitude of the lowest s32 is not defined."""
    acc = inputs[0]
    if acc.min() == _LOWEST:
        raise RunError("BT-RANGE-LOWEST", f"the range of {_LOWEST} is not defined: it has no magnitude in 32 bits")
    most = np.float32(max(int(acc.max()), -int(acc.min())))
    with np.errstate(all="ignore"):
        largest = most * reach(ends_of(inputs, 1)) / SUM_LEVEL
    return _pair(np.float32(0) if step["unsigned"] else -largest, largest)


def reference_product(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """f32(f32(R_first / level) * f32(R_second / level)) * 2^31."""
    with np.errstate(all="ignore"):
        first = reach(ends_of(inputs, 0)) / np.float32(step["first_level"])
        second = reach(ends_of(inputs, 2)) / np.float32(step["second_level"])
        largest = first * second * SUM_LEVEL
    return _pair(-largest, largest)


def reference_joined(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Comparisons alone."""
    return _pair(*joined([ends_of(inputs, position) for position in range(0, len(inputs), 2)]))


def reference_sum(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One addition."""
    with np.errstate(all="ignore"):
        total = reach(ends_of(inputs, 0)) + reach(ends_of(inputs, 2))
    return _pair(-total, total)


OPERATORS = (
    Operator(
        "range_of_values",
        (),
        infer_values,
        nothing_to_prepare,
        reference_values,
        "the smallest and the largest number of a tensor",
    ),
    Operator("symmetric_range", (), infer_symmetric, lower_unsigned, reference_symmetric, "[-R, R] of a range"),
    Operator(
        "range_of_sums", (), infer_sums, lower_unsigned, reference_sums, "the range that the sums of a tensor reach"
    ),
    Operator("product_range", (), infer_product, lower_product, reference_product, "the range of sums of products"),
    Operator(
        "joined_range",
        (),
        infer_joined,
        nothing_to_prepare,
        reference_joined,
        "the smallest range with 0 that holds all ranges",
    ),
    Operator(
        "sum_range",
        (),
        infer_sum,
        nothing_to_prepare,
        reference_sum,
        "the range of a sum of two numbers with ranges",
    ),
)

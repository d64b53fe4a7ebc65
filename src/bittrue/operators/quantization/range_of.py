"""range_of: the range of a tensor, two binary32 numbers of shape [1], low and high; `of` says what it follows from.

values: x (f32): its smallest and largest number. The others read ranges, R = max(|low|, |high|). symmetric: low, high:
[-R, R], or [0, R] when `unsigned`. sums: acc (s32), low, high: the same for the largest sum that occurs. product: low
and high of two factors: [-m, m] of what s32 can hold, `first_level` and `second_level` being the quantized values that
the factors' R stand for. sum: two pairs: both ways the sum of both R. union: pairs of low and high: the smallest range
with 0 that holds them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import RunError
from ...graph import Attribute
from ...records import dataclass
from ...rules.range_levels import SUM_LEVEL, Ends, reach
from ..core.base import Call, Lowered, Operator, Shape, Step
from .range_operands import check_range, ends_of

_LOWEST = np.iinfo(np.int32).min
_LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class _Way:
    """How a range is found.

    Attributes:
        inputs: how many there are; None for pairs of any number.
        data: type of the tensor with elements that stands before the ends of ranges; empty where there is none.
        reference: the range.
        parameters: attributes that it needs, and their type.
    """

    inputs: int | None
    data: str
    reference: Callable[[Step, Sequence[np.ndarray]], Ends]
    parameters: tuple[tuple[str, type], ...] = ()


def _way(call: Call) -> _Way:
    name = call.attribute("of")
    if name not in _WAYS:
        raise call.invalid("BT-NODE-ATTRIBUTE", f"nothing is known of ranges of '{name}'", f"known: {', '.join(_WAYS)}")
    return _WAYS[name]


def infer(call: Call) -> list[Shape]:
    """Two numbers."""
    way, count = _way(call), len(call.inputs)
    call.expect((2, count) if way.inputs is None else way.inputs, 2)
    if way.inputs is None and count % 2:
        raise call.invalid("BT-NODE-ARITY", f"{count} inputs are no pairs of a minimum and a maximum")
    check_range(call, *range(int(bool(way.data)), count))
    if way.data and call.input(0).dtype != way.data:
        raise call.invalid(
            "BT-NODE-TYPE", f"input 0 is {call.input(0).dtype}, ranges of its {call.attribute('of')} need {way.data}"
        )
    if way.data and not call.input(0).size:
        raise call.invalid("BT-RANGE-EMPTY", "the range of an empty tensor is not defined")
    return [(1,), (1,)]


def lower(call: Call) -> Lowered:
    """The way, and the numbers that it needs."""
    numbers: dict[str, Attribute] = {name: kind(call.attribute(name)) for name, kind in _way(call).parameters}
    return Lowered({"of": call.attribute("of"), **numbers})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Both ends."""
    with np.errstate(all="ignore"):
        return [np.array([end], np.float32) for end in _WAYS[step["of"]].reference(step, inputs)]


def joined(ranges: Sequence[Ends]) -> Ends:
    """From the smallest minimum to the largest maximum, both of them or 0.

    >>> [float(v) for v in joined([(np.float32(1), np.float32(2)), (np.float32(-3), np.float32(-1))])]
    [-3.0, 2.0]
    """
    low = high = np.float32(0)
    for minimum, maximum in ranges:
        low, high = (minimum if minimum < low else low), (maximum if maximum > high else high)
    return low, high


def _values(step: Step, inputs: Sequence[np.ndarray]) -> Ends:
    """What is no number does not count; low begins at the largest finite number, high at its negative."""
    numbers = inputs[0][~np.isnan(inputs[0])]
    return numbers.min(initial=_LARGEST), numbers.max(initial=-_LARGEST)


def _around(step: Step, largest: np.float32) -> Ends:
    return np.float32(0) if step["unsigned"] else -largest, largest


def _symmetric(step: Step, inputs: Sequence[np.ndarray]) -> Ends:
    return _around(step, reach(ends_of(inputs, 0)))


def _sums(step: Step, inputs: Sequence[np.ndarray]) -> Ends:
    """f32(f32(largest |acc|) * R) / 2^31; the magnitude of the lowest s32 is not defined."""
    acc = inputs[0]
    if acc.min() == _LOWEST:
        raise RunError("BT-RANGE-LOWEST", f"the range of {_LOWEST} is not defined: it has no magnitude in 32 bits")
    most = np.float32(max(int(acc.max()), -int(acc.min())))
    return _around(step, most * reach(ends_of(inputs, 1)) / SUM_LEVEL)


def _product(step: Step, inputs: Sequence[np.ndarray]) -> Ends:
    """f32(f32(R_first / level) * f32(R_second / level)) * 2^31."""
    first = reach(ends_of(inputs, 0)) / np.float32(step["first_level"])
    second = reach(ends_of(inputs, 2)) / np.float32(step["second_level"])
    largest = first * second * SUM_LEVEL
    return -largest, largest


def _sum(step: Step, inputs: Sequence[np.ndarray]) -> Ends:
    """One addition."""
    total = reach(ends_of(inputs, 0)) + reach(ends_of(inputs, 2))
    return -total, total


def _union(step: Step, inputs: Sequence[np.ndarray]) -> Ends:
    """Comparisons alone."""
    return joined([ends_of(inputs, position) for position in range(0, len(inputs), 2)])


_UNSIGNED = (("unsigned", bool),)
_WAYS = {
    "values": _Way(1, "f32", _values),
    "symmetric": _Way(2, "", _symmetric, _UNSIGNED),
    "sums": _Way(3, "s32", _sums, _UNSIGNED),
    "product": _Way(4, "", _product, (("first_level", int), ("second_level", int))),
    "sum": _Way(4, "", _sum),
    "union": _Way(None, "", _union),
}

OPERATOR = Operator("range_of", (), infer, lower, reference, "the range of a tensor, from its values or from ranges")

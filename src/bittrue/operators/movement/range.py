"""range: start, start + step, ... up to but without the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

# start, limit and step, scalars of one type.
Count = Callable[[Any, Any, Any], int | None]


def _wrap(value: int, bits: int) -> int:
    """The low `bits` of a number, read as two's complement."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _wrapped_magnitude(start: Any, limit: Any, step: Any) -> int | None:
    """ceil(|limit - start| / |step|), of floats in binary32; a step that leads away from the limit has none.

    The difference of integers wraps in their type and its magnitude counts, so that a range over more than half of the
    type comes out short; the count is kept in 32 bits. Domain: s32, s64, f32. Source: run (2,100 triples of extremes).
    """
    if not ((start >= limit and step < 0) or (start <= limit and step > 0)):
        return None
    if isinstance(start, np.floating):
        with np.errstate(over="ignore", invalid="ignore"):
            count = np.abs((limit - start) / step)
        return math.ceil(count) if count < 2**31 else None
    bits = 8 * limit.itemsize
    return _wrap(-(-abs(_wrap(int(limit) - int(start), bits)) // abs(int(step))), 32)


def _binary64_or_nothing(start: Any, limit: Any, step: Any) -> int | None:
    """max(0, ceil((limit - start) / step)), all in binary64. Domain: numbers of any type, step != 0. Source: run."""
    if step == 0:
        return None
    with np.errstate(all="ignore"):
        quotient = float((np.float64(limit) - np.float64(start)) / np.float64(step))
    return max(0, math.ceil(quotient)) if math.isfinite(quotient) and quotient <= 2**31 else None


_COUNTS: dict[str, Count] = {"wrapped_magnitude": _wrapped_magnitude, "binary64_or_nothing": _binary64_or_nothing}
_ROLES = ("start", "limit", "step")


def infer(call: Call) -> list[Shape]:
    """As many numbers as the attribute `counting` says."""
    call.expect(3)
    for position, role in enumerate(_ROLES):
        if call.input(position, role).size != 1 or call.input(position).rank > 1:
            raise call.invalid("BT-RANGE", f"{role} must be one number, found {list(call.input(position).shape)}")
    start, limit, step = (call.value(position, role).reshape(())[()] for position, role in enumerate(_ROLES))
    found = _COUNTS[call.attribute("counting")](start, limit, step)
    if found is None:
        raise call.invalid("BT-RANGE", f"from {start} to {limit} in steps of {step} leads nowhere, or never ends")
    return [bounded(call, [found])]


def lower(call: Call) -> Lowered:
    """The number of elements."""
    return Lowered(parameters={"count": call.output.size}, scratch=call.output.size * 8)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A running sum, one addition after the other, as floats need it."""
    start, _, by = (x.reshape(()) for x in inputs)
    terms = np.full(step["count"], by, by.dtype)
    terms[:1] = start
    return [np.add.accumulate(terms, dtype=terms.dtype)]


OPERATOR = Operator("range", (), infer, lower, reference, "numbers in equal steps")

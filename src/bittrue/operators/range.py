"""range: start, start + delta, ... up to but without limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded


def infer(call: Call) -> list[Shape]:
    """ceil(|limit - start| / |delta|); floats in binary32, integers in registers.

    The difference of integers wraps in their type and its magnitude counts, so that a range over more than half of the
    type comes out short; the count is kept in 32 bits. Found by running (2,100 triples of extremes).
    """
    call.expect(3)
    for position, role in enumerate(("start", "limit", "delta")):
        call.rank(call.input(position, role), 0)
    start, limit, delta = (call.value(p, r)[()] for p, r in enumerate(("start", "limit", "delta")))
    if not ((start >= limit and delta < 0) or (start <= limit and delta > 0)):
        raise call.invalid("BT-RANGE", f"{delta} does not lead from {start} to {limit}")
    if call.input(0).type.is_float:
        with np.errstate(over="ignore", invalid="ignore"):
            count = np.abs((limit - start) / delta)
        if not count < 2**31:
            raise call.invalid("BT-RANGE", f"the range from {start} to {limit} in steps of {delta} has no end")
        return [bounded(call, [math.ceil(count)])]
    steps = -(-abs(_wrap(int(limit) - int(start), limit.itemsize * 8)) // abs(int(delta)))
    return [bounded(call, [_wrap(steps, 32)])]


def _wrap(value: int, bits: int) -> int:
    """The low `bits` of a number, read as two's complement."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def lower(call: Call) -> Lowered:
    """The number of elements."""
    return Lowered(parameters={"count": call.output.size}, scratch=call.output.size * 8)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A running sum, one addition after the other, as floats need it."""
    terms = np.full(step["count"], inputs[2], inputs[2].dtype)
    terms[:1] = inputs[0]
    return [np.add.accumulate(terms, dtype=terms.dtype)]


OPERATOR = Operator("range", (), infer, lower, reference, "numbers in equal steps")

"""Operands that hold the ends of a tensor's range: two tensors of one binary32 number each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules.range_levels import Ends
from .base import Call
from .integer_layers import check_single
from .late import Values


def check_range(call: Call, *positions: int) -> None:
    """Inputs at `positions` are one number each."""
    for position in positions:
        call.input(position, "end of a range")
        check_single(call, position, "the end of a range")


def end(values: Values, position: int) -> np.float32:
    """The number at `position`."""
    return np.float32(np.asarray(values[position]).reshape(-1)[0])


def ends_of(values: Values, first: int) -> Ends:
    """The range that the inputs at `first` and behind it hold."""
    return end(values, first), end(values, first + 1)


def span_of(minimum: Any, maximum: Any) -> float:
    """max(|minimum|, |maximum|) of two binary32 numbers; ValueError when one of them is none."""
    low, high = np.float32(minimum), np.float32(maximum)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"the range from {float(low)!r} to {float(high)!r} is not finite")
    return float(max(abs(low), abs(high)))


def span(values: Values, position: int) -> float:
    """`span_of` the numbers at `position` and behind it."""
    return span_of(end(values, position), end(values, position + 1))


def given_span(known: Any) -> float | None:
    """`span_of` the ends among a step's parameters; None where it has none."""
    return span_of(known["minimum"], known["maximum"]) if known["calibrated"] else None


def given_ends(call: Call) -> dict[str, Any]:
    """Attributes `calibrated`, `minimum` and `maximum` as parameters: the ends of the result's range, if given."""
    calibrated = bool(call.attribute("calibrated"))
    ends = (call.attribute("minimum"), call.attribute("maximum")) if calibrated else (0.0, 0.0)
    return {"calibrated": calibrated, "minimum": float(ends[0]), "maximum": float(ends[1])}

"""Operands that hold the ends of a tensor's range: two tensors of one binary32 number each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...rules import rescale
from ...rules.range_levels import Ends, scale_of
from ..core.base import Call
from ..core.late import Values
from ..layers.integer_layers import check_single


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


def range_multiplier(
    rules: Mapping[str, str],
    known: Mapping[str, Any],
    data: Sequence[Any],
    scales: np.ndarray,
    result: Sequence[Any],
    bias: np.ndarray,
) -> dict[str, np.ndarray]:
    """What `rescale` needs of a layer's ranges: f = f32(f32(s_y / s_x) / s_w), or f32(f32(1 / s_x) / s_w) and s_y; and
    the bias, in units of the sums.

    Every s counts quantized values per unit; `known` says the types, `data_type` and `dtype`. ValueError where a
    multiplier is not finite.
    """
    from_data, to_result = (
        scale_of((end(ends, 0), end(ends, 1)), known[dtype]) for ends, dtype in ((data, "data_type"), (result, "dtype"))
    )
    twice = "second" in rescale.RULES[rules["rescale"]].operands
    with np.errstate(all="ignore"):
        factor = ((np.float32(1) if twice else to_result) / from_data) / scales
    if not (np.isfinite(factor).all() and np.isfinite(to_result)):
        raise ValueError("the ranges give no finite multiplier: one of them is empty, infinite or no number")
    arrays = {"factor": factor.astype(np.float32), "addend": bias.astype(np.float32)}
    return {**arrays, "second": np.array([to_result], np.float32)} if twice else arrays

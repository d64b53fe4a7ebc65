"""unsorted_segment_sum, _prod, _max and _min: slices with one number each, reduced by that number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import RunError
from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def infer(call: Call) -> list[Shape]:
    """[segments, the axes that the segment numbers leave]; the numbers have the shape of the data's first axes."""
    call.expect(3)
    data, numbers, count = call.input(0), call.input(1, "segment numbers"), call.input(2, "number of segments")
    found = call.integers(2, "number of segments")
    if count.rank > 1 or len(found) != 1 or found[0] < 0:
        raise call.invalid("BT-SEGMENT", f"the number of segments must be one number of at least 0, found {found}")
    if data.shape[: numbers.rank] != numbers.shape:
        raise call.invalid(
            "BT-SEGMENT", f"segment numbers {list(numbers.shape)} are not the first axes of {list(data.shape)}"
        )
    return [bounded(call, (found[0], *data.shape[numbers.rank :]))]


def lower(call: Call) -> Lowered:
    """Data as [slices, inner], the output as [segments, inner]."""
    shape = call.output.shape
    return Lowered(
        parameters={"segments": shape[0], "inner": math.prod(shape[1:]), "shape": shape},
        work=call.input(0).size,
        scratch=32 * call.input(1).size + 12 * call.input(0).size,
    )


def _reference(combine: Combine, integer: int, real: float) -> Callable[..., list[np.ndarray]]:
    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        data, numbers = inputs[0], inputs[1].astype(np.int64).reshape(-1)
        beyond = numbers[numbers >= step["segments"]]
        if beyond.size:
            raise RunError(
                "BT-SEGMENT-NUMBER",
                f"segment number {int(beyond[0])} must be below {step['segments']}",
                advice="negative numbers are passed over, larger ones are not",
            )
        first = real if data.dtype == np.float32 else integer
        out = np.full((step["segments"], step["inner"]), first, data.dtype)
        rows = data.reshape(numbers.size, step["inner"])
        for chosen in _rounds(numbers):
            with np.errstate(all="ignore"):
                out[numbers[chosen]] = combine(out[numbers[chosen]], rows[chosen])
        return [out.reshape(step["shape"])]

    return reference


def _rounds(numbers: np.ndarray) -> list[np.ndarray]:
    """Slices in rounds: the first of every segment, then the second of every segment, and so on."""
    order = np.argsort(numbers, kind="stable")
    order = order[numbers[order] >= 0]
    if not order.size:
        return []
    ordered = numbers[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(order.size) - np.repeat(starts, np.diff(np.r_[starts, order.size]))
    by_turn = order[np.argsort(turn, kind="stable")]
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])


def _larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a < b, b, a)


def _smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(b < a, b, a)


_LARGEST = float(np.finfo(np.float32).max)
_KINDS: tuple[tuple[str, Combine, int, float, str], ...] = (
    ("unsorted_segment_sum", np.add, 0, 0.0, "sums, from 0"),
    ("unsorted_segment_prod", np.multiply, 1, 1.0, "products, from 1"),
    ("unsorted_segment_max", _larger, -(2**31), -_LARGEST, "maxima, from the lowest number; NaN is passed over"),
    ("unsorted_segment_min", _smaller, 2**31 - 1, _LARGEST, "minima, from the largest number; NaN is passed over"),
)

OPERATORS = tuple(
    Operator(stem, (), infer, lower, _reference(combine, integer, real), summary)
    for stem, combine, integer, real, summary in _KINDS
)

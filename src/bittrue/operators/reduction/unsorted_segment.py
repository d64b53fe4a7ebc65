"""unsorted_segment: slices with one number each, those of a number combined.

add and multiply begin with 0 and 1, largest and smallest with the other end of the type and pass over NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

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
        parameters={
            "segments": shape[0],
            "inner": math.prod(shape[1:]),
            "shape": shape,
            "reduction": call.attribute("reduction"),
        },
        work=call.input(0).size,
        scratch=32 * call.input(1).size + 12 * call.input(0).size,
    )


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
# What combines two slices, and what every segment begins with, for integers and for real numbers.
_KINDS: dict[str, tuple[Combine, int, float]] = {
    "add": (np.add, 0, 0.0),
    "multiply": (np.multiply, 1, 1.0),
    "largest": (_larger, -(2**31), -_LARGEST),
    "smallest": (_smaller, 2**31 - 1, _LARGEST),
}


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Slice after slice of every number."""
    data, numbers = inputs[0], inputs[1].astype(np.int64).reshape(-1)
    beyond = numbers[numbers >= step["segments"]]
    if beyond.size:
        raise RunError(
            "BT-SEGMENT-NUMBER",
            f"segment number {int(beyond[0])} must be below {step['segments']}",
            advice="negative numbers are passed over, larger ones are not",
        )
    combine, integer, real = _KINDS[step["reduction"]]
    first = real if data.dtype == np.float32 else integer
    out = np.full((step["segments"], step["inner"]), first, data.dtype)
    rows = data.reshape(numbers.size, step["inner"])
    for chosen in _rounds(numbers):
        with np.errstate(all="ignore"):
            out[numbers[chosen]] = combine(out[numbers[chosen]], rows[chosen])
    return [out.reshape(step["shape"])]


OPERATOR = Operator("unsorted_segment", (), infer, lower, reference, "slices combined by their numbers")

"""truncated_average_pool: sums over windows of a picture padded with 0, divided by a count, cut off toward zero.

Input s32 [N, H, W, C] (`channels_last`) or [N, C, H, W]; the quotient is clamped to the output's type. Attributes:
`pool_size`, `strides`, `dilation` (vertical, horizontal), `padding` (top, left, bottom, right), `ceil_mode` (as many
windows as begin within stride - 1 of the last one that fits), `count_include_pad`: whether the count is that of taps
inside of the padded picture, or inside of the picture alone (at least 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import DATA_TYPES
from ..rules import average
from .accumulator import finish_accumulator
from .base import Bound, Call, Lowered, Operator, Shape, Step
from .geometry import LARGEST, meeting

_MOST_TAPS = 1 << 20


def _side(call: Call, extent: int, axis: int) -> tuple[int, int, int, int, int]:
    """Taps, stride, dilation, padding before and windows along one of the two axes."""
    taps, stride, dilation = (int(call.attribute(name)[axis]) for name in ("pool_size", "strides", "dilation"))
    before, after = (int(call.attribute("padding")[axis + at]) for at in (0, 2))
    if (
        min(taps, stride, dilation) < 1
        or max(taps, stride, dilation, before, after) > LARGEST
        or min(before, after) < 0
    ):
        raise call.invalid("BT-WINDOW", f"{taps} taps, stride {stride}, dilation {dilation}, pads {before} and {after}")
    span = extent + before + after - (taps - 1) * dilation - 1
    if span < 0 or not extent:
        raise call.invalid("BT-WINDOW", f"a window of {taps} taps does not fit an extent of {extent}")
    return taps, stride, dilation, before, (span + (stride - 1 if call.attribute("ceil_mode") else 0)) // stride + 1


def _counts(call: Call, extent: int, axis: int) -> np.ndarray:
    """By how many taps windows are divided, along one axis."""
    taps, stride, dilation, before, out = _side(call, extent, axis)
    after = int(call.attribute("padding")[axis + 2])
    start = np.arange(out, dtype=np.int64) * stride - before
    end = start + (taps - 1) * dilation
    if call.attribute("count_include_pad"):
        return np.trunc((np.minimum(end, extent + after - 1) - start) / dilation).astype(np.int64) + 1
    skipped = np.maximum(-(start // dilation), 0)
    return np.maximum((np.minimum(end, extent - 1) - (start + dilation * skipped)) // dilation + 1, 0)


def _axes(call: Call) -> tuple[int, int]:
    return (1, 2) if call.attribute("channels_last") else (2, 3)


def infer(call: Call) -> list[Shape]:
    """The picture's axes hold as many elements as windows."""
    call.expect(1)
    source = call.input(0)
    call.rank(source, 4)
    shape = list(source.shape)
    for at, axis in enumerate(_axes(call)):
        shape[axis] = _side(call, source.shape[axis], at)[4]
    return [tuple(shape)]


def lower(call: Call) -> Lowered:
    """Geometry, the counts and the bound of the sums."""
    source, (vertical, horizontal) = call.input(0), _axes(call)
    sides = [_side(call, source.shape[axis], at) for at, axis in enumerate((vertical, horizontal))]
    counts = [_counts(call, source.shape[axis], at) for at, axis in enumerate((vertical, horizontal))]
    if call.attribute("count_include_pad") and min(c.min() for c in counts) < 1:
        raise call.invalid(
            "BT-WINDOW", "a window lies outside of the padded picture: it would be divided by 0", "clear ceil_mode"
        )
    taps = sides[0][0] * sides[1][0]
    if taps > _MOST_TAPS:
        raise call.unsupported("BT-WINDOW", f"a window of {taps:,} taps, at most {_MOST_TAPS:,} are possible")
    magnitude = taps * max(-source.type.minimum, source.type.maximum)
    return Lowered(
        {
            "axes": (vertical, horizontal),
            **{
                f"{name}_{side}": value
                for side, found in zip("hw", sides, strict=True)
                for name, value in zip(("filter", "stride", "dilation", "before", "out"), found, strict=True)
            },
            "low": call.output.type.minimum,
            "high": call.output.type.maximum,
            "dtype": call.output.dtype,
        },
        {"counts": np.maximum(np.multiply.outer(counts[0], counts[1]), 1)},
        Bound(magnitude, magnitude > 2**31 - 1),
        call.output.size * taps,
        16 * (source.size + call.output.size),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Tap by tap over whole pictures."""
    x = np.moveaxis(inputs[0], step["axes"], (0, 1))
    total = np.zeros((step["out_h"], step["out_w"], *x.shape[2:]), np.int64)
    for u in _taps(step, "h", x.shape[0], x.size * total.size):
        rows, from_rows = _meeting(step, "h", u, x.shape[0])
        for v in _taps(step, "w", x.shape[1], x.size * total.size):
            columns, from_columns = _meeting(step, "w", v, x.shape[1])
            total[rows, columns] += x[from_rows, from_columns]
    total = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
    counts = step.arrays["counts"].reshape(*total.shape[:2], *(1,) * (total.ndim - 2))
    quotient = np.clip(average.RULES[step.rules["average"]](total, counts), step["low"], step["high"])
    return [np.ascontiguousarray(np.moveaxis(quotient.astype(DATA_TYPES[step["dtype"]].numpy), (0, 1), step["axes"]))]


def _taps(step: Step, side: str, extent: int, work: int) -> list[int]:
    """Taps that lie inside of the picture in some window: few, whatever a plan file says about its windows."""
    if not work:
        return []
    starts = np.arange(step[f"out_{side}"]) * step[f"stride_{side}"] - step[f"before_{side}"]
    with np.errstate(all="ignore"):
        taps, rest = np.divmod(np.arange(extent)[:, None] - starts, step[f"dilation_{side}"])
    found: list[int] = np.unique(taps[(rest == 0) & (taps >= 0) & (taps < step[f"filter_{side}"])]).tolist()
    return found


def _meeting(step: Step, side: str, tap: int, extent: int) -> tuple[slice, slice]:
    """Windows whose tap lies inside of the picture, and where it lies."""
    shift = tap * step[f"dilation_{side}"] - step[f"before_{side}"]
    return meeting(step[f"out_{side}"], extent, step[f"stride_{side}"], shift)


OPERATOR = Operator(
    "truncated_average_pool",
    ("accumulate", "average"),
    infer,
    lower,
    reference,
    "averages of windows, cut off, padding counted or not",
)

"""average_pool2d and max_pool2d: the average or the largest of the window positions that lie inside the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..graph import Attribute
from ..rules import average, order, plain_range
from .accumulator import finish_accumulator, fused_range, proven_bound
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import LARGEST, Window, meeting, sides, window, window_parameters

# Grouped sums walk over taps that miss the picture, too.
_MOST_GROUPED = 1 << 20


def _side(call: Call, name: str, extent: int, suffix: str) -> Window | None:
    """The window along one axis; None when it has no taps or does not fit, which is no error in a pool."""
    taps, stride, padding = call.attribute(f"filter_{suffix}"), call.attribute(f"stride_{suffix}"), sides(call, suffix)
    if not isinstance(padding, str):
        return window(call, name, extent, extent if call.attribute("whole") else taps, stride, 1, padding)
    if stride >= 1 and (taps < 1 or (padding == "valid" and taps >= extent + 2 * stride)):
        return None
    if stride >= 1 and not extent:
        return Window(0, taps, stride, 1, max(0, taps - stride) >> 1, 0, 0)
    return window(call, name, extent, taps, stride, 1, padding)


def pool_geometry(call: Call) -> tuple[Window, Window]:
    """Width comes first: a window that does not fit the width empties the height, too, but not the other way round."""
    call.expect(1)
    source = call.input(0)
    call.rank(source, 4)
    horizontal = _side(call, "width", source.shape[2], "w")
    vertical = _side(call, "height", source.shape[1], "h")
    if horizontal and vertical and max(horizontal.before, vertical.before) > LARGEST:
        before = max(horizontal.before, vertical.before)
        raise call.invalid("BT-WINDOW", f"{before} padded positions on one side, at most {LARGEST} are possible")
    nothing = Window(0, 1, 1, 1, 0, 0, 0)
    return (vertical if horizontal else None) or nothing, horizontal or nothing


def infer(call: Call) -> list[Shape]:
    """[N, H, W, C] gives [N, H', W', C]."""
    vertical, horizontal = pool_geometry(call)
    source = call.input(0)
    return [(source.shape[0], vertical.out, horizontal.out, source.shape[3])]


def _clamp_range(call: Call) -> dict[str, Attribute]:
    """Only an activation with a bound needs the output's scale: zero points play no part in pooling."""
    if "plain_range" in call.rules:
        rule = plain_range.RULES[call.rules["plain_range"]]
        low, high = rule(str(call.attribute("activation")), call.output.type.numpy)
        return {"low": low, "high": high}
    if call.output.tensor.quantization is None and call.attribute("activation") in ("none", "tanh", "sign_bit"):
        return {"low": call.output.type.minimum, "high": call.output.type.maximum}
    limits = fused_range(call)
    if "average" not in call.rules:
        # Maxima are clamped in their own type, so a bound outside of it (from a zero point outside) wraps.
        ends = np.array([limits["low"], limits["high"]], np.int64).astype(call.output.type.numpy)
        limits.update({"low": int(ends[0]), "high": int(ends[1])})
    return limits


def lower_average(call: Call) -> Lowered:
    """As `lower`; averages that change the scale are another operator's."""
    if "window_average" in call.rules:
        from .scaled_average_pool2d import lower as lower_scaled

        return replace(lower_scaled(call), operator="scaled_average_pool2d")
    return lower(call)


def lower(call: Call) -> Lowered:
    """Geometry, clamps and, for integer averages, the bound of a window's sum."""
    vertical, horizontal = pool_geometry(call)
    source = call.input(0)
    # A window never holds more than the picture.
    taps = min(vertical.taps, vertical.extent) * min(horizontal.taps, horizontal.extent)
    if "order" in call.rules and vertical.taps * horizontal.taps > _MOST_GROUPED:
        raise call.invalid(
            "BT-WINDOW", f"a window of {vertical.taps}x{horizontal.taps} taps is too large to be grouped"
        )
    bound = None
    if call.rules.get("accumulate"):
        bound = proven_bound(call, taps, max(-source.type.minimum, source.type.maximum), None)
    picture = max(source.size, call.output.size) // max(1, source.shape[0])
    return Lowered(
        parameters={
            **window_parameters(vertical, horizontal),
            **_clamp_range(call),
            **({"outside": outside} if (outside := call.node.attributes.get("outside")) else {}),
        },
        accumulator=bound,
        work=call.output.size * taps,
        scratch=5 * 8 * picture,
    )


def _taps(step: Step, side: str, extent: int) -> Iterator[tuple[slice, slice]]:
    """For every tap that any window uses: (window positions, picture positions), in ascending order of the tap.

    Taps that only ever meet padding are skipped, so a huge filter costs no more than the picture.
    """
    before, stride, out = step[f"pad_{'top' if side == 'h' else 'left'}"], step[f"stride_{side}"], step[f"out_{side}"]
    for tap in range(max(0, before - (out - 1) * stride), min(step[f"filter_{side}"], extent + before)):
        met = meeting(out, extent, stride, tap - before)
        if met[0].stop:
            yield met


def _counts(step: Step, side: str, extent: int) -> np.ndarray:
    """How many taps of every window lie inside the picture."""
    before = step[f"pad_{'top' if side == 'h' else 'left'}"]
    origin = np.arange(step[f"out_{side}"], dtype=np.int64) * step[f"stride_{side}"] - before
    return np.minimum(origin + step[f"filter_{side}"], extent) - np.maximum(origin, 0)


def _edges(step: Step, side: str, extent: int) -> list[tuple[int, int]]:
    """(window, nearest position) for windows that miss the picture, where such read its edge."""
    if step.parameters.get("outside") != "edge":
        return []
    missed = np.flatnonzero(_counts(step, side, extent) <= 0)
    before, stride = step[f"pad_{'top' if side == 'h' else 'left'}"], step[f"stride_{side}"]
    return [(int(window), 0 if window * stride < before else extent - 1) for window in missed]


def inside_counts(step: Step, height: int, width: int) -> np.ndarray:
    """How many positions of every window lie inside the picture, [H', W', 1]."""
    down, across = (np.maximum(_counts(step, side, extent), 0) for side, extent in (("h", height), ("w", width)))
    return (down[:, None] * across)[..., None]


def picture_sums(picture: np.ndarray, step: Step) -> np.ndarray:
    """Sums over windows of one picture [H, W, C]: integers along one axis after the other, binary32 in tap order."""
    height, width, channels = picture.shape
    if picture.dtype == np.float32:
        sums = np.zeros((step["out_h"], step["out_w"], channels), np.float32)
        with np.errstate(all="ignore"):
            for rows, from_rows in _taps(step, "h", height):
                for columns, from_columns in _taps(step, "w", width):
                    sums[rows, columns] += picture[from_rows, from_columns]
        return sums
    # Sums of a row of taps fit 32 bits whenever whole windows do.
    exact = np.int32 if step.accumulator is not None and not step.accumulator.wraps else np.int64
    lines = np.zeros((height, step["out_w"], channels), exact)
    for columns, from_columns in _taps(step, "w", width):
        lines[:, columns] += picture[:, from_columns]
    sums = np.zeros((step["out_h"], step["out_w"], channels), exact)
    for rows, from_rows in _taps(step, "h", height):
        sums[rows] += lines[from_rows]
    return sums


def _grouped_sums(picture: np.ndarray, step: Step) -> np.ndarray:
    """Binary32 sums over windows of one picture [H, W, C], grouped as the slot `order` says; missing taps are zeros."""
    height, width, channels = picture.shape

    def side(name: str, extent: int, before: int) -> list[tuple[slice, slice] | None]:
        found: list[tuple[slice, slice] | None] = [None] * step[f"filter_{name}"]
        for windows, pixels in _taps(step, name, extent):
            found[pixels.start - windows.start * step[f"stride_{name}"] + before] = (windows, pixels)
        return found

    def taps() -> Iterator[np.ndarray]:
        rows, columns = side("h", height, step["pad_top"]), side("w", width, step["pad_left"])
        for column in columns:
            for row in rows:
                tap = np.zeros((step["out_h"], step["out_w"], channels), np.float32)
                if row is not None and column is not None:
                    tap[row[0], column[0]] = picture[row[1], column[1]]
                yield tap

    grouped = order.RULES[step.rules["order"]].taps
    assert grouped is not None, "an order of taps"
    return grouped(taps())


def average_reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Window sums picture by picture, divided by the number of taps inside."""
    x = inputs[0]
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], x.shape[3]), x.dtype)
    count = (_counts(step, "h", x.shape[1])[:, None] * _counts(step, "w", x.shape[2]))[..., None]
    if count.size and (count == count.flat[0]).all():
        count = count[:1, :1]
    divide = average.RULES[step.rules["average"]]
    for n in range(x.shape[0] if out.size else 0):
        total = _grouped_sums(x[n], step) if "order" in step.rules else picture_sums(x[n], step)
        if "accumulate" in step.rules:
            total = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
        quotient = divide(total, count)
        if "order" in step.rules:  # limits are applied so that NaN becomes the lower one
            quotient = np.where(np.isnan(quotient), np.float32(step["low"]), quotient)
        out[n] = plain_range.clamp(quotient, step["low"], step["high"])
    return [out]


def l2_reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The root of the average of squares, each operation rounded to binary32, squares added in tap order."""
    x = inputs[0]
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], x.shape[3]), x.dtype)
    count = (_counts(step, "h", x.shape[1])[:, None] * _counts(step, "w", x.shape[2]))[..., None]
    divide = average.RULES[step.rules["average"]]
    with np.errstate(all="ignore"):
        for n in range(x.shape[0] if out.size else 0):
            root = np.sqrt(divide(picture_sums(x[n] * x[n], step), count))
            out[n] = plain_range.clamp(root, step["low"], step["high"])
    return [out]


def max_reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The largest along one axis after the other; of equal binary32 values the first, NaN never wins."""
    x = inputs[0]
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], x.shape[3]), x.dtype)
    least = np.finfo(np.float32).min if x.dtype == np.float32 else np.iinfo(x.dtype).min
    for n in range(x.shape[0] if out.size else 0):
        lines = np.full((x.shape[1], *out.shape[2:]), least, x.dtype)
        for columns, from_columns in _taps(step, "w", x.shape[2]):
            _keep_larger(lines[:, columns], x[n][:, from_columns])
        for column, pixel in _edges(step, "w", x.shape[2]):
            lines[:, column] = x[n][:, pixel]
        largest = np.full(out.shape[1:], least, x.dtype)
        for rows, from_rows in _taps(step, "h", x.shape[1]):
            _keep_larger(largest[rows], lines[from_rows])
        for row, line in _edges(step, "h", x.shape[1]):
            largest[row] = lines[line]
        out[n] = plain_range.clamp(largest, step["low"], step["high"])
    return [out]


def _keep_larger(kept: np.ndarray, candidates: np.ndarray) -> None:
    if kept.dtype == np.float32:
        np.copyto(kept, candidates, where=kept < candidates)
    else:
        np.maximum(kept, candidates, out=kept)


OPERATORS = (
    Operator(
        "average_pool2d",
        ("accumulate", "average", "window_average", "order", "activation_range", "plain_range"),
        infer,
        lower_average,
        average_reference,
        "average over windows, padding left out",
    ),
    Operator(
        "l2_pool2d",
        ("average", "plain_range"),
        infer,
        lower,
        l2_reference,
        "root of the average of squares over windows",
    ),
    Operator(
        "max_pool2d",
        ("activation_range", "plain_range"),
        infer,
        lower,
        max_reference,
        "largest value of each window",
    ),
)

"""average_pool2d and max_pool2d: the average or the largest of the window positions that lie inside the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..graph import Attribute
from ..rules import average, order, plain_range
from .accumulator import finish_accumulator, fused_range, proven_bound
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import Window, WindowError, counts, named_rules, spatial_parameters, step_windows, window

# Grouped sums walk over taps that miss the picture, too.
_MOST_GROUPED = 1 << 20


def _side(call: Call, name: str, extent: int, suffix: str) -> Window | None:
    """The window along one axis; None when it has no taps or does not fit, which is no error in a pool."""
    taps, stride = call.attribute(f"filter_{suffix}"), call.attribute(f"stride_{suffix}")
    pads, padding, size = named_rules(call, 2)
    before, after = pads["hw".index(suffix) :: 2]
    if call.attribute("padding") == "explicit":
        taps = extent if call.attribute("whole") else taps
    elif stride >= 1 and (taps < 1 or (size == "truncated_sum" and taps >= extent + 2 * stride)):
        return None
    elif stride >= 1 and not extent:
        return Window(0, taps, stride, 1, 0, 0, 0)
    try:
        return window(extent, taps, stride, 1, (before, after), padding, size, 2**31 - 1)
    except WindowError as error:
        raise call.invalid("BT-WINDOW", f"{name}: {error}") from None


def pool_geometry(call: Call) -> tuple[Window, Window]:
    """Width comes first: a window that does not fit the width empties the height, too, but not the other way round."""
    call.expect(1)
    source = call.input(0)
    call.rank(source, 4)
    horizontal = _side(call, "width", source.shape[2], "w")
    vertical = _side(call, "height", source.shape[1], "h")
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
            **spatial_parameters((vertical, horizontal)),
            **_clamp_range(call),
            **({"outside": outside} if (outside := call.node.attributes.get("outside")) else {}),
        },
        accumulator=bound,
        work=call.output.size * taps,
        scratch=5 * 8 * picture,
    )


def _taps(one: Window) -> Iterator[tuple[slice, slice]]:
    """For every tap that any window uses: (windows, positions in the image), in ascending order of the tap.

    Taps that only ever meet padding are skipped, so a huge filter costs no more than the image.
    """
    return (met for met in map(one.met, one.taps_met()) if met[0].stop)


def _edges(step: Step, one: Window) -> list[tuple[int, int]]:
    """(window, nearest position) for windows that miss the image, where such read its edge."""
    if step.parameters.get("outside") != "edge":
        return []
    missed = np.flatnonzero(one.counts() == 0)
    return [(int(at), 0 if at * one.stride < one.before else one.extent - 1) for at in missed]


def picture_sums(picture: np.ndarray, step: Step) -> np.ndarray:
    """Sums over windows of one picture [H, W, C]: integers along one axis after the other, binary32 in tap order."""
    (height, _, channels), (_, down, across) = picture.shape, step_windows(step, picture.shape[:2])
    if picture.dtype == np.float32:
        sums = np.zeros((down.out, across.out, channels), np.float32)
        with np.errstate(all="ignore"):
            for rows, from_rows in _taps(down):
                for columns, from_columns in _taps(across):
                    sums[rows, columns] += picture[from_rows, from_columns]
        return sums
    # Sums of a row of taps fit 32 bits whenever whole windows do.
    exact = np.int32 if step.accumulator is not None and not step.accumulator.wraps else np.int64
    lines = np.zeros((height, across.out, channels), exact)
    for columns, from_columns in _taps(across):
        lines[:, columns] += picture[:, from_columns]
    sums = np.zeros((down.out, across.out, channels), exact)
    for rows, from_rows in _taps(down):
        sums[rows] += lines[from_rows]
    return sums


def _grouped_sums(picture: np.ndarray, step: Step) -> np.ndarray:
    """Binary32 sums over windows of one picture [H, W, C], grouped as the slot `order` says; missing taps are zeros."""
    _, down, across = step_windows(step, picture.shape[:2])

    def taps() -> Iterator[np.ndarray]:
        for column in map(across.met, range(across.taps)):
            for row in map(down.met, range(down.taps)):
                tap = np.zeros((down.out, across.out, picture.shape[2]), np.float32)
                tap[row[0], column[0]] = picture[row[1], column[1]]
                yield tap

    grouped = order.RULES[step.rules["order"]].taps
    assert grouped is not None, "an order of taps"
    return grouped(taps())


def average_reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Window sums picture by picture, divided by the number of taps inside."""
    x = inputs[0]
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], x.shape[3]), x.dtype)
    count = counts(step_windows(step, x.shape[1:3])[1:])[..., None]
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
    count = counts(step_windows(step, x.shape[1:3])[1:])[..., None]
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
    _, down, across = step_windows(step, x.shape[1:3])
    for n in range(x.shape[0] if out.size else 0):
        lines = np.full((x.shape[1], *out.shape[2:]), least, x.dtype)
        for columns, from_columns in _taps(across):
            _keep_larger(lines[:, columns], x[n][:, from_columns])
        for column, pixel in _edges(step, across):
            lines[:, column] = x[n][:, pixel]
        largest = np.full(out.shape[1:], least, x.dtype)
        for rows, from_rows in _taps(down):
            _keep_larger(largest[rows], lines[from_rows])
        for row, line in _edges(step, down):
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
        mistaken_for=("l2_pool2d",),
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
        compares=True,
    ),
)

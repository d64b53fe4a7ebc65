"""resize_bilinear and resize_nearest: images of another height and width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import floats
from ...rules import interpolate
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK
from ..core.functions import BILINEAR

# Positions are computed in binary32 or in 32 bits with 10 fractional ones; both are trustworthy below 2^21.
LARGEST_EXTENT = 1 << 20


def _infer(call: Call, smallest: int) -> list[Shape]:
    call.expect(2)
    source, size = call.input(0), call.input(1, "size")
    call.rank(source, 4)
    call.rank(size, 1)
    extents = call.integers(1, "size")
    if len(extents) != 2 or min(extents) < smallest:
        raise call.invalid("BT-RESIZE-SIZE", f"the size must be two numbers of at least {smallest}, found {extents}")
    if min(source.shape[1:3]) < 1 and 0 not in (*extents, source.shape[0], source.shape[3]):
        raise call.invalid("BT-RESIZE-EMPTY", f"an image of shape {list(source.shape)} has no pixel to read")
    if max(*extents, *source.shape[1:3]) > LARGEST_EXTENT:
        raise call.unsupported(
            "BT-RESIZE-EXTENT",
            f"{source.shape[1:3]} to {extents}: dimensions above {LARGEST_EXTENT} are not implemented",
        )
    return [(source.shape[0], extents[0], extents[1], source.shape[3])]


def infer_bilinear(call: Call) -> list[Shape]:
    """[N, H, W, C] gives [N, H', W', C], H' and W' at least 1, from the second input."""
    if call.attribute("align_corners") and call.attribute("half_pixel_centers"):
        raise call.invalid("BT-RESIZE-MODE", "align_corners and half_pixel_centers exclude each other")
    return _infer(call, 1)


def infer_nearest(call: Call) -> list[Shape]:
    """[N, H, W, C] gives [N, H', W', C], H' and W' from the second input."""
    return _infer(call, 0)


def lower_bilinear(call: Call) -> Lowered:
    """Two source positions and a weight for every output row and column."""
    source, output = call.input(0), call.output
    rule = interpolate.RULES[call.rules["interpolate"]]
    arrays = {}
    for axis, side in ((1, "y"), (2, "x")):
        try:
            prepared = rule.prepare(
                max(1, source.shape[axis]),
                output.shape[axis],
                call.attribute("align_corners"),
                call.attribute("half_pixel_centers"),
            )
        except ValueError as error:
            raise call.invalid(
                "BT-RESIZE-RANGE",
                f"axis {axis}: {error}",
                "the step between positions was rounded up too far; enlarge in several steps",
            ) from None
        arrays.update({f"{key}_{side}": value for key, value in prepared.items()})
    return Lowered(arrays=arrays, scratch=96 * max(BLOCK, output.shape[2] * output.shape[3]))


def reference_bilinear(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image, some output rows at a time."""
    x = inputs[0]
    arrays = step.arrays
    out = np.empty((x.shape[0], arrays["low_y"].size, arrays["low_x"].size, x.shape[3]), x.dtype)
    if not out.size:
        return [out]
    apply = interpolate.RULES[step.rules["interpolate"]].apply
    wide = np.float32 if x.dtype == np.float32 else np.int64
    weight_x = arrays["weight_x"][:, None]
    per_block = max(1, BLOCK // (out.shape[2] * out.shape[3]))
    for n in range(x.shape[0]):
        for top in range(0, out.shape[1], per_block):
            rows = slice(top, top + per_block)
            low, high = (x[n][arrays[f"{end}_y"][rows]].astype(wide) for end in ("low", "high"))
            corners = tuple(part[:, arrays[f"{end}_x"]] for end in ("low", "high") for part in (low, high))
            out[n, rows] = apply(corners, arrays["weight_y"][rows, None, None], weight_x)
    return [out]


def nearest_positions(extent: int, out: int, align_corners: bool, half_pixel: bool) -> np.ndarray:
    """min(f((i + h) * s), dimension - 1) in binary32, h = 1/2 with half-pixel centres.

    s = dimension / out and f rounds down; with `align_corners` s = (dimension - 1) / (out - 1) (for out > 1) and f
    rounds to nearest, ties away from zero. Source: docs/facts/litert.md 2.4 (RESIZE_NEAREST_NEIGHBOR), verified by
    running.

    >>> nearest_positions(2, 4, False, False).tolist(), nearest_positions(3, 5, True, False).tolist()
    ([0, 0, 1, 1], [0, 1, 1, 2, 2])
    """
    if not out:
        return np.zeros(0, np.int64)
    f32 = np.float32
    step = f32(extent - 1) / f32(out - 1) if align_corners and out > 1 else f32(extent) / f32(out)
    position = (np.arange(out).astype(f32) + f32(0.5 if half_pixel else 0.0)) * step
    whole = floats.round_away(position) if align_corners else np.floor(position)
    return np.maximum(np.minimum(whole.astype(np.int64), extent - 1), 0)


def lower_nearest(call: Call) -> Lowered:
    """The source row and column of every output row and column."""
    source, output = call.input(0), call.output
    modes = call.attribute("align_corners"), call.attribute("half_pixel_centers")
    return Lowered(
        arrays={
            "rows": nearest_positions(source.shape[1], output.shape[1], *modes),
            "columns": nearest_positions(source.shape[2], output.shape[2], *modes),
        }
    )


def reference_nearest(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Pixels picked by row and column, image by image."""
    x = inputs[0]
    rows, columns = step.arrays["rows"], step.arrays["columns"]
    out = np.empty((x.shape[0], rows.size, columns.size, x.shape[3]), x.dtype)
    for n in range(x.shape[0] if out.size else 0):
        out[n] = x[n][rows[:, None], columns]
    return [out]


OPERATORS = (
    Operator(
        "resize_bilinear",
        ("interpolate",),
        infer_bilinear,
        lower_bilinear,
        reference_bilinear,
        "images of another size, interpolated linearly both ways",
        function=BILINEAR,
    ),
    Operator(
        "resize_nearest",
        (),
        infer_nearest,
        lower_nearest,
        reference_nearest,
        "images of another size, nearest pixel",
        moves=True,
    ),
)

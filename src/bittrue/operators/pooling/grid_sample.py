"""grid_sample: pixels of images [N, C, ...] between their places, at two or three coordinates for each result.

Inputs: x [N, C, H, W] or [N, C, D, H, W], grid [N, ..., 2 or 3] with coordinates from -1 to 1, the last axis of the
image first. With `align_corners`, -1 and 1 are the centres of the outer pixels, else their outer edges. `mode` is
nearest, linear or cubic (images of two axes); `padding` says what lies outside: zeros, the border, or the mirrored
image (reflection). Every operation is rounded to the numbers' type, products and their sums by slot `multiply_add`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from ..core.stopping import check_stop

# Places beyond it count as the beginning of the image.
_FARTHEST = 2.0**62
_CUBIC = -0.75
# Results that are worked on together.
_BLOCK = 1 << 16


def infer(call: Call) -> list[Shape]:
    """[N, C] and the axes of the grid between its first and last one."""
    call.expect(2)
    source, grid = call.input(0), call.input(1, "grid")
    call.rank(source, 4, 4 if call.attribute("mode") == "cubic" else 5)
    call.rank(grid, source.rank)
    if grid.shape[0] != source.shape[0] or grid.shape[-1] != source.rank - 2:
        raise call.invalid(
            "BT-GRID-SHAPE",
            f"a grid of shape {list(grid.shape)} does not fit images of shape {list(source.shape)}",
            f"it needs {source.shape[0]} images and {source.rank - 2} coordinates",
        )
    if 0 in source.shape[2:]:
        raise call.invalid("BT-SHAPE-EMPTY", f"images of shape {list(source.shape)} have no pixel to read")
    return [bounded(call, (*source.shape[:2], *grid.shape[1:-1]))]


def lower(call: Call) -> Lowered:
    """The attributes."""
    points = call.output.size
    return Lowered(
        parameters={
            "mode": str(call.attribute("mode")),
            "padding": str(call.attribute("padding")),
            "align_corners": bool(call.attribute("align_corners")),
        },
        work=points * 16,
        scratch=256 * min(points, max(_BLOCK, call.output.shape[1])),
    )


def _rule(step: Step) -> multiply_add.MultiplyAddRule:
    return multiply_add.RULES[step.rules["multiply_add"]]


def _places(step: Step, coordinates: np.ndarray, size: int) -> np.ndarray:
    """Where coordinates lie along an axis, in pixels."""
    real, aligned = coordinates.dtype.type, step["align_corners"]
    moved = coordinates + real(1)
    half = real(2)
    places = moved / half * real(size - 1) if aligned else _rule(step).apply(moved, real(size), real(-1)) / half
    return np.where(np.abs(places) <= real(_FARTHEST), places, real(0.0 if aligned else -0.5))


def _reflected(step: Step, at: np.ndarray, size: int, real: type[np.floating[Any]]) -> np.ndarray:
    """Positions mirrored at both ends of the image as often as needed."""
    outside = real(0 if step["align_corners"] else 0.5)
    low, high = -outside, real(size - 1) + outside
    if high == low:
        return np.zeros_like(at)
    x, length = at.astype(real), high - low
    beyond = np.where(x < low, low - x, np.where(x > high, x - high, real(0)))
    times = (beyond / length).astype(np.int64)
    rest = _rule(step).apply(-times.astype(real), length, beyond)
    from_low = (x < low) == (times % 2 == 0)
    found = np.where(beyond > 0, np.where(from_low, low + rest, high - rest), x)
    return np.clip(found.astype(np.int64), 0, size - 1)


def _pixels(step: Step, image: np.ndarray, positions: Sequence[np.ndarray]) -> np.ndarray:
    """Pixels of all channels at one position per axis."""
    sizes, padding = image.shape[1:], step["padding"]
    if padding == "reflection":
        places = [_reflected(step, at, size, image.dtype.type) for at, size in zip(positions, sizes, strict=True)]
    else:
        places = [np.clip(at, 0, size - 1) for at, size in zip(positions, sizes, strict=True)]
    every: tuple[Any, ...] = (slice(None), *places)
    found = image[every]
    if padding != "zeros":
        return found
    inside = np.ones(positions[0].shape, bool)
    for at, size in zip(positions, sizes, strict=True):
        inside &= (at >= 0) & (at < size)
    return np.where(inside, found, image.dtype.type(0))


def _linear(step: Step, image: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Rows first, then between them; zeros around images of two axes, by edges, have products of weights."""
    low = [np.floor(at).astype(np.int64) for at in places]
    high = [at + 1 for at in low]
    near = [above.astype(at.dtype) - at for above, at in zip(high, places, strict=True)]
    far = [at - below.astype(at.dtype) for below, at in zip(low, places, strict=True)]

    rule = _rule(step)

    def plane(*behind: np.ndarray) -> np.ndarray:
        one, two, three, four = (
            _pixels(step, image, [*behind, y, x]) for y in (low[-2], high[-2]) for x in (low[-1], high[-1])
        )
        if len(places) == 2 and step["padding"] == "zeros" and not step["align_corners"]:
            total = rule.pair(near[-2] * near[-1], one, near[-2] * far[-1], two)
            total = rule.apply(far[-2] * near[-1], three, total)
            return rule.apply(far[-2] * far[-1], four, total)
        upper, lower = (rule.pair(near[-1], *pair) for pair in ((one, far[-1], two), (three, far[-1], four)))
        return rule.pair(near[-2], upper, far[-2], lower)

    return plane() if len(places) == 2 else rule.pair(near[0], plane(low[0]), far[0], plane(high[0]))


def _weights(x: np.ndarray, rule: multiply_add.MultiplyAddRule) -> tuple[np.ndarray, ...]:
    """Of the four pixels around a place, the second one of which it lies x behind."""
    a, one, two, three, four, five, eight = (x.dtype.type(n) for n in (_CUBIC, 1, 2, 3, 4, 5, 8))
    add = rule.apply
    outer = [add(add(add(a, y, -five * a), y, eight * a), y, -four * a) for y in (x + one, two - x)]
    inner = [add(add(a + two, y, -(a + three)) * y, y, one) for y in (x, one - x)]
    return outer[0], inner[0], inner[1], outer[1]


def _cubic(step: Step, image: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    first = [np.floor(at).astype(np.int64) - 1 for at in places]
    behind = (at - f.astype(at.dtype) - at.dtype.type(1) for at, f in zip(places, first, strict=True))
    rule = _rule(step)
    by_row, by_column = (_weights(np.abs(part), rule) for part in behind)

    def blend(weights: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> np.ndarray:
        total = rule.pair(weights[0], values[0], weights[1], values[1])
        for weight, value in zip(weights[2:], values[2:], strict=True):
            total = rule.apply(weight, value, total)
        return total

    rows = [blend(by_column, [_pixels(step, image, [first[0] + y, first[1] + x]) for x in range(4)]) for y in range(4)]
    return blend(by_row, rows)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image, some places at a time."""
    images, grids = inputs
    shape = (*images.shape[:2], *grids.shape[1:-1])
    out = np.empty((*images.shape[:2], math.prod(shape[2:])), images.dtype)
    some = max(1, _BLOCK // max(1, images.shape[1]))
    for n, begin in itertools.product(range(len(out)), range(0, out.shape[2], some)):
        check_stop()
        image, grid = images[n], grids[n].reshape(-1, images.ndim - 2)[begin : begin + some]
        with np.errstate(all="ignore"):
            places = [_places(step, grid[:, -1 - axis], size) for axis, size in enumerate(image.shape[1:])]
            if step["mode"] == "nearest":
                found = _pixels(step, image, [np.rint(at).astype(np.int64) for at in places])
            else:
                found = (_linear if step["mode"] == "linear" else _cubic)(step, image, places)
        out[n, :, begin : begin + some] = found
    return [out.reshape(shape)]


OPERATOR = Operator(
    "grid_sample", ("multiply_add",), infer, lower, reference, "pixels of an image at the places that a grid names"
)

"""crop_and_resize: regions of images [N, C, H, W], resized to one size with aligned corners, linear or nearest.

Operands: images, regions [R, 4] as y1, x1, y2, x2 from 0 to 1, the image of each, the size. Attributes: `nearest`,
`outside`: what stands for places outside of the image. Products and sums go by slot `multiply_add`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

_F32 = np.float32


def infer(call: Call) -> list[Shape]:
    """[R, C, height, width]."""
    call.expect(4)
    image, regions, images = (call.input(i) for i in range(3))
    call.rank(image, 4, 4)
    size = call.integers(3, "size")
    if regions.rank != 2 or regions.shape[1] != 4 or images.shape != regions.shape[:1] or len(size) != 2:
        raise call.invalid(
            "BT-CROP", f"regions {list(regions.shape)}, their images {list(images.shape)} and a size {size} do not fit"
        )
    if min(size) < 1:
        raise call.invalid("BT-CROP", f"regions become {size}, expected a positive size")
    return [bounded(call, (regions.shape[0], image.shape[1], *size))]


def lower(call: Call) -> Lowered:
    """The form, and how many places there are."""
    return Lowered(
        {
            "nearest": bool(call.attribute("nearest")),
            "outside": float(_F32(call.attribute("outside"))),
            "height": call.output.shape[2],
            "width": call.output.shape[3],
        },
        work=call.output.size,
        scratch=32 * call.output.size,
    )


def _places(
    begin: np.float32, end: np.float32, size: int, count: int, rule: multiply_add.MultiplyAddRule
) -> np.ndarray:
    """In binary32; the ends are exact, and a single place is the middle, in binary64 first."""
    last = _F32(size - 1)
    if count == 1:
        return np.array([0.5 * float(begin + end) * (size - 1)], _F32)
    step = (end - begin) * last / _F32(count - 1)
    places = rule.pair(np.arange(count, dtype=_F32), step, begin, last)
    places[0], places[-1] = begin * last, end * last
    return np.asarray(places)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Columns first, then rows: a + (b - a) * fraction."""
    image, regions, which = inputs[:3]
    sizes, counts = image.shape[2:], (step["height"], step["width"])
    out = np.full((len(regions), image.shape[1], *counts), step["outside"], _F32)
    if ((which < 0) | (which >= len(image))).any():
        raise RunError("BT-CROP-IMAGE", f"there are {len(image)} images, found {which.tolist()}", place=step.place)
    rule = multiply_add.RULES[step.rules["multiply_add"]]
    with np.errstate(all="ignore"):
        for region, one, into in zip(regions, which, out, strict=True):
            y, x = (_places(region[i], region[i + 2], sizes[i], counts[i], rule) for i in range(2))
            rows, columns = (np.flatnonzero((p >= 0) & (p <= size - 1)) for p, size in zip((y, x), sizes, strict=True))
            y, x, own = y[rows], x[columns], image[one]
            if step["nearest"]:
                # Ties away from zero.
                values = own[:, np.floor(y + 0.5).astype(np.int64)[:, None], np.floor(x + 0.5).astype(np.int64)]
            else:
                top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
                bottom, right = np.ceil(y).astype(np.int64), np.ceil(x).astype(np.int64)
                along, down = x - left.astype(_F32), (y - top.astype(_F32))[:, None]
                upper, lower = (
                    rule.apply(b - a, along, a)
                    for a, b in ((own[:, r[:, None], left], own[:, r[:, None], right]) for r in (top, bottom))
                )
                values = rule.apply(lower - upper, down, upper)
            into[:, rows[:, None], columns] = values
    return [out]


OPERATOR = Operator(
    "crop_and_resize", ("multiply_add",), infer, lower, reference, "regions of images, resized to one size"
)

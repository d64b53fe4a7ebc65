"""affine_grid: coordinates of the pixels of an image, -1 to 1, turned and moved by a matrix for every image.

Inputs: matrices [N, 2, 3] or [N, 3, 4], and the size of the images [N, C, (D,) H, W]. With `align_corners`, -1 and 1
are the centres of the outer pixels, else their outer edges. Slot `multiply_add`; of three products the last two are
added up first, but the first two of binary64 numbers, or where pairs of products are rounded each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded


def _sizes(call: Call) -> list[int]:
    sizes = call.integers(1, "size")
    axes = len(sizes) - 2
    if axes not in (2, 3) or min(sizes) < 1 or call.input(0).shape != (sizes[0], axes, axes + 1):
        found = list(call.input(0).shape)
        raise call.invalid("BT-GRID-SHAPE", f"matrices of shape {found} do not fit images of size {sizes[:8]}")
    return sizes


def infer(call: Call) -> list[Shape]:
    """[N, (D,) H, W, 2 or 3]."""
    call.expect(2)
    sizes = _sizes(call)
    return [bounded(call, (sizes[0], *sizes[2:], len(sizes) - 2))]


def lower(call: Call) -> Lowered:
    """The image's sizes."""
    return Lowered(
        {"sizes": tuple(_sizes(call)[2:]), "align_corners": bool(call.attribute("align_corners"))},
        inputs=(0,),
        scratch=16 * call.output.size,
    )


def _places(count: int, aligned: bool, dtype: np.dtype, rule: multiply_add.MultiplyAddRule) -> np.ndarray:
    """-1 to 1, the last one by itself; between edges, less half a pixel at both ends."""
    wide = dtype.type
    step = wide(2) / wide(max(count - 1, 1))
    places = rule.apply(np.arange(count, dtype=dtype), step, wide(-1))
    places[-1] = 1
    return places if aligned else places * wide(count - 1) / wide(count)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The last axis of the image comes first among coordinates."""
    matrices, sizes = inputs[0], step["sizes"]
    rule = multiply_add.RULES[step.rules["multiply_add"]]
    axes = [_places(size, step["align_corners"], matrices.dtype, rule) for size in sizes]
    places = np.meshgrid(*axes, indexing="ij")[::-1]
    whole = (slice(None), *(None,) * len(sizes))
    out = np.empty((matrices.shape[0], *sizes, len(sizes)), matrices.dtype)
    with np.errstate(all="ignore"):
        for row in range(len(sizes)):
            factors = [(matrices[:, row, k][whole], place) for k, place in enumerate(places)]
            if len(factors) == 3 and out.dtype != np.float64 and not rule.pairs_apart:
                inner = rule.pair(*factors[1], *factors[2])
                total = rule.apply(*factors[0], inner)
            else:
                total = rule.pair(*factors[0], *factors[1])
                for more in factors[2:]:
                    total = rule.apply(*more, total)
            out[..., row] = total + matrices[:, row, -1][whole]
    return [out]


OPERATOR = Operator(
    "affine_grid", ("multiply_add",), infer, lower, reference, "coordinates of pixels, turned and moved"
)

"""fold: columns [N, C * taps, windows] added up to images [N, C, ...], the reverse of taking windows apart.

Inputs: columns, the image's sizes, and the window's. Every pixel begins at 0 and adds the taps in their order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from ..core.stopping import check_stop


def _geometry(call: Call) -> tuple[list[int], list[int], tuple[int, ...], tuple[int, ...], tuple[int, ...], list[int]]:
    """Image, window, strides, pads, dilations, and the windows along each axis."""
    image, window = call.integers(1, "image"), call.integers(2, "window")
    axes = len(image)
    strides, dilations = (tuple(call.attribute(name)) or (1,) * axes for name in ("strides", "dilations"))
    pads = tuple(call.attribute("pads")) or (0,) * 2 * axes
    lengths = len(window), len(strides), len(dilations), len(pads)
    if lengths != (axes, axes, axes, 2 * axes) or not axes:
        raise call.invalid("BT-FOLD", f"window, strides, dilations and pads have {lengths} numbers for {axes} axes")
    if min((*image, *window, *strides, *dilations)) < 1 or min(pads) < 0:
        raise call.invalid("BT-FOLD", "sizes, strides and dilations must be at least 1, pads at least 0")
    counts = [
        (image[i] + pads[i] + pads[i + axes] - dilations[i] * (window[i] - 1) - 1) // strides[i] + 1
        for i in range(axes)
    ]
    return image, window, strides, pads, dilations, counts


def infer(call: Call) -> list[Shape]:
    """[N, C, *image]."""
    call.expect(3)
    x = call.input(0)
    call.rank(x, 3)
    image, window, *_, counts = _geometry(call)
    if min(counts) < 1 or x.shape[2] != math.prod(counts) or x.shape[1] % math.prod(window):
        raise call.invalid(
            "BT-FOLD", f"columns of shape {list(x.shape)} do not hold {counts} windows of {window} elements"
        )
    return [bounded(call, (x.shape[0], x.shape[1] // math.prod(window), *image))]


def lower(call: Call) -> Lowered:
    """The geometry."""
    image, window, strides, pads, dilations, counts = _geometry(call)
    return Lowered(
        {
            "image": tuple(image),
            "window": tuple(window),
            "strides": strides,
            "pads": pads,
            "dilations": dilations,
            "counts": tuple(counts),
        },
        inputs=(0,),
        work=call.input(0).size,
        scratch=2 * 4 * call.output.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Tap by tap, the last axis fastest."""
    x, image, counts, axes = inputs[0], step["image"], step["counts"], len(step["image"])
    window, strides, dilations, pads = (step[name] for name in ("window", "strides", "dilations", "pads"))
    # Beyond the last window nothing is written.
    sizes = [max(image[i] + pads[i] + pads[i + axes], (counts[i] - 1) * strides[i] + 1) for i in range(axes)]
    out = np.zeros((x.shape[0], x.shape[1] // math.prod(window), *sizes), x.dtype)
    columns = x.reshape(*out.shape[:2], math.prod(window), *counts)
    with np.errstate(all="ignore"):
        for number, tap in enumerate(itertools.product(*map(range, window))):
            check_stop()
            places = tuple(
                slice(tap[i] * dilations[i], tap[i] * dilations[i] + (counts[i] - 1) * strides[i] + 1, strides[i])
                for i in range(axes)
            )
            out[(slice(None), slice(None), *places)] += columns[:, :, number]
    inner = tuple(slice(pads[i], pads[i] + image[i]) for i in range(axes))
    return [np.ascontiguousarray(out[(slice(None), slice(None), *inner)])]


OPERATOR = Operator("fold", (), infer, lower, reference, "columns added up to images")

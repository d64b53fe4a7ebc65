"""Averages of windows of quantized values by rules of the slot `window_levels`, as those of another scale.

Scales and zero points are operands, in binary64. Padding that counts adds stored zeros; what a window reaches behind
the padding is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ...rules import window_levels
from ..core.base import Call, Lowered, Step
from ..core.geometry import spatial_bytes, tap_count
from ..core.roles import OPERAND_UNARY
from ..quantization.level_storage import limits, pair, scales_of, store, undefined
from .average_affine import tap_by_tap
from .pooling import Images, counted, pool_windows, step_geometry

_F32 = np.float32


def lower(call: Call) -> Lowered:
    """Geometry and scales."""
    found, x = pool_windows(call), call.input(0)
    parameters = {
        **step_geometry(call, found),
        **limits(call),
        **scales_of(call, OPERAND_UNARY),
        "counted": counted(call),
    }
    return Lowered(
        parameters,
        inputs=(0,),
        work=call.output.size * tap_count(found),
        scratch=spatial_bytes(found, x.shape[1], 4) + 32 * call.output.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums tap by tap in binary32, image by image."""
    images = Images(step, inputs[0])
    rule, dtype = window_levels.RULES[step.rules["window_levels"]], DATA_TYPES[step["dtype"]].numpy
    count, out = images.counts(step["counted"]), images.empty(dtype)
    for image, result in zip(images, out, strict=True):
        if not result.size:
            break
        try:
            total = tap_by_tap(images, image.astype(_F32))
            averages = rule.apply(total, count, pair(step, "input"), pair(step, "output"))
        except ValueError as error:
            raise undefined(str(error), step.place) from None
        result[...] = store(averages, step["low"], step["high"], dtype, step.place)
    return [images.result(out)]

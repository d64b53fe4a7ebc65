"""Averages of windows of quantized numbers in another scale; padding stands for zeros.

out = clamp(average of (q - z_in) * scale / output scale + z_out); how it is rounded, and whether padding counts, is the
slot `window_average`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import window_average
from ..core.accumulator import finish_accumulator, fused_range, proven_bound, signed_span
from ..core.base import Call, Lowered, Step
from ..core.geometry import tap_count
from .pooling import Images, image_scratch, most_taps, pool_windows, step_geometry


def lower(call: Call) -> Lowered:
    """Geometry, clamps, the prepared multiplier and the bound of a window's sum."""
    found, source, output = pool_windows(call), call.input(0), call.output
    rule = window_average.RULES[call.rules["window_average"]]
    try:
        arrays = rule.prepare(float(source.scale), float(output.scale), tap_count(found))
    except ValueError as error:
        raise call.invalid("BT-MULTIPLIER", f"the scales do not suit: {error}", "quantize the model again") from None
    taps = most_taps(found)
    # Sums are taken of quantized values first.
    span = max(signed_span(source, source.zero_point), source.type.maximum)
    return Lowered(
        {**step_geometry(call, found), **fused_range(call), "input_zero_point": source.zero_point},
        arrays,
        proven_bound(call, taps, span, None),
        output.size * taps,
        image_scratch(call),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image: sums of quantized values, less the zero point of as many as lie inside."""
    images = Images(step, inputs[0])
    rule = window_average.RULES[step.rules["window_average"]]
    inside, out = images.counts("inside"), images.empty(inputs[0].dtype)
    exact = np.int32 if step.accumulator is not None and not step.accumulator.wraps else np.int64
    for image, result in zip(images, out, strict=True):
        sums = images.sums(image, exact).astype(np.int64) - inside * step["input_zero_point"]
        sums = finish_accumulator(step.rules["accumulate"], step.accumulator, sums)
        result[...] = rule.apply(sums, inside, step.arrays, step["output_zero_point"], step["low"], step["high"])
    return [images.result(out)]

"""scaled_average_pool2d: averages over windows of [N, H, W, C], stored in another scale; padding stands for zeros.

out = clamp(average of (q - z_in) * scale / output scale + z_out); how it is rounded, and whether padding counts, is the
slot `window_average`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..rules import window_average
from .accumulator import finish_accumulator, fused_range, proven_bound, signed_span
from .base import Call, Lowered, Operator, Step
from .geometry import counts, spatial_parameters, step_windows
from .pool2d import infer, picture_sums, pool_geometry


def lower(call: Call) -> Lowered:
    """Geometry, clamps, the prepared multiplier and the bound of a window's sum."""
    vertical, horizontal = pool_geometry(call)
    source, output = call.input(0), call.output
    rule = window_average.RULES[call.rules["window_average"]]
    try:
        arrays = rule.prepare(float(source.scale), float(output.scale), vertical.taps * horizontal.taps)
    except ValueError as error:
        raise call.invalid("BT-MULTIPLIER", f"the scales do not suit: {error}", "quantize the model again") from None
    taps = min(vertical.taps, vertical.extent) * min(horizontal.taps, horizontal.extent)
    # Sums are taken of stored integers first.
    span = max(signed_span(source, source.zero_point), source.type.maximum)
    picture = max(source.size, output.size) // max(1, source.shape[0])
    return Lowered(
        parameters={
            **spatial_parameters((vertical, horizontal)),
            **fused_range(call),
            "input_zero_point": source.zero_point,
        },
        arrays=arrays,
        accumulator=proven_bound(call, taps, span, None),
        work=output.size * taps,
        scratch=5 * 8 * picture,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Picture by picture: sums of stored integers, less the zero point of as many as lie inside."""
    x = inputs[0]
    rule = window_average.RULES[step.rules["window_average"]]
    inside = counts(step_windows(step, x.shape[1:3])[1:])[..., None]
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], x.shape[3]), x.dtype)
    for n, picture in enumerate(x):
        sums = picture_sums(picture, step).astype(np.int64) - inside * step["input_zero_point"]
        sums = finish_accumulator(step.rules["accumulate"], step.accumulator, sums)
        out[n] = rule.apply(sums, inside, step.arrays, step["output_zero_point"], step["low"], step["high"])
    return [out]


OPERATOR = Operator(
    "scaled_average_pool2d",
    ("accumulate", "window_average", "activation_range"),
    infer,
    lower,
    reference,
    "average over windows, in another scale",
)

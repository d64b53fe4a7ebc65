"""Convolutions of integers with filters of one channel, all channels of a pixel at a time, rescaled and stored.

Every input channel has as many filters as the others: output channel = channel * filters of each + filter. Scales and
zero points belong to the tensors. The depth-multiplier attribute is not read but by kernels that quantize their
activations: the shapes decide, as in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...records import replace
from ...rules import accumulate, lanes
from ..core.accumulator import (
    finish_accumulator,
    fused_range,
    multiplier_arrays,
    proven_bound,
    signed_span,
    stored_type,
    weight_sums,
)
from ..core.base import Call, Lowered, Step
from ..core.geometry import Window, spatial_bytes, spatial_parameters, step_windows
from ..core.lanes import stored_in_lanes
from ..core.roles import turned
from ..core.spatial import padded, sliding
from . import hybrid_layers, window_sums
from .conv_geometry import check_image, convolution_windows, filter_sizes, image_layout
from .integer_layers import check_weight_scales

# The order of the filters' axes: [1, h, w, C * filters of each].
LAYOUT = "ISO"


def check(call: Call) -> None:
    """A typed error for a bias that is named, but absent, and for what `check_image` refuses."""
    call.expect((2, 3))
    if len(call.inputs) == 3 and not call.has(2):
        raise call.invalid("BT-NODE-INPUT", "input 2 (bias) is named, but absent", "leave the input out altogether")
    check_image(call)


def lower(call: Call) -> Lowered:
    """Multipliers per channel, clamps, geometry and the accumulator bound."""
    windows, groups = convolution_windows(call)
    source, weights = call.input(0), call.input(1)
    channels = filter_sizes(call)[0]
    check_weight_scales(call, channels, 3)
    # Signed weights are symmetric by definition; only the legacy unsigned type carries a zero point.
    weight_zero_point = weights.zero_point if weights.dtype == "u8" else 0
    span = signed_span(source, source.zero_point)
    taps = weights.size // channels
    if weights.value is not None:
        sums = weight_sums(weights.value, weight_zero_point, axis=-1)
    else:
        sums = np.asarray(taps * signed_span(weights, weight_zero_point))
    bound = proven_bound(call, sums, span, call.input(2) if call.has(2) else None)
    return Lowered(
        parameters={
            **spatial_parameters(windows),
            **fused_range(call),
            **image_layout(call, groups),
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
            **({"body": lanes.RULES[call.rules["lanes"]].body(channels)} if "lanes" in call.rules else {}),
        },
        arrays=multiplier_arrays(call, source.scale, weights.quantization.scales),
        accumulator=bound,
        work=call.output.size * taps,
        scratch=2 * spatial_bytes(windows, channels, 4),
    )


def lower_hybrid(call: Call) -> Lowered:
    """The same where activations are quantized while running; these kernels go by the depth multiplier."""
    (vertical, horizontal), groups = convolution_windows(call)
    channels, multiplier = call.output.shape[3], call.attribute("depth_multiplier")
    if hybrid_layers.weight_scales(call, channels).size != channels:
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"one scale for {channels} channels: the kernel reads scales that are not there",
            "quantize the weights per channel",
        )
    if multiplier * groups != channels:
        raise call.invalid(
            "BT-CONV-CHANNELS",
            f"the depth multiplier is {multiplier}, but the shapes say {channels // groups}",
            "this kernel goes by the attribute and would leave outputs unwritten or write beyond them",
        )
    lowered = hybrid_layers.lower_windows(call, vertical, horizontal, "asymmetric", -1, groups)
    return replace(lowered, parameters={**lowered.parameters, **image_layout(call, groups)})


def _lost(
    step: Step, image: np.ndarray, filters: np.ndarray, windows: Sequence[Window]
) -> Callable[[slice], np.ndarray] | None:
    """What pairs of neighbouring taps lose in rows of the result, if the rule says so; padding holds the zero point."""
    lost = accumulate.RULES[step.rules["accumulate"]].lost
    if lost is None:
        return None
    taps, channels = filters.shape[0] * filters.shape[1], filters.shape[2]
    around = padded(np.moveaxis(image, -1, 0)[:, None].astype(np.int64), windows, step["input_zero_point"])
    # [H', W', C, taps]
    view = sliding(around, windows)[:, 0].transpose(1, 2, 0, 3, 4, 5)
    signed = filters.reshape(taps, -1).T[:, :, None].astype(np.int64) - 128

    def of_rows(rows: slice) -> np.ndarray:
        part = view[rows]
        values = part.reshape(-1, channels, taps).swapaxes(0, 1)
        return lost(values, signed)[..., 0].T.reshape(*part.shape[:2], channels)

    return of_rows


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums of single channels, image by image."""
    last = step["channels_last"]
    x, weights = inputs[0] if last else np.moveaxis(inputs[0], 1, -1), turned(inputs[1], step["filter_layout"], LAYOUT)
    bias = inputs[2] if len(inputs) > 2 else None
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    # int32 arrays wrap modulo 2^32 by themselves; a wider register needs int64.
    work_type = np.dtype(np.int32 if bound < 2**31 or step.rules["accumulate"] == "s32_wrap" else np.int64)
    filters = weights[0].astype(work_type) - work_type.type(step["weight_zero_point"])
    windows = step_windows(step, x.shape[1:3])
    body = step["body"] if "body" in step.parameters else 0
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], filters.shape[2]), stored_type(step, x.dtype))
    for n, image in enumerate(x if out.size else ()):
        image = np.repeat(image, filters.shape[2] // step["groups"], axis=2)
        lost = _lost(step, image, weights[0], windows)
        pixels = image.astype(work_type) - work_type.type(step["input_zero_point"])
        for rows, acc in window_sums.depthwise_sums(pixels, filters, *windows[1:]):
            total = acc.astype(np.int64)
            if lost is not None:
                total -= lost(rows)
            if bias is not None:
                total += bias.reshape(-1).astype(np.int64)
            total = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
            out[n, rows] = stored_in_lanes(step, total, body, out.dtype)
    return [out if last else np.ascontiguousarray(np.moveaxis(out, -1, 1))]


def reference_hybrid(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The same of images that are quantized as a whole."""
    return hybrid_layers.convolve_depthwise(step, inputs)

"""Convolutions of images with filters [O, h, w, C / groups] on tensors that carry their scales and zero points.

Integers are rescaled and stored with the limits of a fused activation; real activations are quantized while running.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...records import replace
from ..core.accumulator import fused_range, multiplier_arrays, proven_bound, signed_span, stored_type, weight_sums
from ..core.base import Call, Lowered, Step
from ..core.geometry import spatial_bytes, spatial_parameters
from ..core.roles import turned
from . import hybrid_layers, integer_conv
from .conv_geometry import check_image, convolution_windows, image_layout
from .integer_layers import check_bias_type, check_weight_scales


def check(call: Call) -> None:
    """A typed error unless a bias is named, and for what `check_image` refuses."""
    call.expect(3)
    check_image(call)


def lower(call: Call) -> Lowered:
    """Multipliers per channel, clamps, geometry and the accumulator bound."""
    windows, groups = convolution_windows(call)
    source, weights = call.input(0), call.input(1)
    channels = weights.shape[0]
    check_weight_scales(call, channels, 0)
    check_bias_type(call)
    scales = weights.quantization.scales
    weight_zero_point = 0 if weights.quantization.per_axis else weights.zero_point
    span = signed_span(source, source.zero_point)
    per_filter = weights.size // channels
    if weights.value is not None:
        sums = weight_sums(weights.value, weight_zero_point)
    else:
        sums = np.asarray(per_filter * signed_span(weights, weight_zero_point))
    return Lowered(
        parameters={
            **spatial_parameters(windows),
            **fused_range(call),
            **image_layout(call, groups),
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
        },
        arrays=multiplier_arrays(call, source.scale, scales),
        accumulator=proven_bound(call, sums, span, call.input(2) if call.has(2) else None),
        work=call.output.size * per_filter,
        scratch=2 * spatial_bytes(windows, source.shape[3], 4),
    )


def lower_hybrid(call: Call) -> Lowered:
    """Images are quantized with a zero point when the scales of the weights differ, else symmetrically."""
    (vertical, horizontal), groups = convolution_windows(call)
    scales = hybrid_layers.weight_scales(call, call.output.shape[3])
    axis = call.input(1).quantization.axis
    if axis:
        message = f"the scales of the weights belong to axis {axis}, and not to the output channels (axis 0)"
        raise call.invalid("BT-QUANT-AXIS", message)
    differ = bool((scales != scales[0]).any())
    if call.rules.get("rows") == "per_pixel":
        # A matrix product of pixels with filters of one tap each.
        lowered = hybrid_layers.lower_layer(
            call,
            "asymmetric",
            scales,
            {"output_shape": tuple(call.output.shape), **spatial_parameters((vertical, horizontal))},
            scratch=24 * (call.input(0).size + call.output.size),
        )
    elif "quantize_symmetric" not in call.rules:
        lowered = hybrid_layers.lower_windows(call, vertical, horizontal, "asymmetric", 0, groups)
    elif groups > 1 and not differ:
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"{groups} groups of filters that share one scale: the kernel reads temporary tensors that it has not made",
            "quantize the weights per output channel",
        )
    else:
        mode = "asymmetric" if differ else "symmetric"
        lowered = hybrid_layers.lower_windows(call, vertical, horizontal, mode, 0, groups)
    return replace(lowered, parameters={**lowered.parameters, **image_layout(call, groups)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Unfolded windows times the filters."""
    x, weights = inputs[0], turned(inputs[1], step["filter_layout"], "OIS")
    return [integer_conv.convolved(step, x, weights, inputs[2], stored_type(step, x.dtype), step["channels_last"])]


def reference_hybrid(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The same of images that are quantized, as a whole or pixel by pixel."""
    if step.rules.get("rows") == "per_pixel":
        return hybrid_layers.multiply(step, [inputs[0], inputs[1].reshape(inputs[1].shape[0], -1), *inputs[2:]])
    return hybrid_layers.convolve(step, inputs)

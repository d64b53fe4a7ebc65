"""conv2d: acc[n,y,x,o] = sum over taps and channels of (q - z_in)(w - z_w) + bias, then rescale and store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.accumulator import fused_range, multiplier_arrays, proven_bound, signed_span, stored_type, weight_sums
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.geometry import Window, spatial_bytes, spatial_parameters
from ..core.roles import LAYER
from . import hybrid_layers, integer_conv, real_layers
from .conv_geometry import check_bias, listed_windows
from .hybrid_layers import HYBRID_SLOTS
from .integer_layers import check_bias_type, check_weight_scales
from .real_layers import REAL_SLOTS


def _geometry(call: Call) -> tuple[Window, Window, int]:
    call.expect(3)
    source, weights = call.input(0), call.input(1, "weights")
    call.rank(source, 4)
    call.rank(weights, 4)
    channels, depth = source.shape[3], weights.shape[3]
    if min(channels, depth, weights.shape[0]) < 1 or channels % depth:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{channels} input channels cannot be split into groups of {depth} filter channels"
        )
    groups = channels // depth
    if call.node.attributes.get("groups", groups) != groups:
        raise call.invalid(
            "BT-CONV-CHANNELS",
            f"{channels} input channels and filters of {depth} make {groups} groups, but the node says "
            f"{call.attribute('groups')}",
        )
    if weights.shape[0] % groups:
        raise call.invalid("BT-CONV-CHANNELS", f"{weights.shape[0]} filters cannot be split into {groups} groups")
    vertical, horizontal = listed_windows(call, source.shape[1:3], weights.shape[1:3])
    return vertical, horizontal, groups


def infer(call: Call) -> list[Shape]:
    """[N, H, W, C] with weights [O, kh, kw, C/groups] gives [N, H', W', O]."""
    vertical, horizontal, _ = _geometry(call)
    channels = call.input(1).shape[0]
    check_bias(call, channels)
    return [(call.input(0).shape[0], vertical.out, horizontal.out, channels)]


def lower(call: Call) -> Lowered:
    """Multipliers per channel, clamps, geometry and the accumulator bound."""
    vertical, horizontal, groups = _geometry(call)
    if "sum_of_products" in call.rules:
        return real_layers.lower_windows(call, (vertical, horizontal), groups)
    if "quantize_asymmetric" in call.rules:
        return _lower_hybrid(call, vertical, horizontal, groups)
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
            **spatial_parameters((vertical, horizontal)),
            **fused_range(call),
            "groups": groups,
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
        },
        arrays=multiplier_arrays(call, source.scale, scales),
        accumulator=proven_bound(call, sums, span, call.input(2) if call.has(2) else None),
        work=call.output.size * per_filter,
        scratch=2 * spatial_bytes((vertical, horizontal), source.shape[3], 4),
    )


def _lower_hybrid(call: Call, vertical: Window, horizontal: Window, groups: int) -> Lowered:
    """Images are quantized with a zero point when the scales of the weights differ, else symmetrically."""
    scales = hybrid_layers.weight_scales(call, call.output.shape[3])
    axis = call.input(1).quantization.axis
    if axis:
        message = f"the scales of the weights belong to axis {axis}, and not to the output channels (axis 0)"
        raise call.invalid("BT-QUANT-AXIS", message)
    if call.rules.get("rows") == "per_pixel":
        # A matrix product of pixels with filters of one tap each.
        return hybrid_layers.lower_layer(
            call,
            "asymmetric",
            scales,
            {"output_shape": tuple(call.output.shape), **spatial_parameters((vertical, horizontal)), "groups": groups},
            scratch=24 * (call.input(0).size + call.output.size),
        )
    if "quantize_symmetric" not in call.rules:
        return hybrid_layers.lower_windows(call, vertical, horizontal, "asymmetric", 0, groups)
    differ = bool((scales != scales[0]).any())
    if groups > 1 and not differ:
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"{groups} groups of filters that share one scale: the kernel reads temporary tensors that it has not made",
            "quantize the weights per output channel",
        )
    return hybrid_layers.lower_windows(call, vertical, horizontal, "asymmetric" if differ else "symmetric", 0, groups)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The convolution by the row's arithmetic."""
    if "sum_of_products" in step.rules:
        return real_layers.convolve(step, inputs, inputs[1].transpose(1, 2, 3, 0))
    if "quantize_asymmetric" in step.rules:
        if step.rules.get("rows") == "per_pixel":
            return hybrid_layers.multiply(step, [inputs[0], inputs[1].reshape(inputs[1].shape[0], -1), *inputs[2:]])
        return hybrid_layers.convolve(step, inputs)
    x, weights = inputs[0], np.moveaxis(inputs[1], -1, 1)
    return [integer_conv.convolved(step, x, weights, inputs[2], stored_type(step, x.dtype), True)]


OPERATOR = Operator(
    "conv2d",
    (
        "accumulate",
        "scale_form",
        "rescale",
        "store",
        "activation_range",
        *REAL_SLOTS,
        *HYBRID_SLOTS,
        "rows",
        "row_sums",
        "scale_back_per_axis",
    ),
    infer,
    lower,
    reference,
    "2-D convolution, groups and dilation included",
    roles=LAYER,
    weights="OSI",
    channels_last=True,
    multiplies=True,
    writes_rows=True,
    reads_rows=True,
)

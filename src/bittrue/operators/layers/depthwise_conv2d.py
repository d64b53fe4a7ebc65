"""depthwise_conv2d: every input channel has its own `multiplier` filters; output channel = channel * multiplier + m."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

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
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.geometry import Window, spatial_bytes, spatial_parameters, step_windows
from ..core.lanes import stored_in_lanes
from ..core.roles import LAYER
from ..core.spatial import padded, sliding
from . import hybrid_layers, real_layers
from .conv_geometry import check_bias, listed_windows
from .integer_layers import check_weight_scales
from .real_layers import REAL_SLOTS
from .window_sums import depthwise_sums


def _geometry(call: Call) -> tuple[Window, ...]:
    call.expect((2, 3))
    if len(call.inputs) == 3 and not call.has(2):
        raise call.invalid("BT-NODE-INPUT", "input 2 (bias) is named, but absent", "leave the input out altogether")
    source, weights = call.input(0), call.input(1, "weights")
    call.rank(source, 4)
    call.rank(weights, 4)
    if weights.shape[0] != 1:
        raise call.invalid("BT-CONV-CHANNELS", f"weights must have shape [1, h, w, channels], found {weights.shape}")
    if min(source.shape[3], weights.shape[3]) < 1 or weights.shape[3] % source.shape[3]:
        raise call.invalid(
            "BT-CONV-CHANNELS",
            f"{weights.shape[3]} output channels are no multiple of {source.shape[3]} input channels",
        )
    if call.node.attributes.get("groups", source.shape[3]) != source.shape[3]:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{source.shape[3]} input channels are no {call.attribute('groups')} groups of one"
        )
    return listed_windows(call, source.shape[1:3], weights.shape[1:3])


def infer(call: Call) -> list[Shape]:
    """[N, H, W, C] with weights [1, kh, kw, C * multiplier] gives [N, H', W', C * multiplier]."""
    vertical, horizontal = _geometry(call)
    channels = call.input(1).shape[3]
    check_bias(call, channels)
    return [(call.input(0).shape[0], vertical.out, horizontal.out, channels)]


def lower(call: Call) -> Lowered:
    """Multipliers per channel, clamps, geometry and the accumulator bound.

    The depth-multiplier attribute is not read: the shapes decide, as in the kernels.
    """
    vertical, horizontal = _geometry(call)
    if "sum_of_products" in call.rules:
        return real_layers.lower_windows(call, (vertical, horizontal), call.input(0).shape[3])
    if "quantize_asymmetric" in call.rules:
        return _lower_hybrid(call, vertical, horizontal)
    source, weights = call.input(0), call.input(1)
    channels = weights.shape[3]
    check_weight_scales(call, channels, 3)
    # Signed weights are symmetric by definition; only the legacy unsigned type carries a zero point.
    weight_zero_point = weights.zero_point if weights.dtype == "u8" else 0
    span = signed_span(source, source.zero_point)
    taps = vertical.taps * horizontal.taps
    if weights.value is not None:
        sums = weight_sums(weights.value, weight_zero_point, axis=-1)
    else:
        sums = np.asarray(taps * signed_span(weights, weight_zero_point))
    bound = proven_bound(call, sums, span, call.input(2) if call.has(2) else None)
    if accumulate.RULES[call.rules["accumulate"]].lost is not None:
        # Where something is lost before the register, it does not hold the sum, however small that is.
        bound = replace(bound, wraps=True)
    return Lowered(
        parameters={
            **spatial_parameters((vertical, horizontal)),
            **fused_range(call),
            "multiplier": channels // source.shape[3],
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
            **({"body": lanes.RULES[call.rules["lanes"]].body(channels)} if "lanes" in call.rules else {}),
        },
        arrays=multiplier_arrays(call, source.scale, weights.quantization.scales),
        accumulator=bound,
        work=call.output.size * taps,
        scratch=2 * spatial_bytes((vertical, horizontal), channels, 4),
    )


def _lower_hybrid(call: Call, vertical: Window, horizontal: Window) -> Lowered:
    channels, multiplier = call.output.shape[3], call.attribute("depth_multiplier")
    if hybrid_layers.weight_scales(call, channels).size != channels:
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"one scale for {channels} channels: the kernel reads scales that are not there",
            "quantize the weights per channel",
        )
    if multiplier * call.input(0).shape[3] != channels:
        raise call.invalid(
            "BT-CONV-CHANNELS",
            f"the depth multiplier is {multiplier}, but the shapes say {channels // call.input(0).shape[3]}",
            "this kernel goes by the attribute and would leave outputs unwritten or write beyond them",
        )
    return hybrid_layers.lower_windows(call, vertical, horizontal, "asymmetric", -1, call.input(0).shape[3])


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
    if "sum_of_products" in step.rules:
        return real_layers.convolve(step, inputs, inputs[1].transpose(1, 2, 0, 3))
    if "quantize_asymmetric" in step.rules:
        return hybrid_layers.convolve_depthwise(step, inputs)
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    # int32 arrays wrap modulo 2^32 by themselves; a wider register needs int64.
    work_type = np.dtype(np.int32 if bound < 2**31 or step.rules["accumulate"] == "s32_wrap" else np.int64)
    filters = weights[0].astype(work_type) - work_type.type(step["weight_zero_point"])
    windows = step_windows(step, x.shape[1:3])
    body = step["body"] if "body" in step.parameters else 0
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], filters.shape[2]), stored_type(step, x.dtype))
    for n, image in enumerate(x if out.size else ()):
        image = np.repeat(image, step["multiplier"], axis=2)
        lost = _lost(step, image, weights[0], windows)
        pixels = image.astype(work_type) - work_type.type(step["input_zero_point"])
        for rows, acc in depthwise_sums(pixels, filters, *windows[1:]):
            total = acc.astype(np.int64)
            if lost is not None:
                total -= lost(rows)
            if bias is not None:
                total += bias.reshape(-1).astype(np.int64)
            total = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
            out[n, rows] = stored_in_lanes(step, total, body, out.dtype)
    return [out]


OPERATOR = Operator(
    "depthwise_conv2d",
    (
        "accumulate",
        "scale_form",
        "rescale",
        "rescale_tail",
        "lanes",
        "store",
        "activation_range",
        *REAL_SLOTS,
        "quantize_asymmetric",
        "scale_back",
    ),
    infer,
    lower,
    reference,
    "depthwise 2-D convolution",
    roles=LAYER,
    weights="1SO",
    channels_last=True,
    multiplies=True,
)

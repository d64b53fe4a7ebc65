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
from ..core.geometry import Window, spatial_bytes, spatial_parameters, step_windows, windows_by_letter
from ..core.lanes import stored_in_lanes
from ..core.roles import LAYER
from ..core.stopping import check_stop
from . import hybrid_layers, real_layers
from .conv2d import pad_and_center, tap_windows
from .conv_geometry import check_bias
from .integer_layers import check_weight_scales
from .real_layers import REAL_SLOTS

# Elements of accumulator held at a time, so that the passes over the taps stay in cache.
BLOCK = 1 << 16


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
    return windows_by_letter(call, source.shape[1:3], weights.shape[1:3])


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
    step: Step,
    lost: Callable[[np.ndarray, np.ndarray], np.ndarray],
    padded: np.ndarray,
    filters: np.ndarray,
    top: int,
    count: int,
) -> np.ndarray:
    """What pairs of neighbouring taps lose in rows `top` to `top + count`; padded quantized values are zero points."""
    taps = filters.shape[0] * filters.shape[1]
    view = tap_windows(padded, step)[top : top + count]
    codes = view.reshape(-1, taps, filters.shape[2]).transpose(2, 0, 1) + step["input_zero_point"]
    signed = filters.reshape(taps, -1).T[:, :, None].astype(np.int64) - 128
    return lost(codes, signed)[..., 0].T.reshape(count, step["out_w"], -1)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One multiply-add pass per tap over blocks of rows."""
    if "sum_of_products" in step.rules:
        return real_layers.convolve(step, inputs, inputs[1].transpose(1, 2, 0, 3))
    if "quantize_asymmetric" in step.rules:
        return hybrid_layers.convolve_depthwise(step, inputs)
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    # int32 arrays wrap modulo 2^32 by themselves; a wider register needs int64.
    work_type = np.dtype(np.int32 if bound < 2**31 or step.rules["accumulate"] == "s32_wrap" else np.int64)
    filters = weights[0].astype(work_type) - work_type.type(step["weight_zero_point"])
    channels = filters.shape[2]
    lost = accumulate.RULES[step.rules["accumulate"]].lost
    # Other taps only ever multiply padding, which is real zero.
    rows_of_taps, columns_of_taps = (one.taps_met() for one in step_windows(step, x.shape[1:3])[1:])
    stride_h, stride_w = step["stride_h"], step["stride_w"]
    dilation_h, dilation_w = step["dilation_h"], step["dilation_w"]
    out_h, out_w = step["out_h"], step["out_w"]
    out = np.empty((x.shape[0], out_h, out_w, channels), stored_type(step, x.dtype))
    if not out.size:
        return [out]
    rows = max(1, BLOCK // max(1, out_w * channels))
    for n, picture in enumerate(x):
        padded = pad_and_center(picture, step, work_type)
        if step["multiplier"] > 1:
            padded = np.repeat(padded, step["multiplier"], axis=2)
        for top in range(0, out_h, rows):
            check_stop()
            count = min(rows, out_h - top)
            acc = np.zeros((count, out_w, channels), work_type)
            for i in rows_of_taps:
                first = top * stride_h + i * dilation_h
                band = padded[first : first + (count - 1) * stride_h + 1 : stride_h]
                for j in columns_of_taps:
                    left = j * dilation_w
                    acc += band[:, left : left + (out_w - 1) * stride_w + 1 : stride_w] * filters[i, j]
            total = acc.astype(np.int64)
            if lost is not None:
                total -= _lost(step, lost, padded, weights[0], top, count)
            if bias is not None:
                total += bias.reshape(-1).astype(np.int64)
            total = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
            out[n, top : top + count] = stored_in_lanes(
                step, total, step["body"] if "body" in step.parameters else 0, out.dtype
            )
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

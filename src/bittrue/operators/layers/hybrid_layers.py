"""Layers with real activations and integer weights: each row of activations is quantized while the model runs.

y = f32(scaled back(sum of (q - zero_point) * w) + bias), clamped; the zero point of the weights plays no part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic.matmul import exact_matmul, product_type
from ...errors import RunError
from ...graph import Attribute
from ...rules import byte_products, plain_range, quantize_rows, row_sums, scale_back, weights_offset
from ..core.accumulator import finish_accumulator, proven_bound, weight_sums
from ..core.base import Call, Lowered, Step
from ..core.geometry import Window, spatial_bytes, spatial_parameters, step_windows
from .real_layers import real_range
from .window_sums import Addend, depthwise_sums, integer_sums

# Slots that a hybrid row fills, beside `accumulate` and `plain_range`.
# |q - zero point| of a quantized row, and beyond what a padded position holds.
_SPAN = {"symmetric": 127, "asymmetric": 255}


def weight_scales(call: Call, channels: int) -> np.ndarray:
    """The scales of the weights: one, or one per output channel."""
    weights = call.input(1, "weights")
    quantization = weights.quantization
    size = weights.shape[quantization.axis] if quantization.axis is not None else channels
    if quantization.scales.size not in (1, channels) or (quantization.per_axis and size != channels):
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"weights have {quantization.scales.size} scales along axis {quantization.axis}, expected {channels}, "
            "one per output channel",
            "the kernel would read scales that are not there",
        )
    return quantization.scales.astype(np.float32)


def lower_layer(
    call: Call, mode: str, scales: np.ndarray, parameters: dict[str, Attribute], axis: int = 0, scratch: int = 0
) -> Lowered:
    """What all hybrid layers keep: how rows are quantized, the scales, the limits and the accumulator's bound.

    `axis` is the one of the weights' output channels, the first or the last one.
    """
    weights = call.input(1)
    if weights.value is not None:
        sums = weight_sums(weights.value, 0, axis)
    else:
        sums = np.asarray(weights.size // weights.shape[axis] * -weights.type.minimum)
    bound = proven_bound(call, sums, _SPAN[mode], None)
    return Lowered(
        parameters={**parameters, **real_range(call), "quantize": mode},
        arrays={"weight_scales": scales},
        accumulator=bound,
        work=call.output.size * (weights.size // weights.shape[axis]),
        scratch=scratch,
    )


def lower_windows(call: Call, vertical: Window, horizontal: Window, mode: str, axis: int, groups: int) -> Lowered:
    """A hybrid convolution."""
    source, channels = call.input(0), call.output.shape[3]
    scales = weight_scales(call, channels)
    return lower_layer(
        call,
        mode,
        scales if mode == "asymmetric" else scales[:1],
        {**spatial_parameters((vertical, horizontal)), "groups": groups},
        axis,
        4 * source.size + 2 * spatial_bytes((vertical, horizontal), source.shape[3], 8),
    )


def quantize(step: Step, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows by the step's rule: integers, scales, zero points."""
    rules = quantize_rows.SYMMETRIC if step["quantize"] == "symmetric" else quantize_rows.ASYMMETRIC
    try:
        return rules[step.rules[f"quantize_{step['quantize']}"]](rows)
    except OverflowError as error:
        raise RunError(
            "BT-RUN-NOT-FINITE",
            f"the activations cannot be quantized: {error}",
            place=step.place,
            advice="the runtime converts it to an integer, which is undefined",
        ) from None


def finish(step: Step, acc: np.ndarray, scale: np.ndarray | np.float32, start: np.ndarray | None) -> np.ndarray:
    """Sums whose last axis are the output channels: scaled back, added to `start` if there is one, clamped."""
    per_axis = step["quantize"] == "asymmetric" and "scale_back_per_axis" in step.rules
    rule = scale_back.RULES[step.rules["scale_back_per_axis" if per_axis else "scale_back"]]
    acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
    scales = step.arrays["weight_scales"]
    if step.rules["scale_back"] in scale_back.WITH_START:
        total = rule(acc, scale, scales) if start is None else rule(acc, scale, scales, start)
        return plain_range.CLAMPS[step.rules["plain_range"]](total, step["low"], step["high"])
    total = rule(acc, scale, scales)
    if start is not None:
        with np.errstate(all="ignore"):
            total = start + total
    return plain_range.CLAMPS[step.rules["plain_range"]](total, step["low"], step["high"])


def convolve(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Unfolded rows of windows times the filters[O, h, w, depth]; each image has a scale of its own."""
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    groups, channels = step["groups"], weights.shape[0]
    windows = step_windows(step, x.shape[1:3])
    matrices = np.moveaxis(weights, -1, 1).reshape(groups, channels // groups, -1)
    start = np.zeros(channels, np.float32) if bias is None else bias.reshape(-1)
    out = np.empty((x.shape[0], step["out_h"], step["out_w"], channels), np.float32)
    more = _byte_errors(step, weights) if _by_bytes(step, channels) else None
    wrong = _wrong_sums(step, weights.reshape(channels, -1))
    for n, image in enumerate(x if out.size else ()):
        q, scale, zero_point = quantize(step, image.reshape(1, -1))
        pixels = np.moveaxis((q - zero_point).reshape(image.shape), -1, 0)[:, None]
        for _, rows, sums in integer_sums(pixels, matrices, windows, _bound(step), more):
            acc = np.ascontiguousarray(sums.reshape(channels, -1).T)
            if wrong is not None:
                acc -= zero_point * wrong
            out[n, rows] = finish(step, acc, scale, start).reshape(-1, *out.shape[2:])
    return [out]


def _wrong_sums(step: Step, weights: np.ndarray) -> np.ndarray | None:
    """What sums of the rows of weights, as the rule makes them, are too large by, where zero points meet these."""
    if step["quantize"] != "asymmetric" or "row_sums" not in step.rules:
        return None
    wrong = row_sums.RULES[step.rules["row_sums"]](weights) - row_sums.exact(weights)
    return wrong if wrong.any() else None


def _byte_errors(step: Step, weights: np.ndarray) -> Addend | None:
    """What the rule for products of bytes adds to exact sums; it goes by the order of the terms, taps first."""
    rule = byte_products.RULES[step.rules["byte_products"]]
    groups, depth = step["groups"], weights.shape[3]
    matrices = weights.reshape(groups, weights.shape[0] // groups, -1)

    def errors(columns: np.ndarray) -> np.ndarray:
        found = np.zeros((groups, matrices.shape[1], columns.shape[2]), np.int64)
        by_taps = columns.reshape(groups, depth, -1, columns.shape[2]).transpose(0, 3, 2, 1)
        for g, rows in enumerate(by_taps.reshape(groups, columns.shape[2], -1)):
            more = rule(rows, matrices[g])
            if more is not None:
                found[g] = more.T
        return found

    return errors


def _by_bytes(step: Step, channels: int) -> bool:
    """Symmetric rows go through a matrix product; four or a multiple of it filters take an exact one."""
    return bool(step["quantize"] == "symmetric") and channels % 4 != 0


def _bound(step: Step) -> int:
    return step.accumulator.magnitude if step.accumulator else 2**62


def convolve_depthwise(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums of single channels with weights[1, h, w, outputs]."""
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    _, vertical, horizontal = step_windows(step, x.shape[1:3])
    channels, filters = weights.shape[3], weights[0].astype(np.int64)
    start = None if bias is None else bias.reshape(-1)
    out = np.empty((x.shape[0], vertical.out, horizontal.out, channels), np.float32)
    for n, image in enumerate(x if out.size else ()):
        q, scale, zero_point = quantize(step, image.reshape(1, -1))
        pixels = np.repeat((q - zero_point).reshape(image.shape), channels // x.shape[3], axis=2)
        for rows, acc in depthwise_sums(pixels.astype(np.int64), filters, vertical, horizontal):
            out[n, rows] = finish(step, acc, scale, start)
    return [out]


def multiply(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A matrix product; every row has a scale of its own. Where all rows are zero, only the bias is left."""
    x, weights = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    start = np.zeros(len(weights), np.float32) if bias is None else bias.reshape(-1)
    apart = weights_offset.RULES.get(step.rules.get("weights_offset", ""))
    if not x.any() and step.rules["scale_back"] in scale_back.SKIPS_ZEROS and apart is None:
        clamp = plain_range.CLAMPS[step.rules["plain_range"]]
        only_bias = np.broadcast_to(start, step["output_shape"])
        return [clamp(only_bias, step["low"], step["high"])]
    bound = _bound(step)
    work_type = product_type(bound)
    q, scales, zero_points = quantize(step, x.reshape(-1, weights.shape[1]))
    zero_points = zero_points[:, None]
    acc = exact_matmul((q - zero_points).astype(work_type), weights.T.astype(work_type), bound).astype(np.int64)
    if apart is not None:
        row_sums_of_q = q.sum(axis=1, keepdims=True)
        start = apart.begin(row_sums_of_q, scales[:, None], step.arrays["weight_scales"], start)
        return [finish(step, acc + apart.offset * row_sums_of_q, scales[:, None], start).reshape(step["output_shape"])]
    more = byte_products.RULES[step.rules["byte_products"]](q, weights)
    if more is not None:
        acc += more
    wrong = _wrong_sums(step, weights)
    if wrong is not None:
        # The exact product took zero point times exact sums off.
        acc -= zero_points * wrong
    return [finish(step, acc, scales[:, None], start).reshape(step["output_shape"])]

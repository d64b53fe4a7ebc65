"""Convolution and addition on integers as the published reference kernels have them, with one fault at will.

Written from that source, in NumPy; shares no code with bittrue, which only reads the file for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from bittrue.conformance.devices.model import DeviceModel

Array = np.ndarray


def encoded(real: float) -> tuple[int, int]:
    """Multiplier of 31 bits and exponent of a positive factor."""
    fraction, exponent = math.frexp(real)
    multiplier = math.floor(fraction * 2**31 + 0.5)
    return (multiplier // 2, exponent + 1) if multiplier == 2**31 else (multiplier, exponent)


def high_half(a: Array, b: Array) -> Array:
    """The doubling high product, rounded to nearest, ties up."""
    return np.clip((a * b + (1 << 30)) >> 31, -(2**31), 2**31 - 1)


def shifted_right(x: Array, by: Array, fault: str) -> Array:
    """x / 2^by, ties away from zero."""
    by = np.broadcast_to(by, x.shape)
    rest, half, whole = x & ((1 << by) - 1), (1 << by) >> 1, x >> by
    if fault == "second_floor":
        return whole
    if fault == "second_trunc":
        return whole + ((x < 0) & (rest > 0))
    above, tie = rest > half, (rest == half) & (by > 0)
    if fault == "second_tie_down":
        return whole + above
    if fault == "second_tie_even":
        return whole + (above | (tie & (whole & 1 == 1)))
    return whole + (above | (tie & (x >= 0)))


def rescaled(acc: Array, real: Array, fault: str) -> Array:
    """Accumulators, [..., channels], times one factor per channel."""
    pairs = [encoded(float(r)) for r in np.ravel(real)]
    multiplier, exponent = (np.array(v, np.int64) for v in zip(*pairs, strict=True))
    if fault == "multiplier_shifted":
        multiplier, exponent = np.roll(multiplier, 1), np.roll(exponent, 1)
    if fault == "multiplier_top_15":
        by = 15 - exponent
        return (acc * (multiplier >> 16) + ((1 << by) >> 1)) >> by
    if fault == "single_even":
        by = 31 - exponent
        product, half = acc * multiplier, 1 << (by - 1)
        rest, whole = product & (2 * half - 1), product >> by
        return whole + ((rest > half) | ((rest == half) & (whole & 1 == 1)))
    if fault == "binary32_half_added":
        value = acc.astype(np.float32) * np.ravel(real).astype(np.float32)
        return np.trunc(value + np.copysign(np.float32(0.5), value)).astype(np.int64)
    left, right = np.maximum(exponent, 0), np.maximum(-exponent, 0)
    wide = ((acc << left) + 2**31) % 2**32 - 2**31
    return shifted_right(high_half(wide, multiplier), right, fault)


def ends(activation: str, scale: np.float32, point: int, fault: str) -> tuple[int, int]:
    """The clamp of a fused activation."""

    def code(real: float) -> int:
        quotient = float(np.float32(real) / scale)
        return point + int(math.copysign(math.floor(abs(quotient) + 0.5), quotient))

    low, high = -128, 127
    if activation != "none":
        low = max(low, code(-1.0 if activation == "relu_n1_to_1" else 0.0))
        low = 0 if fault == "relu_at_code_0" else low
    if activation in ("relu6", "relu_n1_to_1"):
        end = code(6.0 if activation == "relu6" else 1.0)
        high = min(high, end) - (fault == "upper_end_low" and end <= high)
    return low, high


def stored(y: Array, model: DeviceModel, fault: str) -> Array:
    """Quantized values of the output."""
    scale, point = _parameters(model, -1)
    low, high = ends(str(model.attributes["activation"]), np.float32(scale[0]), point, fault)
    found = y + point
    if fault == "wraps_before_clamp":
        found = (found + 128) % 256 - 128
    return np.clip(found, low, high).astype(np.int8)


def convolved(model: DeviceModel, x: Array, fault: str) -> Array:
    """CONV_2D."""
    given = model.attributes
    weights, bias = _constants(model)
    (scale_x, point), (scale_w, _), (scale_y, _) = (_parameters(model, k) for k in (0, 1, -1))
    taps, windows = weights.shape[1:3], []
    for axis, (stride, dilation) in enumerate(zip(given["strides"], given["dilations"], strict=True)):
        size = x.shape[1 + axis]
        reach = (taps[axis] - 1) * dilation + 1
        count, before = (size - reach) // stride + 1, 0
        if given["padding"] == "same_upper":
            count = -(-size // stride)
            total = max((count - 1) * stride + reach - size, 0)
            before = total - total // 2 if fault == "padding_other_side" else total // 2
        windows.append(np.arange(count)[:, None] * stride - before + np.arange(taps[axis]) * dilation)
    rows, columns = windows
    inside = ((rows >= 0) & (rows < x.shape[1]))[:, None, :, None] & ((columns >= 0) & (columns < x.shape[2]))[
        None, :, None
    ]
    rows, columns = np.clip(rows, 0, x.shape[1] - 1), np.clip(columns, 0, x.shape[2] - 1)
    patches = x.astype(np.int64)[:, rows[:, None, :, None], columns[None, :, None]] - point
    patches = np.where(inside[None, ..., None], patches, 0)
    if fault == "weights_rotated":
        weights = weights[:, ::-1, ::-1]
    depth, groups = weights.shape[3], x.shape[3] // weights.shape[3]
    each = weights.shape[0] // groups
    parts = [
        np.einsum("nyxhwc,ohwc->nyxo", patches[..., g * depth : (g + 1) * depth], weights[g * each : (g + 1) * each])
        for g in range(groups)
    ]
    if fault == "bias_shifted":
        bias = np.roll(bias, 1)
    if fault == "bias_16":
        bias = bias.astype(np.int16).astype(np.int64)
    acc = (np.concatenate(parts, -1) + bias + 2**31) % 2**32 - 2**31
    real = scale_x[0] * scale_w / scale_y[0]
    return stored(rescaled(acc, np.broadcast_to(real, bias.shape), fault), model, fault)


def added(model: DeviceModel, one: Array, two: Array, fault: str) -> Array:
    """ADD."""
    ((scale_1,), point_1), ((scale_2,), point_2), ((scale_y,), _) = (_parameters(model, k) for k in (0, 1, -1))
    if fault == "zero_points_swapped":
        point_1, point_2 = point_2, point_1
    twice = 2 * max(scale_1, scale_2)
    if fault == "scales_swapped":
        scale_1, scale_2 = scale_2, scale_1
    left = 7 if fault == "left_7" else 20
    first = rescaled((one.astype(np.int64) - point_1) << left, np.array([scale_1 / twice]), fault)
    second = rescaled((two.astype(np.int64) - point_2) << left, np.array([scale_2 / twice]), fault)
    return stored(rescaled(first + second, np.array([twice / ((1 << left) * scale_y)]), fault), model, fault)


def run(model: DeviceModel, inputs: Mapping[str, Array], fault: str = "") -> dict[str, Array]:
    """The device."""
    values = [inputs[port.name] for port in model.inputs]
    if model.operator == "ADD":
        constants = {t.name: t.values() for t in model.tensors if t.is_constant}
        operands = [inputs[name] if name in inputs else constants[name] for name in _names(model)[:2]]
        found = added(model, operands[0], operands[1], fault)
    else:
        found = convolved(model, values[0], fault)
    if fault == "noise":
        generator = np.random.default_rng(values[0].astype(np.int64).sum() % 2**32)
        found = np.where(generator.random(found.shape) < 0.01, found ^ np.int8(4), found)
    return {model.outputs[0].name: found}


def _names(model: DeviceModel) -> list[str]:
    found = [t for t in model.description["tensors"] if t["role"] != "output"]
    return [t["name"] for t in sorted(found, key=lambda t: t["position"])]


def _parameters(model: DeviceModel, position: int) -> tuple[Array, int]:
    """Scales as binary64, and the zero point, of an operand; -1 is the output."""
    name = model.outputs[0].name if position < 0 else _names(model)[position]
    found = next(t.quantization for t in model.tensors if t.name == name)
    assert found is not None
    return found.scales.astype(np.float64), int(found.zero_points[0])


def _constants(model: DeviceModel) -> tuple[Array, Array]:
    known = {t.name: t.values() for t in model.tensors if t.is_constant}
    weights, *bias = (known[name].astype(np.int64) for name in _names(model)[1:])
    return weights, bias[0] if bias else np.zeros(weights.shape[0], np.int64)

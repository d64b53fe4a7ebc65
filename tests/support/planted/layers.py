"""Convolutions, fully-connected layers and pools. Every keyword is a way to be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from .reading import Operation
from .rounding import Array, Rounding, encode, nearest_away, two_step

_ACTIVATIONS = {v: k for k, v in vars(schema.ActivationFunctionType).items() if isinstance(v, int)}


def ends(op: Operation, **wrong: Any) -> tuple[int, int]:
    """The clamp of the fused activation."""
    y = op.output
    low, high = int(np.iinfo(y.dtype).min), int(np.iinfo(y.dtype).max)
    name = _ACTIVATIONS[op.options.fusedActivationFunction]
    if wrong.get("no_activation"):
        name = "NONE"

    def code(real: float) -> int:
        return y.zero + int(nearest_away(np.float32(real) / y.scale))

    if name in ("RELU", "RELU6"):
        low = max(low, code(0.0))
    if name == "RELU6" and not wrong.get("relu_for_relu6"):
        high = min(high, code(6.0))
    if name == "RELU_N1_TO_1":
        low, high = max(low, code(-1.0)), min(high, code(1.0))
    return low, high


def store(op: Operation, value: Array, **wrong: Any) -> Array:
    """Zero point and clamp."""
    zero = op.output.zero
    low, high = ends(op, **wrong)
    if wrong.get("clamp_first"):
        return (np.clip(np.clip(value, low, high) + zero, -128, 127)).astype(op.output.dtype)
    if wrong.get("wrap"):
        return (value + zero).astype(op.output.dtype)
    if wrong.get("no_output_zero"):
        zero = 0
    found = np.clip(value + zero, low, high)
    if wrong.get("symmetric"):
        found = np.maximum(found, -127)
    return found.astype(op.output.dtype)


def geometry(op: Operation, taps: tuple[int, int], dilation: tuple[int, int], **wrong: Any) -> tuple[Any, Any, Any]:
    """Strides, pads (top, bottom, left, right) and output dimensions."""
    stride = (op.options.strideH, op.options.strideW)
    pads, size = [], []
    for axis in range(2):
        dimension, out = op.x.shape[1 + axis], op.output.shape[1 + axis]
        reach = (taps[axis] - 1) * dilation[axis] + 1
        same = op.options.padding == schema.Padding.SAME
        total = max(0, (out - 1) * stride[axis] + reach - dimension) if same else 0
        before = total - total // 2 if wrong.get("pads_at_the_beginning") else total // 2
        pads += [before, max(0, (out - 1) * stride[axis] + reach - dimension - before)]
        size.append(out)
    if wrong.get("strides_swapped"):
        # Windows that leave the image read the zero point.
        stride = stride[::-1]
        for axis in range(2):
            reach = (taps[axis] - 1) * dilation[axis] + 1
            needed = (size[axis] - 1) * stride[axis] + reach - op.x.shape[1 + axis] - pads[2 * axis]
            pads[2 * axis + 1] = max(0, needed)
    return stride, tuple(pads), tuple(size)


def layer(op: Operation, **wrong: Any) -> Array:
    """CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED on 8-bit values."""
    x, w, bias, y = op.x, op.get(1), op.get(2), op.output
    assert x.value is not None
    assert w is not None
    assert w.value is not None
    weights = w.value.astype(np.int64) - (0 if w.scales.size > 1 else w.zero)
    if wrong.get("no_minus_128"):
        weights = np.maximum(weights, -127)
    if wrong.get("neighbour"):
        weights = np.roll(weights, 1, 3 if op.name == "DEPTHWISE_CONV_2D" else 0)
    given = x.value.astype(np.int64)
    zero = 0 if wrong.get("no_input_zero") else x.zero
    if op.name == "FULLY_CONNECTED":
        if wrong.get("weights_transposed"):
            weights = weights.reshape(weights.shape[::-1]).T
        acc = (given.reshape(-1, weights.shape[1]) - zero) @ weights.T
    else:
        acc = _sums(op, given, zero, weights, **wrong)
    channels = acc.shape[-1]
    scales = np.broadcast_to(w.scales, channels).astype(np.float64)
    real = np.float64(x.scale) * scales / np.float64(y.scale)
    if wrong.get("first_multiplier"):
        real = np.full_like(real, real[0])
    m, e = encode(real)
    e = e + wrong.get("exponent", 0)
    if wrong.get("short_multiplier"):
        m = m >> 23 << 23
        real = np.ldexp(m.astype(np.float64), (e - 31).astype(np.int32))
    given_bias = np.zeros(channels, np.int64) if bias is None else np.asarray(bias.value, np.int64)
    if wrong.get("no_bias"):
        given_bias = given_bias * 0
    if wrong.get("bias_twice"):
        given_bias = 2 * given_bias
    rounding: Rounding = wrong.get("rounding") or two_step
    if op.name == "FULLY_CONNECTED" and "rounding" not in wrong:
        # Fully-connected layers multiply by the real number itself.
        def rounding(acc: Array, m: Array, e: Array) -> Array:
            return nearest_away(acc * real).astype(np.int64)

    if wrong.get("bias_behind"):
        value = rounding(acc, m, e) + rounding(given_bias, m, e)
    else:
        # Registers have 32 bits.
        acc = (acc + given_bias + (1 << 31)) % (1 << 32) - (1 << 31)
        if wrong.get("register_wraps"):
            acc = (acc + 32768) % 65536 - 32768
        if wrong.get("register_saturates"):
            acc = np.clip(acc, -32768, 32767)
        value = rounding(acc, m, e)
    return store(op, value, **wrong).reshape(y.shape)


def _sums(op: Operation, given: Array, zero: int, weights: Array, **wrong: Any) -> Array:
    depthwise = op.name == "DEPTHWISE_CONV_2D"
    dilation = (1, 1) if wrong.get("no_dilation") else (op.options.dilationHFactor, op.options.dilationWFactor)
    taps = weights.shape[1:3]
    stride, pads, size = geometry(op, taps, (op.options.dilationHFactor, op.options.dilationWFactor), **wrong)
    outside = wrong["pad_code"] if "pad_code" in wrong else op.x.zero if not wrong.get("no_input_zero") else zero
    wide = np.pad(given, ((0, 0), pads[:2], pads[2:], (0, 0)), constant_values=outside) - zero
    channels = given.shape[3]
    acc = np.zeros((given.shape[0], *size, weights.shape[3] if depthwise else weights.shape[0]), np.int64)
    for ky in range(taps[0]):
        for kx in range(taps[1]):
            top, left = ky * dilation[0], kx * dilation[1]
            part = wide[:, top : top + (size[0] - 1) * stride[0] + 1 : stride[0]]
            part = part[:, :, left : left + (size[1] - 1) * stride[1] + 1 : stride[1]]
            if depthwise:
                acc += np.repeat(part, weights.shape[3] // channels, 3) * weights[0, ky, kx]
            else:
                # Filters in groups read their own channels alone.
                inside = weights.shape[3]
                per_group = weights.shape[0] * inside // channels
                for group in range(channels // inside):
                    rows = slice(group * per_group, (group + 1) * per_group)
                    own = part[..., group * inside : (group + 1) * inside]
                    acc[..., rows] += own @ weights[rows, ky, kx].T
    return acc


def pool(op: Operation, **wrong: Any) -> Array:
    """AVERAGE_POOL_2D (ties away from zero) and MAX_POOL_2D."""
    assert op.x.value is not None
    taps = (op.options.filterHeight, op.options.filterWidth)
    stride, pads, size = geometry(op, taps, (1, 1), **wrong)
    given = op.x.value.astype(np.int64)
    wide = np.pad(given, ((0, 0), pads[:2], pads[2:], (0, 0)), constant_values=0)
    inside = np.pad(np.ones(given.shape, bool), ((0, 0), pads[:2], pads[2:], (0, 0)))
    low = np.iinfo(op.output.dtype).min
    total, count = np.zeros((given.shape[0], *size, given.shape[3]), np.int64), 0
    best = np.full(total.shape, low, np.int64)
    for ky in range(taps[0]):
        for kx in range(taps[1]):
            rows = slice(ky, ky + (size[0] - 1) * stride[0] + 1, stride[0])
            columns = slice(kx, kx + (size[1] - 1) * stride[1] + 1, stride[1])
            value, real = wide[:, rows, columns], inside[:, rows, columns]
            total += value
            count = count + real
            best = np.maximum(best, value if wrong.get("pads_count") else np.where(real, value, low))
    if op.name == "MAX_POOL_2D":
        return np.clip(best, *ends(op, **wrong)).astype(op.output.dtype)
    count = np.full_like(count, taps[0] * taps[1]) if wrong.get("pads_count") else count
    if wrong.get("trunc"):
        value = np.sign(total) * (np.abs(total) // count)
    elif wrong.get("floor"):
        value = total // count
    else:
        value = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return np.clip(value, *ends(op, **wrong)).astype(op.output.dtype)

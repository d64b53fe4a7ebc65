"""Elementwise operators, tables, and operators that move quantized values. Every keyword is a way to be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from .layers import store
from .reading import Operation, Tensor
from .rounding import Array, encode, nearest_away, two_step


def _quantized(tensor: Tensor | None) -> Array:
    assert tensor is not None
    assert tensor.value is not None
    return tensor.value


def add(op: Operation, **wrong: Any) -> Array:
    """ADD and SUB: inputs shifted left by 20, rescaled to twice the larger scale, summed, rescaled."""
    one, two = op.x, op.get(1)
    assert two is not None
    scales = [np.float64(one.scale), np.float64(two.scale)]
    if wrong.get("scales_swapped"):
        scales.reverse()
    unit = 2 * max(scales)
    rounding = wrong.get("rounding", two_step)
    parts = []
    exponents = wrong.get("exponents", (0, 0, 0))
    for k, (tensor, ignored) in enumerate(((one, False), (two, wrong.get("no_second_zero")))):
        zero = 0 if ignored else tensor.zero
        m, e = encode(scales[k] / unit)
        parts.append(rounding((_quantized(tensor).astype(np.int64) - zero) << 20, m, e + exponents[k]))
    minus = (op.name == "SUB") != bool(wrong.get("other_sign"))
    total = parts[0] - parts[1] if minus else parts[0] + parts[1]
    if wrong.get("operands_swapped"):
        total = -total if minus else total
    m, e = encode(unit / np.float64(np.float32(2**20) * op.output.scale))
    return store(op, rounding(total, m, e + exponents[2]), **wrong)


def mul(op: Operation, **wrong: Any) -> Array:
    """(a - za)(b - zb) rescaled; the multiplier is formed in binary32."""
    one, two = op.x, op.get(1)
    assert two is not None
    zeros = (0, two.zero) if wrong.get("no_input_zero") else (one.zero, two.zero)
    acc = (_quantized(one).astype(np.int64) - zeros[0]) * (_quantized(two).astype(np.int64) - zeros[1])
    m, e = encode(np.float64(np.float32(one.scale * two.scale) / op.output.scale))
    return store(op, wrong.get("rounding", two_step)(acc, m, e), **wrong)


def logistic(op: Operation, **wrong: Any) -> Array:
    """LOGISTIC by a table of 256 quantized values, in binary32."""
    x, y = op.x, op.output
    quantized = np.arange(-128, 128)
    real = x.scale * (quantized - (0 if wrong.get("no_input_zero") else x.zero)).astype(np.float32)
    powers = np.exp(-real.astype(np.float64)).astype(np.float32)
    scaled = np.float32(1) / (np.float32(1) + powers) * (np.float32(1) / y.scale)
    rounded = np.floor(scaled) if wrong.get("floor") else nearest_away(scaled)
    found = np.clip(rounded.astype(np.int64) + y.zero, -128, 127).astype(np.int8)
    if wrong.get("shifted"):
        found = np.roll(found, 1)
    if wrong.get("unsigned_index"):
        return found[_quantized(x).view(np.uint8)]
    return np.asarray(found[_quantized(x).astype(np.int64) + 128])


def concatenate(op: Operation, **wrong: Any) -> Array:
    """CONCATENATION of quantized values of one scale."""
    parts = [_quantized(tensor) for tensor in op.inputs]
    axis = op.options.axis
    if wrong.get("reversed"):
        parts = parts[::-1]
    found = np.concatenate(parts, axis)
    return found


def pad(op: Operation, **wrong: Any) -> Array:
    """PAD with the zero point, PADV2 with a value."""
    amounts = _quantized(op.get(1)).reshape(-1, 2).tolist()
    value = op.x.zero
    if op.get(2) is not None:
        value = int(_quantized(op.get(2)).reshape(-1)[0])
    if wrong.get("zero_code"):
        value = 0
    if wrong.get("sides_swapped"):
        amounts = [pair[::-1] for pair in amounts]
    return np.pad(_quantized(op.x), [tuple(pair) for pair in amounts], constant_values=value)


def transpose(op: Operation, **wrong: Any) -> Array:
    """TRANSPOSE."""
    order = [int(axis) for axis in _quantized(op.get(1))]
    if wrong.get("inverse"):
        order = list(np.argsort(order))
    return np.ascontiguousarray(_quantized(op.x).transpose(order)).reshape(op.output.shape)


def extreme(op: Operation, **wrong: Any) -> Array:
    """MAXIMUM and MINIMUM of quantized values."""
    one, two = _quantized(op.x), _quantized(op.get(1))
    largest = (op.name == "MAXIMUM") != bool(wrong.get("other"))
    if wrong.get("unsigned"):
        flipped = [(v.view(np.uint8)) for v in (one, two)]
        return (np.maximum if largest else np.minimum)(*flipped).view(np.int8)
    return np.asarray((np.maximum if largest else np.minimum)(one, two))


def arg_max(op: Operation, **wrong: Any) -> Array:
    """ARG_MAX: the first of equal quantized values."""
    x, axis = _quantized(op.x), int(_quantized(op.get(1)).reshape(-1)[0])
    axis %= x.ndim
    if wrong.get("smallest"):
        found = np.argmin(x, axis)
    elif wrong.get("last"):
        found = x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis)
    else:
        found = np.argmax(x, axis)
    return found.astype(op.output.dtype).reshape(op.output.shape)


def resize_bilinear(op: Operation, **wrong: Any) -> Array:
    """RESIZE_BILINEAR: positions and weights in units of 2^-10, ties away from zero."""
    x = _quantized(op.x).astype(np.int64)
    lower, upper, part = [], [], []
    for axis in (1, 2):
        size, out = x.shape[axis], op.output.shape[axis]
        step = (1024 * size + out // 2) // out
        if op.options.alignCorners and out > 1 and not wrong.get("no_corners"):
            step = (1024 * (size - 1) + (out - 1) // 2) // (out - 1)
        at = np.arange(out) * step
        if op.options.halfPixelCenters and not wrong.get("no_half"):
            at = at + step // 2 - 512
        whole = np.trunc(at / 1024).astype(np.int64)
        lower.append(np.maximum(whole, 0))
        upper.append(np.minimum(np.trunc((at + 1023) / 1024).astype(np.int64), size - 1))
        part.append(at - 1024 * lower[-1])
    rows, columns = part[0][:, None, None], part[1][None, :, None]
    total = np.zeros(op.output.shape, np.int64)
    for ys, down in ((lower[0], 1024 - rows), (upper[0], rows)):
        for zs, across in ((lower[1], 1024 - columns), (upper[1], columns)):
            total += x[:, ys][:, :, zs] * down * across
    half = 0 if wrong.get("trunc") else 1 << 19
    return (np.sign(total) * ((np.abs(total) + half) >> 20)).astype(op.output.dtype)


COMPARED = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}


def compare(op: Operation, **wrong: Any) -> Array:
    """Comparisons: quantized values of both sides shifted left by 8 and rescaled to the larger scale."""
    one, two = op.x, op.get(1)
    assert two is not None
    sides = []
    for tensor in (one, two):
        m, e = encode(np.float64(tensor.scale))
        zero = 0 if wrong.get("no_zero") else tensor.zero
        sides.append(two_step((_quantized(tensor).astype(np.int64) - zero) << 8, m, e))
    names = {"LESS": "LESS_EQUAL", "LESS_EQUAL": "LESS", "GREATER": "GREATER_EQUAL", "GREATER_EQUAL": "GREATER"}
    name = names.get(op.name, op.name) if wrong.get("or_equal") else op.name
    return np.asarray(COMPARED[name](*sides))

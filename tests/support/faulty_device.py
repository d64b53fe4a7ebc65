"""A device in plain NumPy that computes layers as the specification says, or with one fault or several.

It knows nothing of bittrue: loops and formulas are written down anew, so that a fault found in its results was
recognised by what it does and not by shared code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Layer:
    """A convolution, depthwise convolution or fully-connected layer of 8-bit values.

    Attributes:
        kind: ``"conv"``, ``"depthwise"`` or ``"dense"``.
        weights: [O, H, W, I], [1, H, W, C], [O, K].
        pads: top, bottom, left, right.
        real: rescales by a binary32 product, as runtimes do whose scales are operands.
        weight_zero: zero point of the weights.
        factors: the real multipliers, of the three scales; None: those of .tflite files, or of `real`.
        usual: how the runtime rounds; None: as `real` and `kind` say.
        dtype: of what is stored.
        bits: of multipliers; 53 where the runtime multiplies by binary64 numbers.
    """

    kind: str
    weights: Array
    bias: Array
    in_scale: float
    in_zero: int
    weight_scales: Array
    out_scale: float
    out_zero: int
    activation: str = "none"
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    out_size: tuple[int, int] = (1, 1)
    real: bool = False
    weight_zero: int = 0
    factors: Any = None
    usual: Any = None
    dtype: str = "int8"
    bits: int = 31


def encode(real: float, bits: int = 31) -> tuple[int, int]:
    """Multiplier of `bits` bits and exponent: real = m * 2^(e - 31)."""
    fraction, exponent = np.frexp(np.float64(real))
    m = int(fraction * 2**bits + (0.5 if bits < 53 else 0))
    if m == 1 << bits:
        m, exponent = m >> 1, exponent + 1
    return m, int(exponent) + 31 - bits


def two_step(acc: int, m: int, e: int) -> int:
    """Doubling high product to nearest, ties up; then the power of two, ties away from zero."""
    high = (acc * 2 ** max(e, 0) * m + (1 << 30)) >> 31
    right = max(-e, 0)
    half = (1 << right) >> 1
    return (abs(high) + half >> right) * (1 if high >= 0 else -1) if right else high


def one_step(acc: int, m: int, e: int) -> int:
    """To nearest, ties up, in one step."""
    right = 31 - e
    return (acc * m + (1 << (right - 1))) >> right


def one_step_away(acc: int, m: int, e: int) -> int:
    """To nearest, ties away from zero, in one step."""
    right = 31 - e
    return (abs(acc) * m + (1 << (right - 1)) >> right) * (1 if acc >= 0 else -1)


def floored(acc: int, m: int, e: int) -> int:
    """Rounded down; a binary64 product where multipliers are such numbers."""
    if m >> 31:
        return int(np.floor(float(acc) * np.ldexp(float(m), e - 31)))
    return (acc * m) >> (31 - e)


def truncated(acc: int, m: int, e: int) -> int:
    """Rounded toward zero; a binary64 product where multipliers are such numbers."""
    if m >> 31:
        return int(float(acc) * np.ldexp(float(m), e - 31))
    return (abs(acc) * m >> (31 - e)) * (1 if acc >= 0 else -1)


def _to_nearest(goes_up: Any) -> Any:
    """The product rounded once; `goes_up(acc, whole)` says which ties go up."""

    def rounding(acc: int, m: int, e: int) -> int:
        right = 31 - e
        whole, rest = acc * m >> right, acc * m & ((1 << right) - 1)
        half = (1 << right) >> 1
        return whole + (rest > half or (rest == half and goes_up(acc, whole)))

    return rounding


ties_even = _to_nearest(lambda acc, whole: whole % 2 != 0)
ties_down = _to_nearest(lambda acc, whole: False)
ties_toward_zero = _to_nearest(lambda acc, whole: acc < 0)


def real_even(acc: int, m: int, e: int) -> int:
    """Binary32 product, ties to even."""
    return int(np.rint(np.float32(acc) * np.float32(np.ldexp(float(m), e - 31))))


def each(function: Any, acc: Array, ms: list[tuple[int, int]]) -> Array:
    """`function` on every accumulator, the last axis being channels."""
    flat = acc.reshape(-1, acc.shape[-1])
    out = [[function(int(v), *ms[c % len(ms)]) for c, v in enumerate(row)] for row in flat]
    return np.array(out, np.int64).reshape(acc.shape)


def binary64_away(acc: int, m: int, e: int) -> int:
    """Binary64 product, ties away from zero."""
    value = float(acc) * float(np.ldexp(float(m), e - 31))
    whole = int(value)
    return whole + (1 if value > 0 else -1) * (abs(value - whole) >= 0.5)


def multipliers(layer: Layer) -> list[tuple[int, int]]:
    """Per channel."""
    bits = layer.bits
    if layer.factors is not None:
        return [encode(float(f), bits) for f in layer.factors(layer.in_scale, layer.weight_scales, layer.out_scale)]
    scale = np.float32(layer.in_scale)
    if layer.real:
        factors = scale * np.asarray(layer.weight_scales, np.float32) / np.float32(layer.out_scale)
        return [encode(float(factor), bits) for factor in factors]
    return [
        encode(float(np.float64(scale) * np.float64(np.float32(w)) / np.float64(np.float32(layer.out_scale))), bits)
        for w in layer.weight_scales
    ]


def usual_rounding(layer: Layer) -> Any:
    """How the layer's runtime rounds."""
    if layer.usual is not None:
        return layer.usual
    if layer.real:
        return real_even
    return one_step_away if layer.kind == "dense" else two_step


def sums(layer: Layer, x: Array, pad_with: int | None = None, keep: Any = None) -> Array:
    """Accumulators without bias; padded positions hold `pad_with`, the zero point if None."""
    zero, weights = layer.in_zero, layer.weights.astype(np.int64) - layer.weight_zero
    if layer.kind == "dense":
        return (x.reshape(-1, weights.shape[1]).astype(np.int64) - zero) @ weights.T
    n, height, width, channels = x.shape
    depthwise = layer.kind == "depthwise"
    _, taps_h, taps_w, last = weights.shape
    filters = last if depthwise else weights.shape[0]
    out = np.zeros((n, *layer.out_size, filters), np.int64)
    outside = 0 if pad_with is None else pad_with - zero
    for oy in range(layer.out_size[0]):
        for ox in range(layer.out_size[1]):
            for ky in range(taps_h):
                for kx in range(taps_w):
                    y = oy * layer.stride[0] - layer.pads[0] + ky * layer.dilation[0]
                    z = ox * layer.stride[1] - layer.pads[2] + kx * layer.dilation[1]
                    if 0 <= y < height and 0 <= z < width:
                        pixel = x[:, y, z, :].astype(np.int64) - zero
                    else:
                        pixel = np.full((n, channels), outside, np.int64)
                    if depthwise:
                        out[:, oy, ox] += np.repeat(pixel, last // channels, 1) * weights[0, ky, kx]
                    else:
                        out[:, oy, ox] += pixel @ weights[:, ky, kx].T
                    if keep is not None:
                        out[:, oy, ox] = keep(out[:, oy, ox])
    return out


def ends(layer: Layer) -> tuple[int, int]:
    """The clamp of the fused activation."""
    kind = np.iinfo(layer.dtype)
    low, high = int(kind.min), int(kind.max)
    if layer.activation in ("relu", "relu6"):
        low = max(low, layer.out_zero)
    if layer.activation == "relu6":
        high = min(high, layer.out_zero + int(np.floor(6 / np.float32(layer.out_scale) + 0.5)))
    return low, high


def run(
    layer: Layer,
    x: Array,
    rounding: Any = None,
    pad_with: int | None = None,
    bits: int = 31,
    keep: Any = None,
    register: Any = None,
    finish: Any = None,
    scaled: Any = None,
) -> Array:
    """The layer's quantized values; every argument is a way to be wrong.

    Args:
        rounding: of acc * multiplier; None: two steps, or ties away in one for fully-connected layers.
        pad_with: quantized value of padded positions.
        bits: of multipliers.
        keep: applied to every partial sum of a tap.
        register: applied to the accumulator.
        finish: stores what is rescaled, given the layer.
        scaled: changes the list of multipliers.
    """
    # Registers have 32 bits.
    acc = (sums(layer, x, pad_with, keep) + layer.bias + (1 << 31)) % (1 << 32) - (1 << 31)
    if register is not None:
        acc = register(acc)
    ms = multipliers(layer)
    if bits < 31:
        ms = [(m >> (31 - bits) << (31 - bits), e) for m, e in ms]
    if scaled is not None:
        ms = scaled(ms)
    value = each(rounding or usual_rounding(layer), acc, ms)
    if finish is not None:
        return np.asarray(finish(layer, value)).astype(layer.dtype)
    low, high = ends(layer)
    return np.clip(value + layer.out_zero, low, high).astype(layer.dtype)


def add(
    a: Array,
    b: Array,
    scales: tuple[float, float, float],
    zeros: tuple[int, int, int],
    sign: int = 1,
    rounding: Any = two_step,
) -> Array:
    """Both inputs shifted left by 20 and rescaled to twice the larger scale, added, rescaled."""
    one, two, out = (np.float64(np.float32(s)) for s in scales)
    unit = np.float64(np.float32(2) * np.float32(max(one, two)))
    first, second = encode(one / unit), encode(two / unit)
    last = encode(unit / np.float64(np.float32(2**20) * np.float32(out)))
    left = each(rounding, (a.astype(np.int64)[..., None] - zeros[0]) << 20, [first])[..., 0]
    right = each(rounding, (b.astype(np.int64)[..., None] - zeros[1]) << 20, [second])[..., 0]
    total = each(rounding, (left + sign * right)[..., None], [last])[..., 0]
    return np.clip(total + zeros[2], -128, 127).astype(np.int8)


def mul(
    a: Array, b: Array, scales: tuple[float, float, float], zeros: tuple[int, int, int], rounding: Any = two_step
) -> Array:
    """(a - za)(b - zb) rescaled."""
    one, two, out = (np.float32(s) for s in scales)
    m = encode(float(np.float64(np.float32(np.float32(one * two) / out))))
    acc = (a.astype(np.int64) - zeros[0]) * (b.astype(np.int64) - zeros[1])
    value = each(rounding, acc[..., None], [m])[..., 0]
    return np.clip(value + zeros[2], -128, 127).astype(np.int8)


def pool(
    x: Array,
    size: int,
    stride: int,
    pads: tuple[int, int, int, int],
    out: tuple[int, int],
    mode: str,
    all_taps: bool = False,
) -> Array:
    """Average (ties away from zero) or maximum over windows."""
    n, height, width, channels = x.shape
    result = np.zeros((n, *out, channels), np.int64)
    for oy in range(out[0]):
        for ox in range(out[1]):
            ys = [y for k in range(size) if 0 <= (y := oy * stride - pads[0] + k) < height]
            zs = [z for k in range(size) if 0 <= (z := ox * stride - pads[2] + k) < width]
            taken = x[:, ys][:, :, zs].astype(np.int64).reshape(n, -1, channels)
            if mode == "max":
                result[:, oy, ox] = taken.max(1)
                continue
            count, total = (size * size if all_taps else taken.shape[1]), taken.sum(1)
            if mode == "trunc":
                result[:, oy, ox] = np.trunc(total / count).astype(np.int64)
            elif mode == "floor":
                result[:, oy, ox] = total // count
            else:
                result[:, oy, ox] = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return result.astype(x.dtype)

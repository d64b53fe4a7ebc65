"""Random cases of relay.qnn in the form of recorded ones, replayed by both executors; what is expected is worked out
element by element on Python integers and fractions, from the formulas of docs/facts/tvm_qnn.md alone.

Stems: conv, matmul, conv_transpose, leaky_relu, average_pool, quantize, dequantize.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bittrue.conformance.recorded.replay import replay
from bittrue.runtime import native_module

F32 = np.float32
BITS = {"int8": (8, True), "uint8": (8, False), "int16": (16, True), "uint16": (16, False), "int32": (32, True)}
ENDS = {name: (-(2 ** (b - 1)), 2 ** (b - 1) - 1) if s else (0, 2**b - 1) for name, (b, s) in BITS.items()}
LLVM, NEHALEM = "llvm", "llvm -mcpu=nehalem"
EXECUTORS = ("native", "reference") if native_module() is not None else ("reference",)
Random = np.random.Generator


# -- the formulas ---------------------------------------------------------------------------------------------------
def wrap(value: int, bits: int = 32) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def clipped(value: int, dtype: str) -> int:
    return min(max(value, ENDS[dtype][0]), ENDS[dtype][1])


def away(value: Fraction) -> int:
    whole = math.floor(abs(value) + Fraction(1, 2))
    return whole if value >= 0 else -whole


def times(t: int, real: float, nearest: bool, scalar: bool) -> int:
    """t by a multiplier of 31 bits, rounded once; a power of two is a shift of 32 bits where there is one scale."""
    if not real:
        return 0
    fraction, exponent = math.frexp(real)
    multiplier = math.floor(Fraction(fraction) * 2**31 + Fraction(1, 2))
    if multiplier == 2**31:
        multiplier, exponent = 2**30, exponent + 1
    if scalar and not nearest and multiplier == 2**30:
        shift = exponent - 1
        return wrap(t << shift) if shift >= 0 else wrap(t + (1 << (-shift - 1))) >> -shift
    exact = Fraction(t * multiplier) * Fraction(2) ** (exponent - 31)
    return wrap(away(exact) if nearest else math.floor(exact + Fraction(1, 2)))


class Undefined(Exception):
    """A result that 32 bits do not hold."""


def moved(
    q: int, s_in: Any, z_in: int, s_out: Any, z_out: int, how: tuple[str, str, str], dtype: str, scalar: bool = True
) -> int:
    """One requantized value; `how` is rounding, compute_dtype and target."""
    rounding, compute, target = how
    same = scalar and F32(s_in) == F32(s_out)
    real = float(F32(s_in)) / float(F32(s_out))
    if compute == "int64":
        t = wrap(wrap(q) - z_in)
        found = wrap((t if same else times(t, real, rounding == "TONEAREST", scalar)) + z_out)
    else:
        kind = F32 if compute == "float32" else np.float64
        value = kind(q) - kind(z_in)
        value = value if same else kind(real) * value
        total = value + kind(z_out)
        if rounding == "UPWARD":
            joined = value + (kind(z_out) + kind(0.5))
            found = math.floor(float(joined if target == NEHALEM else total + kind(0.5)))
        elif target == NEHALEM:
            found = away(Fraction(float(total)))
        else:
            found = math.trunc(float(total + kind(math.copysign(0.5, total))))
        if abs(found) >= 2**31:
            raise Undefined
    return found if dtype == "int32" else clipped(found, dtype)


def each(shape: tuple[int, ...], function: Callable[[tuple[int, ...]], int], dtype: str) -> np.ndarray:
    found = np.zeros(shape, object)
    for at in np.ndindex(shape):
        found[at] = function(at)
    return np.asarray(found.tolist(), dtype).reshape(shape)


# -- what is drawn --------------------------------------------------------------------------------------------------
def codes(random: Random, dtype: str, shape: tuple[int, ...], small: int = 0) -> np.ndarray:
    low, high = ENDS[dtype]
    if small and dtype == "int32":
        low, high = -(2**small), 2**small
    found = random.integers(low, high, shape, endpoint=True)
    return np.asarray(np.where(random.random(shape) < 0.1, random.choice([low, high, 0], shape), found), dtype)


def a_point(random: Random, dtype: str) -> np.ndarray:
    low, high = ENDS[dtype if dtype != "int32" else "int16"]
    return np.asarray(random.choice([0, low, high, random.integers(low, high + 1)]), np.int32)


def a_scale(random: Random, size: tuple[int, ...] = ()) -> np.ndarray:
    """Powers of two and small fractions, which make ties, and any others."""
    powers, parts = 2.0 ** random.integers(-7, 1, size), random.integers(1, 12, size) / 16
    kinds = (powers, parts, np.exp(random.uniform(-6, 0, size)))
    return np.asarray(kinds[int(random.integers(3))], F32)


def a_choice(random: Random) -> tuple[str, str, str]:
    rounding = str(random.choice(["UPWARD", "TONEAREST"]))
    return rounding, str(random.choice(["int64", "float32", "float64"])), str(random.choice([LLVM, NEHALEM]))


def config(how: tuple[str, str, str]) -> dict[str, Any]:
    return {"requantize_config": {"rounding": how[0], "compute_dtype": how[1]}}


Drawn = tuple[str, dict[str, Any], dict[str, Any], np.ndarray, str]


def requantize(random: Random) -> Drawn:
    how = a_choice(random)
    rank = int(random.integers(0, 6))
    shape = tuple(int(n) for n in random.integers(1, 5, rank))
    source, target = (str(random.choice(["int8", "uint8", "int16", "int32"])) for _ in "io")
    x = codes(random, source, shape, int(random.integers(6, 22)))
    axis = int(random.integers(0, rank)) if rank and random.random() < 0.5 else None
    size = () if axis is None else (shape[axis],)
    s_in, z_in = a_scale(random, size), a_point(random, source)
    # The system takes no zero point off a single number.
    z_in = z_in if rank else np.zeros_like(z_in)
    if size and random.random() < 0.3:
        z_in = np.asarray([a_point(random, source) for _ in range(size[0])], np.int32)
    s_out, z_out = a_scale(random), a_point(random, target)
    if random.random() < 0.2:
        s_in = np.full(size, s_out)
    given = -1 if axis is None or (axis == rank - 1 and random.random() < 0.5) else axis
    attributes = {"axis": given, "rounding": how[0], "compute_dtype": how[1], "out_dtype": target}
    inputs = {"data": x, "input_scale": s_in, "input_zero_point": z_in}
    inputs |= {"output_scale": s_out, "output_zero_point": z_out}

    def one(at: tuple[int, ...]) -> int:
        s, z = (p[at[axis]] if axis is not None and p.ndim else p for p in (s_in, z_in))
        return moved(int(x[at]), s, int(z), s_out, int(z_out), how, target, not s_in.ndim)

    return "qnn.requantize", attributes, inputs, each(shape, one, target), how[2]


def sums(random: Random) -> Drawn:
    how = a_choice(random)
    name = str(random.choice(["add", "subtract", "mul"]))
    dtype = str(random.choice(["int8", "uint8", "int16", "int32"]))
    rank = int(random.integers(1, 5))
    shape = tuple(int(n) for n in random.integers(1, 6, rank))
    several = random.random() < 0.4 and rank > 1
    axis = int(random.integers(0, rank)) if several else -1
    other = shape
    if not several and random.random() < 0.5:
        other = tuple(1 if random.random() < 0.4 else n for n in shape)[int(random.integers(0, rank)) :]
    size = (shape[axis],) if several else ()
    a, b = codes(random, dtype, shape, 12), codes(random, dtype, other, 12)
    s_a, s_b, s_out = a_scale(random, size), a_scale(random, size), a_scale(random)
    z_a, z_b, z_out = (a_point(random, dtype) for _ in "abo")
    if not several and random.random() < 0.2:
        s_a, z_a = s_out, z_out
    inputs = {"lhs": a, "rhs": b, "lhs_scale": s_a, "lhs_zero_point": z_a, "rhs_scale": s_b, "rhs_zero_point": z_b}
    inputs |= {"output_scale": s_out, "output_zero_point": z_out}
    wide = np.broadcast_to(b, shape)

    def one(at: tuple[int, ...]) -> int:
        scales = [s[at[axis]] if s.ndim else s for s in (s_a, s_b)]
        if name == "mul":
            both = wrap((int(a[at]) - int(z_a)) * (int(wide[at]) - int(z_b)))
            # Vectors are multiplied in binary64, numbers in binary32: rounded once to binary32 either way.
            scale = F32(float(scales[0]) * float(scales[1]))
            return moved(both, scale, 0, s_out, int(z_out), how, dtype, not several)
        sides = []
        for q, s, z in ((a[at], scales[0], z_a), (wide[at], scales[1], z_b)):
            same = not several and s == s_out and z == z_out
            sides.append(int(q) if same else moved(int(q), s, int(z), s_out, int(z_out), how, "int32", not several))
        sign = 1 if name == "add" else -1
        return clipped(wrap(sides[0] + sign * sides[1] - sign * int(z_out)), dtype)

    attributes = {"lhs_axis": axis, "rhs_axis": axis, **config(how)}
    return f"qnn.{name}", attributes, inputs, each(shape, one, dtype), how[2]


def concatenate(random: Random) -> Drawn:
    how = a_choice(random)
    dtype = str(random.choice(["int8", "uint8", "int16", "uint16", "int32"]))
    rank, count = int(random.integers(1, 5)), int(random.integers(1, 5))
    axis, shape = int(random.integers(-rank, rank)), [int(n) for n in random.integers(1, 5, rank)]
    s_out, z_out = a_scale(random), a_point(random, dtype)
    inputs: dict[str, Any] = {}
    parts, scales, points = [], [], []
    for _ in range(count):
        own = list(shape)
        own[axis] = int(random.integers(1, 5))
        parts.append(codes(random, dtype, tuple(own), 14))
        equal = random.random() < 0.2
        scales.append(s_out if equal else a_scale(random))
        points.append(z_out if equal else a_point(random, dtype))
    for name, values in (("data", parts), ("input_scale", scales), ("input_zero_point", points)):
        inputs |= {f"{name}_{k}": value for k, value in enumerate(values)}
    inputs |= {"output_scale": s_out, "output_zero_point": z_out}
    done: list[np.ndarray] = []
    for part, s, z in zip(parts, scales, points, strict=True):
        if s == s_out and z == z_out:
            done.append(part)
            continue
        codes_ = [moved(int(q), s, int(z), s_out, int(z_out), how, dtype) for q in part.reshape(-1)]
        done.append(np.asarray(codes_, dtype).reshape(part.shape))
    return "qnn.concatenate", {"axis": axis, **config(how)}, inputs, np.concatenate(done, axis), how[2]


def after(
    random: Random, total: np.ndarray, axis: int, s_in: np.ndarray, how: tuple[str, str, str], biased: bool = True
) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
    """Bias, requantization and clamp of sums, as frontends put them behind layers."""
    attributes: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    steps = []
    if biased:
        inputs["bias"] = np.asarray(random.integers(-(2**12), 2**12, total.shape[axis]), np.int32)
        attributes["bias_add_axis"] = axis
        steps.append("nn.bias_add")
        along = [-1 if k == axis else 1 for k in range(total.ndim)]
        spread, plain = np.broadcast_to(inputs["bias"].reshape(along), total.shape), total
        total = each(total.shape, lambda at: wrap(int(plain[at]) + int(spread[at])), "int32")
    target = str(random.choice(["int8", "uint8"]))
    s_out, z_out = np.asarray(F32(random.uniform(2, 30))), a_point(random, target)
    steps.append("qnn.requantize")
    inputs |= {"requantize_input_scale": s_in, "requantize_output_scale": s_out, "requantize_output_zero_point": z_out}
    attributes |= {"requantize_axis": axis, "requantize_out_dtype": target}
    attributes |= {"requantize_rounding": how[0], "requantize_compute_dtype": how[1]}

    def one(at: tuple[int, ...]) -> int:
        s = s_in[at[axis]] if s_in.ndim else s_in
        return moved(int(total[at]), s, 0, s_out, int(z_out), how, target, not s_in.ndim)

    found = each(total.shape, one, target)
    if random.random() < 0.5:
        low, high = sorted(random.integers(ENDS[target][0], ENDS[target][1], 2).tolist())
        steps.append("clip")
        attributes |= {"clip_a_min": low, "clip_a_max": high}
        found = np.clip(found, low, high).astype(target)
    return {"epilogue": steps, **attributes}, inputs, found


def s16(value: int, kept: bool) -> int:
    return wrap(value, 16) if kept else value


def convolution(random: Random) -> Drawn:
    how = (*a_choice(random)[:2], LLVM)
    source = str(random.choice(["int8", "uint8", "int8", "uint8", "int16"]))
    kind = str(random.choice(["int8", "uint8"]))
    groups = int(random.choice([1, 1, 1, 2, 3, 4]))
    depth, per = int(random.integers(1, 4)), int(random.integers(1, 4))
    taps, stride = random.integers(1, 4, 2), random.integers(1, 3, 2)
    reach = random.integers(1, 3, 2) if random.random() < 0.3 else np.array([1, 1])
    pads = [int(p) for p in random.integers(0, 2, 4)]
    inside, out = depth * groups, per * groups
    size = tuple(int((t - 1) * r + n) for t, r, n in zip(taps, reach, random.integers(1, 5, 2), strict=True))
    x = codes(random, source, (int(random.integers(1, 3)), inside, *size))
    w = codes(random, kind, (out, depth, *(int(t) for t in taps)))
    several = random.random() < 0.4
    z_x = a_point(random, source)
    z_w = np.asarray(random.integers(-9, 9, out), np.int32) if random.random() < 0.3 else a_point(random, kind)
    last = random.random() < 0.5
    depthwise = groups > 1 and depth == 1
    layout = "OIHW" if not last else "HWOI" if depthwise else "HWIO"
    kernel = w.reshape(inside, per, *w.shape[2:]) if depthwise and random.random() < 0.7 else w
    if kernel is not w and kernel.shape[1] > 1 and z_w.ndim:
        kernel = w
    result = "int32" if random.random() < 0.9 else "int16"
    padded = {(h, v) for h in range(-pads[0], size[0] + pads[2]) for v in range(-pads[1], size[1] + pads[3])}
    count = [
        (size[k] + pads[k] + pads[k + 2] - int((taps[k] - 1) * reach[k]) - 1) // int(stride[k]) + 1 for k in (0, 1)
    ]

    def one(at: tuple[int, ...]) -> int:
        n, o, i, j = at
        total = 0
        for c, u, v in np.ndindex(depth, *(int(t) for t in taps)):
            h, k = i * int(stride[0]) - pads[0] + u * int(reach[0]), j * int(stride[1]) - pads[1] + v * int(reach[1])
            assert (h, k) in padded
            if not (0 <= h < size[0] and 0 <= k < size[1]):
                continue
            left = int(x[n, o // per * depth + c, h, k]) - int(z_x)
            total += s16(left, True) * s16(int(w[o, c, u, v]) - int(z_w[o] if z_w.ndim else z_w), True)
        return wrap(total, 32 if result == "int32" else 16)

    total = each((x.shape[0], out, *count), one, result)
    inputs = {
        "data": x.transpose(0, 2, 3, 1) if last else x,
        "kernel": kernel.transpose(["OIHW".index(letter) for letter in layout]),
        "input_zero_point": z_x,
        "kernel_zero_point": z_w,
        "input_scale": a_scale(random),
        "kernel_scale": a_scale(random, (out,) if several else ()),
    }
    attributes: dict[str, Any] = {
        "kernel_size": [int(t) for t in taps],
        "channels": out,
        "strides": stride.tolist(),
        "padding": pads,
        "dilation": reach.tolist(),
        "groups": groups,
        "data_layout": "NHWC" if last else "NCHW",
        "kernel_layout": layout,
        "out_dtype": result,
    }
    expected = total.transpose(0, 2, 3, 1) if last else total
    if result == "int32" and random.random() < 0.8:
        scale = np.asarray(inputs["input_scale"] * inputs["kernel_scale"], F32)
        more, operands, expected = after(random, expected, 3 if last else 1, scale, how, random.random() < 0.9)
        attributes, inputs = attributes | more, inputs | operands
    return "qnn.conv2d", attributes, inputs, expected, LLVM


def transposed(random: Random) -> Drawn:
    how = (*a_choice(random)[:2], LLVM)
    source, kind = str(random.choice(["int8", "uint8", "int16", "uint16"])), str(random.choice(["int8", "uint8"]))
    groups, per, depth = int(random.choice([1, 1, 2])), int(random.integers(1, 4)), int(random.integers(1, 4))
    inside, out = groups * depth, groups * per
    taps, stride = [int(t) for t in random.integers(1, 4, 2)], [int(s) for s in random.integers(1, 4, 2)]
    more = [int(random.integers(0, s)) for s in stride]
    x = codes(random, source, (int(random.integers(1, 3)), inside, *(int(n) for n in random.integers(1, 5, 2))))
    w = codes(random, kind, (inside, per, *taps))
    z_x, z_w = a_point(random, source), a_point(random, kind)
    full = [(x.shape[2 + k] - 1) * stride[k] + taps[k] + more[k] for k in (0, 1)]
    pads = [int(random.integers(0, max(1, min(taps[k % 2], full[k % 2] // 2)))) for k in range(4)]
    last = random.random() < 0.4
    layout = str(random.choice(["IOHW", "OIHW", "HWIO", "HWOI"]))
    total = np.zeros((x.shape[0], out, *full), object)
    for n, c, i, j in np.ndindex(*x.shape):
        for o, u, v in np.ndindex(per, *taps):
            both = s16(int(x[n, c, i, j]) - int(z_x), True) * s16(int(w[c, o, u, v]) - int(z_w), True)
            total[n, c // depth * per + o, i * stride[0] + u, j * stride[1] + v] += both
    kept = total[:, :, pads[0] : full[0] - pads[2], pads[1] : full[1] - pads[3]]
    expected = each(kept.shape, lambda at: wrap(int(kept[at])), "int32")
    expected = expected.transpose(0, 2, 3, 1) if last else expected
    inputs = {
        "data": x.transpose(0, 2, 3, 1) if last else x,
        "weight": w.transpose(["IOHW".index(letter) for letter in layout]),
        "input_zero_point": z_x,
        "kernel_zero_point": z_w,
        "input_scale": a_scale(random),
        "kernel_scale": a_scale(random),
    }
    attributes: dict[str, Any] = {
        "strides": stride,
        "padding": pads,
        "output_padding": more,
        "groups": groups,
        "channels": out,
        "kernel_size": taps,
        "data_layout": "NHWC" if last else "NCHW",
        "kernel_layout": layout,
        "out_dtype": "int32",
    }
    if random.random() < 0.6:
        scale = np.asarray(inputs["input_scale"] * inputs["kernel_scale"], F32)
        more_attributes, operands, expected = after(random, expected, 3 if last else 1, scale, how)
        attributes, inputs = attributes | more_attributes, inputs | operands
    return "qnn.conv2d_transpose", attributes, inputs, expected, LLVM


def products(random: Random) -> Drawn:
    how = (*a_choice(random)[:2], LLVM)
    rows, terms, columns = (int(n) for n in random.integers(1, 20, 3))
    kind = str(random.choice(["int8", "uint8"]))
    if random.random() < 0.5:
        source = str(random.choice(["int8", "uint8", "int16", "uint16"]))
        x, w = codes(random, source, (rows, terms)), codes(random, kind, (columns, terms))
        several = random.random() < 0.4
        z_x = a_point(random, source)
        z_w = np.asarray(random.integers(-9, 9, columns), np.int32) if random.random() < 0.3 else a_point(random, kind)

        def one(at: tuple[int, ...]) -> int:
            right = int(z_w[at[1]] if z_w.ndim else z_w)
            pairs = zip(x[at[0]].tolist(), w[at[1]].tolist(), strict=True)
            return wrap(sum(s16(p - int(z_x), True) * s16(q - right, True) for p, q in pairs))

        expected = each((rows, columns), one, "int32")
        inputs = {"data": x, "weight": w, "input_zero_point": z_x, "kernel_zero_point": z_w}
        inputs |= {"input_scale": a_scale(random), "kernel_scale": a_scale(random, (columns,) if several else ())}
        attributes: dict[str, Any] = {"units": columns, "out_dtype": "int32"}
        scale, name, axis = np.asarray(inputs["input_scale"] * inputs["kernel_scale"], F32), "dense", 1
    else:
        batch = int(random.integers(1, 5))
        shared = random.random() < 0.3
        x = codes(random, kind, (batch, rows, terms))
        y = codes(random, kind, (1 if shared else batch, columns, terms))
        z_x, z_y = a_point(random, kind), a_point(random, kind)

        def single(at: tuple[int, ...]) -> int:
            pairs = zip(x[at[0], at[1]].tolist(), y[0 if shared else at[0], at[2]].tolist(), strict=True)
            return wrap(sum((p - int(z_x)) * (q - int(z_y)) for p, q in pairs))

        expected = each((batch, rows, columns), single, "int32")
        inputs = {"x": x, "y": y, "x_zero_point": z_x, "y_zero_point": z_y}
        inputs |= {"x_scale": a_scale(random), "y_scale": a_scale(random)}
        attributes = {"out_dtype": "int32"}
        scale, name, axis = np.asarray(inputs["x_scale"] * inputs["y_scale"], F32), "batch_matmul", 2
    if random.random() < 0.8:
        more, operands, expected = after(random, expected, axis, scale, how, name == "dense")
        attributes, inputs = attributes | more, inputs | operands
    return f"qnn.{name}", attributes, inputs, expected, LLVM


def averages(random: Random) -> Drawn:
    how = a_choice(random)
    dtype, layout = str(random.choice(["int8", "uint8"])), str(random.choice(["NHWC", "NCHW"]))
    size = tuple(int(n) for n in random.integers(2, 8, 2))
    whole = random.random() < 0.3
    taps = list(size) if whole else [int(random.integers(1, min(4, n + 1))) for n in size]
    stride = [1, 1] if whole else [int(s) for s in random.integers(1, 3, 2)]
    pads = [0] * 4 if whole else [int(random.integers(0, taps[k % 2])) for k in range(4)]
    ceil, counted = bool(random.integers(2)) and not whole, bool(random.integers(2))
    x = codes(random, dtype, (int(random.integers(1, 3)), int(random.integers(1, 5)), *size))
    s_in, z_in, s_out, z_out = a_scale(random), a_point(random, dtype), a_scale(random), a_point(random, dtype)
    if random.random() < 0.2:
        s_out, z_out = s_in, z_in
    same = s_in == s_out and z_in == z_out
    out = []
    for k in (0, 1):
        span = size[k] + pads[k] + pads[k + 2] - taps[k]
        out.append((span + (stride[k] - 1 if ceil else 0)) // stride[k] + 1)

    def one(at: tuple[int, ...]) -> int:
        n, c, i, j = at
        rows, columns = ([m * stride[k] - pads[k] + u for u in range(taps[k])] for k, m in ((0, i), (1, j)))
        read = [int(x[n, c, r, s]) for r in rows for s in columns if 0 <= r < size[0] and 0 <= s < size[1]]
        total = sum(q if same else moved(q, s_in, int(z_in), s_out, int(z_out), how, "int32") for q in read)
        inside = [sum(r < size[k] + pads[k + 2] for r in side) for k, side in ((0, rows), (1, columns))]
        count = inside[0] * inside[1] if counted else max(1, len(read))
        return clipped(math.trunc(Fraction(total, count)), dtype)

    # Windows that begin behind the padding have no elements to divide by.
    ceil = ceil and all((out[k] - 1) * stride[k] < size[k] + pads[k] for k in (0, 1))
    if not ceil:
        out = [(size[k] + pads[k] + pads[k + 2] - taps[k]) // stride[k] + 1 for k in (0, 1)]
    expected = each((x.shape[0], x.shape[1], *out), one, dtype)
    attributes = {"pool_size": taps, "strides": stride, "padding": pads, "dilation": [1, 1], "ceil_mode": ceil}
    attributes |= {"count_include_pad": counted, "layout": layout, "out_layout": "", **config(how)}
    axes = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    inputs = {"data": x.transpose(axes), "input_scale": s_in, "input_zero_point": z_in}
    inputs |= {"output_scale": s_out, "output_zero_point": z_out}
    return "qnn.avg_pool2d", attributes, inputs, expected.transpose(axes), how[2]


def leaky(random: Random) -> Drawn:
    how = a_choice(random)
    dtype = str(random.choice(["int8", "uint8"]))
    low, high = ENDS[dtype]
    x = np.arange(low, high + 1).astype(dtype)
    alpha = float(random.choice([0.1, 0.01, 0.3, 1 / 3, 0.5, 0.75, 1.5, random.uniform(0.05, 0.95)]))
    s_in, z_in, s_out, z_out = a_scale(random), a_point(random, dtype), a_scale(random), a_point(random, dtype)
    if random.random() < 0.2:
        s_out, z_out = s_in, z_in
    same = s_in == s_out and z_in == z_out

    def one(at: tuple[int, ...]) -> int:
        q = int(x[at])
        found = q if same else moved(q, s_in, int(z_in), s_out, int(z_out), how, "int32")
        if q < z_in:
            found = wrap(times(found, alpha, False, True) + times(int(z_out), 1 - alpha, False, True))
        return clipped(found, dtype)

    inputs = {"data": x, "input_scale": s_in, "input_zero_point": z_in}
    inputs |= {"output_scale": s_out, "output_zero_point": z_out}
    return "qnn.leaky_relu", {"alpha": alpha, **config(how)}, inputs, each(x.shape, one, dtype), how[2]


def reals(random: Random) -> Drawn:
    rank = int(random.integers(0, 5))
    shape = tuple(int(n) for n in random.integers(1, 5, rank))
    axis = int(random.integers(0, rank)) if rank and random.random() < 0.5 else None
    size = () if axis is None else (shape[axis],)
    dtype = str(random.choice(list(ENDS)))
    scale = a_scale(random, size)
    point = np.asarray([a_point(random, dtype) for _ in range(size[0])], np.int32) if size else a_point(random, dtype)
    spread = scale if axis is None else scale.reshape([-1 if k == axis else 1 for k in range(rank)])

    def own(values: np.ndarray, at: tuple[int, ...]) -> Any:
        return values[at[axis]] if axis is not None else values[()]

    attributes: dict[str, Any] = {"axis": -1 if axis is None else axis}
    if random.random() < 0.5:
        x = np.asarray((random.integers(-400, 400, shape) + random.choice([0, 0.5, 0.49999997])) * spread, F32)

        def one(at: tuple[int, ...]) -> int:
            steps = x[at] / own(scale, at) if size else x[at] * F32(1 / float(scale))
            value = F32(away(Fraction(float(steps)))) + F32(own(point, at))
            return clipped(int(value), dtype)

        inputs = {"data": x, "output_scale": scale, "output_zero_point": point}
        return "qnn.quantize", {**attributes, "out_dtype": dtype}, inputs, each(shape, one, dtype), LLVM
    q, target = codes(random, dtype, shape, 24), str(random.choice(["float32", "float16"]))
    found = np.zeros(shape, F32)
    for at in np.ndindex(shape):
        found[at] = F32(wrap(int(q[at]) - int(own(point, at)))) * own(scale, at)
    if target == "float16":
        found = np.clip(found, -65504, 65504).astype(np.float16)
    inputs = {"data": q, "input_scale": scale, "input_zero_point": point}
    return "qnn.dequantize", {**attributes, "out_dtype": target}, inputs, np.asarray(found), LLVM


FAMILIES = (requantize, sums, concatenate, convolution, transposed, products, averages, leaky, reals)


def write(folder: Path, drawn: list[Drawn]) -> None:
    """The form of recorded cases."""
    arrays: dict[str, np.ndarray] = {}
    cases = []
    for number, (operator, attributes, inputs, expected, target) in enumerate(drawn):
        entry: dict[str, Any] = {"id": f"{number:04d}", "file": "cases.npz", "operator": operator, "target": target}
        entry |= {"attributes": attributes, "inputs": [], "outputs": []}
        for role, tensors in (("inputs", inputs), ("outputs", {"output": expected})):
            for name, value in tensors.items():
                key = f"{number}/{role}/{name}"
                arrays[key] = np.ascontiguousarray(value).reshape(np.shape(value))
                entry[role].append({"name": name, "key": key, "dtype": str(value.dtype), "shape": list(value.shape)})
        cases.append(entry)
    np.savez(folder / "cases.npz", **arrays)  # type: ignore[arg-type]
    manifest = {"format": "bittrue-vectors-1", "framework": "tvm-qnn", "version": "formulas", "cases": cases}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def drawn(family: Callable[[Random], Drawn], seeds: list[int]) -> Drawn:
    """The first case of these seeds that is defined."""
    rng = np.random.default_rng(seeds)
    while True:
        try:
            return family(rng)
        except Undefined:
            continue


@pytest.mark.in_turns(3)
@pytest.mark.parametrize(("family", "executor"), [*product(FAMILIES, EXECUTORS)])
def test_random_cases(
    family: Callable[[Random], Drawn], executor: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seeds = [FAMILIES.index(family), int(request.config.option.seed)]
    many = 2000 if request.config.option.deep else 20
    write(tmp_path, [drawn(family, [*seeds, number]) for number in range(many)])
    found = replay(tmp_path, executor=executor)
    assert not [one for one in found.outcomes if not one.equal]
    assert len(found.outcomes) == many

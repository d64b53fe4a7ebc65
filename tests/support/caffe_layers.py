"""Networks of one layer, as text, and what SNPS Caffe makes of them in plain Python: integers, and floats rounded by
the machine's own conversion to binary32.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bittrue.graph import ModelFile
from bittrue.importers import read_model
from bittrue.numerics import find
from bittrue.plan import make_plan
from bittrue.runtime import NativeExecutor, ReferenceExecutor, native_module

LIMITS = {"None": None, "Signed": (-2048, 2047), "Unsigned": (0, 4095), "Signed_8bit": (-128, 127)}
LIMITS["Unsigned_8bit"] = (0, 255)
EIGHT = {"Signed_8bit": "s8", "Unsigned_8bit": "u8"}


# ------------------------------------------------------------------------------------------------------- networks
def field(name: str, value: Any) -> str:
    if isinstance(value, list):
        return " ".join(field(name, one) for one in value)
    if isinstance(value, str):
        return f'{name}: "{value}"' if name == "data_format" else f"{name}: {value}"
    return f"{name}: {str(value).lower() if isinstance(value, bool) else repr(value)}"


def layer(kind: str, parameter: str, bottoms: Sequence[str], fields: dict[str, Any], top: str = "y") -> str:
    inside = " ".join(field(name, value) for name, value in fields.items())
    reads = " ".join(f'bottom: "{name}"' for name in bottoms)
    return f'layer {{ name: "{kind} {top}" type: "{kind}" {reads} top: "{top}" {parameter} {{ {inside} }} }}'


def network(
    kind: str, parameter: str, shapes: Sequence[Sequence[int]], fields: dict[str, Any], kinds: Sequence[str] = ()
) -> ModelFile:
    """Inputs x0, x1, ... of these shapes; `kinds`: f32, or the 8-bit type that a layer before limits them to."""
    text, bottoms = [], []
    for position, shape in enumerate(shapes):
        name = f"x{position}"
        dims = " ".join(f"dim: {size}" for size in shape)
        text.append(f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}')
        wanted = kinds[position] if kinds else "f32"
        if wanted != "f32":
            saturate = next(limit for limit, dtype in EIGHT.items() if dtype == wanted)
            text.append(layer("Power", "power_param", [name], {"saturate": saturate}, f"{name}_8"))
            name = f"{name}_8"
        bottoms.append(name)
    text.append(layer(kind, parameter, bottoms, fields))
    return read_model("\n".join(text).encode())


# Operators that have no kernel for some of these layers: blobs of real numbers, channels first.
ON_REFERENCE = frozenset("average_pool conv conv_transpose div max_pool resize_linear".split())


def run(model: ModelFile, feeds: Sequence[np.ndarray], numerics: str = "snps_caffe") -> np.ndarray:
    """The only output, the same on both executors."""
    graph = model.graphs[0]
    plan = make_plan(graph, find(numerics), graphs=model.graphs)
    given = dict(zip(graph.inputs, (feed.astype(np.float32) for feed in feeds), strict=True))
    found = ReferenceExecutor(plan).run(given)[0]
    if native_module() is not None:
        native = NativeExecutor(plan)
        assert {plan.steps[position].operator for position in native.missing} <= ON_REFERENCE, native.missing
        other = native.run(given)[0]
        assert other.dtype == found.dtype
        assert other.tobytes() == found.tobytes()
    return found


def numbers(seed: int, kind: str, shape: Sequence[int]) -> np.ndarray:
    """Integers of a type; of f32, some that 8 bits do not hold."""
    low, high = {"s8": (-128, 127), "u8": (0, 255), "f32": (-400, 400)}[kind]
    return np.random.default_rng(seed).integers(low, high + 1, tuple(shape)).astype(np.float32)


# ------------------------------------------------------------------------------------------------------- arithmetic
def f32(x: float) -> float:
    """The nearest binary32 number; the machine's conversion. Sums and products of two of them are exact in binary64,
    or rounded so that this second rounding does no harm.
    """
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def away(x: float) -> float:
    if not math.isfinite(x):
        return x
    whole = math.floor(abs(x))
    return math.copysign(whole + (abs(x) - whole >= 0.5), x)


def even(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


def real(x: float, scale: float, zero_point: int) -> float:
    return f32(f32(x - zero_point) * f32(scale))


def level(x: float, scale: float, zero_point: int, nearest: Callable[[float], float] = away) -> float:
    steps = x if scale == 1 else nearest(f32(x / f32(scale)))
    return f32(steps + zero_point)


def limited(x: float, saturate: str) -> float:
    limits = LIMITS[saturate]
    return x if limits is None else min(max(x, limits[0]), limits[1])


def stops_at(*real_multipliers: float) -> bool:
    """Whether one of them has a significand that is rounded up to 2^31, or is 0: the system's process ends."""
    return any(real == 0 or away(math.frexp(real)[0] * 2.0**31) == 2.0**31 for real in real_multipliers)


def encode(real_multiplier: float) -> tuple[int, int]:
    assert not stops_at(real_multiplier)
    fraction, exponent = math.frexp(real_multiplier)
    return (0, 0) if exponent < -31 else (int(away(fraction * 2.0**31)), exponent)


def two_step(x: int, real_multiplier: float) -> int:
    """The shifts of the system's sources, in integers without limits."""
    multiplier, exponent = encode(real_multiplier)
    product = (x << max(exponent, 0)) * multiplier
    nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
    high = abs(product + nudge) >> 31
    high = high if product + nudge >= 0 else -high
    right = max(-exponent, 0)
    mask = (1 << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


def multipliers_of_shifts(scales: Sequence[float], output_scale: float) -> list[float]:
    unit = max(scales) * 2.0
    return [*(s / unit for s in scales), unit / ((1 << 20) * output_scale)]


def sum_by_shifts(a: int, b: int, scales: Sequence[float], points: Sequence[int], output: tuple[float, int]) -> int:
    *each, last = multipliers_of_shifts(scales, output[0])
    parts = [two_step((q - z) * (1 << 20), real) for q, real, z in zip((a, b), each, points, strict=True)]
    return two_step(sum(parts), last) + output[1]


def sum_of_21_bits(a: int, b: int, scales: Sequence[float], points: Sequence[int], output: tuple[float, int]) -> float:
    ratios = [f32(f32(scale) / f32(output[0])) for scale in scales]
    largest, bits = f32(max(f32(scale) for scale in scales) / f32(output[0])), 0
    while largest < 1 << 21:
        largest, ratios, bits = largest * 2, [ratio * 2 for ratio in ratios], bits + 1
    acc = sum((q - z) * int(away(ratio)) for q, z, ratio in zip((a, b), points, ratios, strict=True))
    return away(f32(f32(float(acc)) / (1 << bits))) + output[1]

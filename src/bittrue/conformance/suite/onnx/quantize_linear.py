"""QuantizeLinear: quotients on ties and beside them, zero points before and after rounding, scales along axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....arithmetic import floats
from ....graph import data_type
from ..draft import Draft, all_between, between, generator
from ..onnx_aiming import separating
from ..onnx_layers import normal
from ..onnx_model import OnnxModel

_FLOATS = ("f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz")
OPERATORS = {"QuantizeLinear": ("s8", "u8", "s16", "u16", "s4", "u4", *_FLOATS)}

# Binary32 scales with awkward last bits.
_SCALES = (0.1, 0.0078431377, 0.023622047, 1.7, 3.1415927e-4, 0.33333334)


def opset(types: str, blocked: bool = False) -> int:
    """The first operator set that has the type and the attributes."""
    if blocked or data_type(types).bits != 8:
        return 21
    return 19 if types in _FLOATS else 13


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Per tensor first; then scales along axes; then blocks."""
    kind = data_type(types)
    if types in _FLOATS:
        yield from _narrow_floats(types)
        return
    low, high = kind.minimum, kind.maximum
    middle = (low + high + 1) // 2
    odd = middle - 3 if kind.bits > 4 else middle - 1
    for number, zero_point in enumerate((odd, middle, low, high)):
        yield _per_tensor(types, number, np.float32(2.0 ** (-4 + 3 * number)), zero_point, True)
    for number, scale in enumerate(_SCALES):
        point = (odd, middle, high, odd + 2, low, middle + 1)[number]
        yield _per_tensor(types, 4 + number, np.float32(scale), point, False)
    if kind.bits > 4:
        far = [np.inf, -np.inf, 3e38, -3e38, 2**31, -(2**31), 2**32, 5e9, -5e9, 0.0, -0.0, 1e-45, -1e-45]
        ends = [high * 2, low * 2 - 9, high + 0.5, high + 0.49, low - 0.5, low - 0.51]
        x = np.array(far + ends, np.float32)
        yield _draft("saturation", types, x, np.float32(1), odd, {}, "far beyond both ends, infinities, signed zeros")
    yield from _placed(types)
    for number, shape in enumerate(((3, 67), (2, 3, 5, 7), (1, 96), (250,))):
        random = generator(operator, types, "random", number)
        usual = np.float32(between(random, 0.01, 0.2))
        x = normal(random, float(usual) * (high - low) / 5, shape).astype(np.float32)
        yield _draft("random", types, x, usual, int(random.integers(low, high + 1)), {}, "normal numbers")
    yield from _rejects(types)


def _per_tensor(types: str, number: int, scale: np.float32, zero_point: int, round_scale: bool) -> Draft:
    kind = data_type(types)
    random = generator("QuantizeLinear", types, number)
    # Halves of all quantized values, a few more beyond both ends.
    ends = (max(kind.minimum - zero_point - 3, -(1 << 16)), kind.maximum - zero_point + 3)
    quantized = np.arange(*ends, dtype=np.float64)
    if quantized.size > 700:
        quantized = np.concatenate([quantized[:40], quantized[-40:], random.choice(quantized, 400, replace=False)])
    halves = ((quantized + 0.5) * np.float64(scale)).astype(np.float32)
    below, above = (np.nextafter(halves, np.float32(end)) for end in (-np.inf, np.inf))
    pool = np.concatenate(
        [halves, below, above, np.nextafter(below, np.float32(-np.inf)), quantized.astype(np.float32) * scale]
    )
    answers = _quotients(pool, scale, zero_point, kind.minimum, kind.maximum)
    count = 257 if kind.bits >= 8 else 61
    chosen = pool[separating(answers, count, random, fill=np.arange(quantized.size))]
    aim = "ties" if round_scale else "near ties"
    note = f"scale {float(scale)!r}, zero point {zero_point}: halves{'' if round_scale else ' and their neighbours'}"
    return _draft(aim, types, chosen, scale, zero_point, {}, note)


def _quotients(x: np.ndarray, scale: np.float32, z: int, low: int, high: int) -> list[np.ndarray]:
    """Quantized values under division in binary32, in real numbers, by reciprocals; zero points before and after; other
    ties.
    """
    f32 = np.float32
    narrow, wide = (x / scale).astype(np.float64), x.astype(np.float64) / np.float64(scale)
    inverse = f32(f32(1) / scale)
    times = (x * inverse).astype(np.float64)
    reals = [
        np.rint(narrow) + z,
        np.rint(wide) + z,
        np.rint(times) + z,
        np.rint(x.astype(np.float64) * (1 / np.float64(scale))) + z,
        np.rint(((x / scale) + f32(z)).astype(np.float64)),
        np.rint((x * inverse + f32(z)).astype(np.float64)),
        np.rint(floats.fused_multiply_add(x, inverse, f32(z)).astype(np.float64)),
        np.rint(wide + z),
        np.trunc(narrow + np.copysign(0.5, narrow)) + z,
        np.floor(narrow + 0.5) + z,
        np.ceil(narrow - 0.5) + z,
        np.trunc(narrow) + z,
        np.floor(narrow) + z,
        np.floor(narrow + z + 0.5),
        np.trunc(narrow + z + np.copysign(0.5, narrow + z)),
    ]
    return [np.clip(one, low, high).astype(np.int64) for one in reals]


def _placed(types: str) -> Iterator[Draft]:
    """Scales along an axis and by blocks; every scale has a zero point of its own."""
    kind = data_type(types)
    places: tuple[tuple[tuple[int, ...], dict[str, int]], ...] = (
        ((2, 5, 3, 4), {"axis": 1}),
        ((4, 33), {"axis": 0}),
        ((9, 9), {"axis": 1}),
        ((3, 2, 17), {"axis": -1}),
        ((3, 21), {"axis": 1, "block_size": 4}),
        ((7, 5, 3), {"axis": 0, "block_size": 3}),
        ((2, 10, 3), {"axis": 1, "block_size": 5}),
    )
    for number, (shape, attributes) in enumerate(places):
        random = generator("QuantizeLinear", types, "placed", number)
        axis, block = attributes["axis"], attributes.get("block_size", 0)
        size = list(shape) if block else [shape[axis]]
        if block:
            size[axis] = -(-shape[axis] // block)
        exponents = random.integers(-6, 3, size)
        factors = np.where(random.random(size) < 0.5, 1.0, all_between(random, 1, 2, size))
        scale = np.ldexp(factors, exponents).astype(np.float32)
        points = random.choice([kind.minimum, kind.maximum, (kind.minimum + kind.maximum) // 2], size)
        if block:
            every = np.repeat(scale, block, axis).take(np.arange(shape[axis]), axis)
            zero = np.repeat(points, block, axis).take(np.arange(shape[axis]), axis)
        else:
            wide = [1] * len(shape)
            wide[axis] = shape[axis]
            every, zero = scale.reshape(wide), points.reshape(wide)
        quantized = random.integers(kind.minimum - 2, kind.maximum + 2, shape) - zero
        x = ((quantized + random.choice([0.5, 0.5, 0.25], shape)) * every.astype(np.float64)).astype(np.float32)
        what = f"blocks of {block} along axis {axis}" if block else f"a scale per index of axis {axis}"
        yield _draft("shapes", types, x, scale, points, attributes, what)


def _narrow_floats(types: str) -> Iterator[Draft]:
    """8-bit floating-point numbers: halves between neighbours, subnormals, what is too large."""
    kind = data_type(types).numpy
    values = np.arange(256).astype(np.uint8).view(kind).astype(np.float32)
    values = np.sort(values[np.isfinite(values)])
    halves = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    beside = np.concatenate([np.nextafter(halves, np.float32(end)) for end in (-np.inf, np.inf)])
    largest = values[-1]
    big = np.array(
        [largest * 1.03, largest * 1.05, largest * 1.07, largest * 2, 1e30, -1e30, -largest * 1.07], np.float32
    )
    random = generator("QuantizeLinear", types)
    for number, scale in enumerate((1.0, 2.0**-3, 0.1)):
        x = np.float32(scale) * np.concatenate([halves, random.permutation(beside)[:200], big, values])
        for saturate in (1, 0)[: 1 if number else 2]:
            aim = "ties" if number < 2 else "near ties"
            note = f"halves between neighbours, scale {scale}, saturate {saturate}"
            yield _draft(aim, types, x, np.float32(scale), 0, {"saturate": saturate}, note)
    x = normal(random, 2.0, (3, 61)).astype(np.float32)
    yield _draft("random", types, x, np.float32(0.013), 0, {}, "normal numbers")


def _draft(
    aim: str, types: str, x: np.ndarray, scale: Any, zero_point: Any, attributes: dict[str, int], note: str
) -> Draft:
    model = OnnxModel(opset(types, "block_size" in attributes))
    names = [model.input("x", "f32", x.shape), model.constant(scale, name="y_scale")]
    names.append(model.constant(np.asarray(zero_point), types, "y_zero_point"))
    model.node("QuantizeLinear", names, ["y"], dict(attributes))
    return Draft(aim, model.output("y", types, x.shape).write(), {"x": x}, note)


def _rejects(types: str) -> Iterator[Draft]:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wide = data_type(types).bits != 8
    bad: tuple[tuple[str, int, Any, Any, dict[str, int]], ...] = (
        ("4 scales along an axis of 3", opset(types), np.ones(4, np.float32), np.zeros(4), {"axis": 0}),
        ("an axis that the tensor does not have", opset(types), np.ones(3, np.float32), np.zeros(3), {"axis": 2}),
        ("blocks, but one scale", 21, np.float32(1), 0, {"axis": 1, "block_size": 2}),
        (
            "blocks of 2 along 4 need 2 scales, not 3",
            21,
            np.ones((3, 3), np.float32),
            np.zeros((3, 3)),
            {"axis": 1, "block_size": 2},
        ),
    )
    if wide:
        bad += ((f"operator set 13 has no {types}", 13, np.float32(1), 0, {}),)
    for why, version, scale, zero_point, attributes in bad:
        model = OnnxModel(version)
        names = [model.input("x", "f32", x.shape), model.constant(scale, name="y_scale")]
        names.append(model.constant(np.asarray(zero_point), types, "y_zero_point"))
        model.node("QuantizeLinear", names, ["y"], attributes)
        yield Draft("rejects", model.output("y", types, x.shape).write(), {"x": x}, why, why)
    model = OnnxModel(opset(types))
    names = [model.input("x", "f32", x.shape), model.constant(np.float32(1), name="y_scale")]
    names.append(model.constant(0, types, "y_zero_point"))
    model.node("QuantizeLinear", names, ["y"])
    other = "s8" if types == "u8" else "u8"
    why = f"zero point of {types}, but the result is declared {other}"
    yield Draft("rejects", model.output("y", other, x.shape).write(), {"x": x}, why, why)

"""DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....graph import data_type
from ..draft import Draft, all_between, between, generator
from ..onnx_layers import normal
from ..onnx_model import one_node
from .quantize_linear import opset

OPERATORS = {
    "DequantizeLinear": ("s8", "u8", "s16", "u16", "s32"),
    "DynamicQuantizeLinear": ("u8",),
}


def cases(operator: str, types: str) -> Iterator[Draft]:
    """Every quantized value, or every kind of quantized value; ranges for the dynamic operator."""
    yield from (_dynamic() if operator == "DynamicQuantizeLinear" else _dequantize(types))


def _dequantize(types: str) -> Iterator[Draft]:
    kind = data_type(types)
    low, high = kind.minimum, kind.maximum
    random = generator("DequantizeLinear", types)
    if kind.bits == 8:
        quantized = np.arange(low, high + 1)
    elif kind.bits == 16:
        quantized = np.concatenate(
            [np.arange(low, low + 20), np.arange(high - 19, high + 1), random.integers(low, high, 216)]
        )
    else:
        # Beyond 2^24 the conversion to binary32 rounds, then the product does.
        magnitudes = (1 << random.integers(20, 31, 240)) + random.integers(-3, 4, 240)
        quantized = np.concatenate([magnitudes * random.choice([-1, 1], 240), [low, low + 1, high, high - 1, 0, 1, -1]])
    quantized = quantized.astype(kind.numpy)
    points = (0,) if types == "s32" else ((low + high + 1) // 2 - 3, low, high)
    for number, scale in enumerate((0.1, 0.0078431377, 3.1415927e-4, 1.7e-7, 2.0**-9)):
        point = points[number % len(points)]
        order = random.permutation(quantized)
        note = f"scale {scale!r}, zero point {point}"
        aim = "codes" if number < 3 else "near ties"
        yield _draft(aim, types, order, np.float32(scale), point, {}, note)
    places: tuple[tuple[tuple[int, ...], dict[str, int]], ...] = (
        ((2, 5, 3, 4), {"axis": 1}),
        ((4, 33), {"axis": 0}),
        ((3, 2, 17), {"axis": -1}),
        ((3, 21), {"axis": 1, "block_size": 4}),
        ((7, 5, 3), {"axis": 0, "block_size": 3}),
    )
    for number, (shape, attributes) in enumerate(places):
        random = generator("DequantizeLinear", types, "placed", number)
        axis, block = attributes["axis"], attributes.get("block_size", 0)
        size = list(shape) if block else [shape[axis]]
        if block:
            size[axis] = -(-shape[axis] // block)
        scales = all_between(random, 0.001, 0.5, size).astype(np.float32)
        zero = random.choice(np.array(points), size)
        what = f"blocks of {block} along axis {axis}" if block else f"a scale per index of axis {axis}"
        yield _draft("shapes", types, random.choice(quantized, shape), scales, zero, attributes, what)
    for number, shape in enumerate(((3, 67), (2, 3, 5, 7), (250,))):
        random = generator("DequantizeLinear", types, "random", number)
        x = random.integers(low, high, shape, endpoint=True).astype(kind.numpy)
        usual = np.float32(between(random, 0.001, 0.1))
        point = 0 if types == "s32" else int(random.integers(low, high + 1))
        yield _draft("random", types, x, usual, point, {}, "uniform quantized values")
    x = quantized[:12].reshape(3, 4)
    version = opset("s8" if types == "s32" else types)
    why = "4 scales along an axis of 3"
    yield _draft("rejects", types, x, np.ones(4, np.float32), np.zeros(4), {"axis": 0}, why, why, version)
    why = "an axis that the tensor does not have"
    yield _draft("rejects", types, x, np.ones(3, np.float32), np.zeros(3), {"axis": 2}, why, why, version)
    why = "blocks, but one scale"
    yield _draft("rejects", types, x, np.float32(1), 0, {"axis": 1, "block_size": 2}, why, why, 21)
    if kind.bits == 16:
        why = f"operator set 13 has no {types}"
        yield _draft("rejects", types, x, np.float32(1), 0, {}, why, why, 13)


def _draft(
    aim: str,
    types: str,
    x: np.ndarray,
    scale: Any,
    zero_point: Any,
    attributes: dict[str, int],
    note: str,
    rejects: str = "",
    version: int = 0,
) -> Draft:
    known = "s8" if types == "s32" else types
    content = one_node(
        "DequantizeLinear",
        [("x", types, x), ("x_scale", "f32", scale), ("x_zero_point", types, np.asarray(zero_point))],
        [("y", "f32", x.shape)],
        dict(attributes),
        fed=["x"],
        opset=version or opset(known, "block_size" in attributes),
    )
    return Draft(aim, content, {"x": x}, note, rejects)


def _dynamic() -> Iterator[Draft]:
    random = generator("DynamicQuantizeLinear")
    # Range 255 / 2^k: scales are powers of two, so halves of quantized values are ties; zero points that are no ties,
    # and ties.
    for number, (low, high) in enumerate(
        ((-64.0, 191.0), (-31.5, 223.5), (-100.5, 154.5), (0.0, 255.0), (-255.0, 0.0))
    ):
        factor = 2.0 ** -(3 * number)
        halves = random.integers(int(2 * low), int(2 * high), 131) / 2
        x = (np.concatenate([[low, high], halves]) * factor).astype(np.float32)
        yield dynamic(x, f"from {low * factor} to {high * factor}: the scale is a power of two", "ties")
    for _ in range(6):
        ends = np.sort(all_between(random, -9, 9, 2)).astype(np.float32)
        ends = np.array([min(ends[0], np.float32(0)), max(ends[1], np.float32(0))])
        scale = np.float32((ends[1] - ends[0]) / np.float32(255))
        quantized = np.arange(int(ends[0] / scale) + 1, int(ends[1] / scale) - 1)
        halves = ((quantized + 0.5) * np.float64(scale)).astype(np.float32)
        beside = np.concatenate([halves, *(np.nextafter(halves, np.float32(end)) for end in (-np.inf, np.inf))])
        x = np.concatenate([ends, random.permutation(beside)[:191]]).astype(np.float32)
        yield dynamic(x, "halves of quantized values and their neighbours", "near ties")
    for values, note in (
        ([[3.0, 5.0, 250.0], [17.0, 99.5, 4.25]], "all above zero: the range begins at zero"),
        ([[-3.0, -5.0, -250.0], [-17.0, -99.5, -4.25]], "all below zero: the range ends at zero"),
        ([7.5], "one number"),
        ([1e-30, -2e-30, 1.5e-30], "tiny numbers"),
        ([1e37, -2e37, 3e36, 0], "huge numbers"),
    ):
        yield dynamic(np.array(values, np.float32), note)
    for shape in ((1, 67), (2, 3, 5, 7), (4, 33)):
        x = (between(random, -1, 1) + normal(random, 1.0, shape)).astype(np.float32)
        yield dynamic(x, "normal numbers", "random")
    why = "binary64 is no type that it takes"
    content = one_node(
        "DynamicQuantizeLinear",
        [("x", "f64", np.ones(3))],
        [("y", "u8", (3,)), ("y_scale", "f32", ()), ("y_zero_point", "u8", ())],
        fed=["x"],
    )
    yield Draft("rejects", content, {"x": np.ones(3)}, why, why)


def dynamic(x: np.ndarray, note: str, aim: str = "zero points") -> Draft:
    """DynamicQuantizeLinear of these numbers."""
    outputs = [("y", "u8", x.shape), ("y_scale", "f32", ()), ("y_zero_point", "u8", ())]
    content = one_node("DynamicQuantizeLinear", [("x", "f32", x)], outputs, fed=["x"])
    return Draft(aim, content, {"x": x}, note)

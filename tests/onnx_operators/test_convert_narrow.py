"""convert to and from narrow types under `onnx`: every code, and the middles between numbers, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onnx import helper

import bittrue
from bittrue.graph import data_type
from bittrue.importers.onnx_tensors import TYPES
from support.narrow_oracle import SHAPES, code_of, numbers, sign_bit

NUMBERS = {name: number for number, name in TYPES.items() if number}
FEW_BITS = ("u2", "s2", "u4", "s4")
NARROW_FLOATS = tuple(name for name in SHAPES if name not in ("f16", "bf16"))
REALS = ("f16", "bf16", "f32", "f64")
WHOLE = ("u8", "s8", "u16", "s16", "s32", "s64", "u32", "u64")


def cast(x: np.ndarray, source: str, target: str, opset: int = 25, **attributes: Any) -> np.ndarray:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=NUMBERS[target], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", NUMBERS[source], x.shape)],
        [helper.make_tensor_value_info("y", NUMBERS[target], None)],
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()
    results = [
        bittrue.load(content).prepare("onnx", executor=kind).run({"x": x})["y"] for kind in ("reference", "auto")
    ]
    assert results[0].tobytes() == results[1].tobytes()
    assert results[0].shape == x.shape
    assert results[0].dtype == data_type(target).numpy
    return results[0]


def values_of(name: str) -> list[tuple[int, Fraction | None]]:
    """Every code of a narrow type and its number; None for NaN and infinities."""
    kind = data_type(name)
    if name in FEW_BITS:
        return [(code, Fraction(code)) for code in range(kind.minimum, kind.maximum + 1)]
    grid, sign = numbers(name), sign_bit(name)
    found: list[tuple[int, Fraction | None]] = []
    for code in range(2 * sign):
        magnitude = code & (sign - 1)
        known = magnitude < len(grid) and not (SHAPES[name][3] == "negative zero" and code == sign)
        found.append((code, grid[magnitude] * (-1 if code & sign else 1) if known else None))
    return found


def array_of(name: str, codes: list[int]) -> np.ndarray:
    kind = data_type(name).numpy
    return np.array(codes).astype(kind) if name in FEW_BITS else np.array(codes, np.uint8).view(kind)


@pytest.mark.parametrize("source", [*FEW_BITS, *NARROW_FLOATS])
def test_from_every_code(source: str) -> None:
    pairs = values_of(source)
    x = array_of(source, [code for code, _ in pairs])
    for target in REALS:
        y = cast(x, source, target).astype(np.float64)
        for (code, value), found in zip(pairs, y, strict=True):
            if value is None:
                assert not math.isfinite(found), (target, code)
            elif target in SHAPES:
                rounded = code_of(target, value)
                wanted = math.inf if rounded is None else float(numbers(target)[rounded])
                assert abs(found) == wanted, (target, code)
                assert math.copysign(1, found) == (-1 if value < 0 or code == _minus_zero(source) else 1)
            else:
                assert Fraction(float(found)) == value, (target, code)
    for target in WHOLE:
        kind = data_type(target)
        for (code, value), found in zip(pairs, cast(x, source, target), strict=True):
            whole = None if value is None else math.trunc(value)
            if whole is not None and (kind.minimum <= whole <= kind.maximum or source in FEW_BITS):
                assert int(found) == (whole - kind.minimum) % (1 << kind.bits) + kind.minimum, (target, code)
    assert cast(x, source, "bool").tolist() == [value is None or value != 0 for _, value in pairs]


def _minus_zero(name: str) -> int | None:
    return sign_bit(name) if name in SHAPES and SHAPES[name][3] != "negative zero" else None


def reals(target: str) -> np.ndarray:
    """Numbers of a type, the middles between them, and what lies next to these."""
    grid = np.array([float(v) for v in numbers(target)])
    middles = (grid[1:] + grid[:-1]) / 2
    beyond = grid[-1] + (grid[-1] - grid[-2]) * np.array([0.25, 0.5, 0.75, 1.0, 100.0])
    near = np.concatenate([grid, middles, beyond])
    x = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, np.inf)])
    return np.concatenate([x, -x, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-30]])


@pytest.mark.parametrize("target", NARROW_FLOATS)
@pytest.mark.parametrize("source", REALS)
def test_real_numbers_to_narrow_floats(source: str, target: str) -> None:
    with np.errstate(over="ignore"):
        x = reals(target).astype(data_type(source).numpy)
    largest, special = len(numbers(target)) - 1, SHAPES[target][3]
    for saturate in (1, 0):
        y = cast(x, source, target, saturate=saturate).view(np.uint8)
        for value, found in zip(x.astype(np.float64), y, strict=True):
            sign = sign_bit(target) if math.copysign(1, value) < 0 else 0
            code = code_of(target, Fraction(float(value))) if math.isfinite(value) else None
            if math.isnan(value):
                with np.errstate(invalid="ignore"):
                    decoded = float(np.uint8([found]).view(data_type(target).numpy)[0])
                assert math.isnan(decoded) if special != "none" else decoded == 0
                continue
            if code is not None:
                wanted = code
            elif saturate or special == "none":
                wanted = largest
            else:
                wanted = {"both": largest + 1, "nan": largest + 1, "negative zero": sign_bit(target)}[special]
            if special == "negative zero" and wanted in (0, sign_bit(target)):
                sign = 0
            assert int(found) == wanted | sign, (value, saturate)


@pytest.mark.parametrize("target", FEW_BITS)
def test_to_few_bits(target: str) -> None:
    kind = data_type(target)
    for source in WHOLE:
        info = np.iinfo(data_type(source).numpy)
        x = np.array([info.min, info.max, *range(max(info.min, -20), 21)], data_type(source).numpy)
        wanted = [(int(v) - kind.minimum) % (1 << kind.bits) + kind.minimum for v in x]
        assert cast(x, source, target).tolist() == wanted
    for source in REALS:
        x = (np.arange(-80, 81) / 4).astype(data_type(source).numpy)
        wanted = [(math.trunc(v) - kind.minimum) % (1 << kind.bits) + kind.minimum for v in x.astype(float)]
        assert cast(x, source, target).tolist() == wanted
    assert cast(np.array([True, False]), "bool", target).astype(np.int64).tolist() in ([1, 0], [-1, 0])


@pytest.mark.parametrize("source", WHOLE)
@pytest.mark.parametrize("target", ["f8e4m3fn", "f8e5m2", "f4e2m1"])
def test_integers_to_narrow_floats(source: str, target: str) -> None:
    info = np.iinfo(data_type(source).numpy)
    rng = np.random.default_rng(1)
    x = np.array([info.min, info.max, 0, 1], data_type(source).numpy)
    x = np.concatenate([x, rng.integers(max(info.min, -500), min(info.max, 500), 50).astype(x.dtype)])
    y = cast(x, source, target).view(np.uint8)
    for value, found in zip(x, y, strict=True):
        code = code_of(target, Fraction(int(value)))
        wanted = len(numbers(target)) - 1 if code is None else code
        assert int(found) == wanted | (sign_bit(target) if value < 0 else 0)


@pytest.mark.parametrize("mode", ["up", "down", "nearest", None])
def test_powers_of_two(mode: str | None) -> None:
    attributes = {} if mode is None else {"round_mode": mode}
    x = np.float32([0.0, 0.124, 1.0, 1.2, 1.5, 1.9, 2.0**127, 3.3e38, np.inf, np.nan])
    wanted = {
        "up": [0, 124, 127, 128, 128, 128, 254, 254, 254, 255],
        "down": [0, 123, 127, 127, 127, 127, 254, 254, 254, 255],
        "nearest": [0, 124, 127, 127, 128, 128, 254, 254, 254, 255],
    }[mode or "up"]
    assert cast(x, "f32", "f8e8m0", **attributes).view(np.uint8).tolist() == wanted
    strict = cast(x, "f32", "f8e8m0", saturate=0, **attributes).view(np.uint8)
    beyond = [value == 0 or value > 1.5 * 2.0**127 for value in x.astype(float)]
    if mode == "down":
        beyond[7] = False
    assert strict.tolist() == [255 if out else code for out, code in zip(beyond, wanted, strict=True)]
    codes = np.arange(256, dtype=np.uint8).view(data_type("f8e8m0").numpy)
    back = cast(codes, "f8e8m0", "f32")
    assert back[:255].tolist() == [2.0 ** (code - 127) for code in range(255)]
    assert np.isnan(back[255])
    assert cast(codes, "f8e8m0", "f8e8m0").tobytes() == codes.tobytes()


def test_scalars_and_nothing() -> None:
    assert cast(np.array(3.0, np.float32), "f32", "s4").tolist() == 3
    assert cast(np.zeros((2, 0), np.float32), "f32", "f8e5m2").shape == (2, 0)

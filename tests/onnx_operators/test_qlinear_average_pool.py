"""Averages of quantized numbers over windows: random one-node models against ONNX Runtime, and against fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bittrue
from support.onnx_models import KIND, MICROSOFT, Checks, check, integers, scale, single, zero_point


def _case(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    count, dtype = int(rng.integers(1, 4)), (np.uint8, np.int8)[rng.integers(2)]
    sizes = [int(v) for v in rng.integers(1, (30, 11, 7)[count - 1], count)]
    batch, channels, last = int(rng.integers(1, 3)), int(rng.integers(1, 10)), bool(rng.integers(2))
    taps = [int(rng.integers(1, min(size, 5) + 3)) for size in sizes]
    attributes: dict[str, Any] = {"kernel_shape": taps, "channels_last": int(last)}
    if rng.random() < 0.7:
        attributes["strides"] = [int(v) for v in rng.integers(1, 4, count)]
    if rng.random() < 0.5:
        attributes["pads"] = [int(rng.integers(0, taps[i % count])) for i in range(2 * count)]
    elif rng.random() < 0.5:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    for name in ("ceil_mode", "count_include_pad"):
        if rng.random() < 0.5:
            attributes[name] = int(rng.integers(2))
    far_apart = rng.random() < 0.15
    scales = [np.asarray(np.float32(2.0 ** rng.uniform(-60, 60))) if far_apart else scale(rng) for _ in range(2)]
    if rng.random() < 0.4:
        # Many averages in range, and ties.
        scales[1] = np.asarray(scales[0] * np.float32(rng.choice([0.25, 0.5, 0.75, 1, 1.5, 2])))
    inputs = {
        "x": integers(rng, (batch, *sizes, channels) if last else (batch, channels, *sizes), dtype),
        "x_scale": scales[0],
        "x_zero": zero_point(rng, dtype),
        "y_scale": scales[1],
        "y_zero": zero_point(rng, dtype),
    }
    if rng.random() < 0.05:
        del inputs["y_zero"]
    return inputs, attributes


def _whole(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A window over the whole image with a scale that makes ties."""
    inputs, attributes = _case(rng)
    spatial = inputs["x"].shape[1:-1] if attributes["channels_last"] else inputs["x"].shape[2:]
    kept = {name: value for name, value in attributes.items() if name not in ("pads", "auto_pad")}
    if rng.random() < 0.3:
        kept["auto_pad"] = "VALID"
    inputs["y_scale"] = np.asarray(inputs["x_scale"] * np.float32(rng.choice([0.5, 1, 1, 1, 2, 1e-5])))
    return inputs, {**kept, "kernel_shape": list(spatial)}


def _single(inputs: dict[str, Any], attributes: dict[str, Any], rng: np.random.Generator) -> Any:
    constants = [name for name in inputs if name != "x"] if rng.random() < 0.9 else []
    kind = KIND[inputs["x"].dtype]
    return single("QLinearAveragePool", inputs, [kind], attributes, domain=MICROSOFT, constants=constants)


def _code(content: bytes, feeds: list[np.ndarray], numerics: str) -> str:
    """The code with which we refuse a model, or nothing."""
    try:
        bittrue.load(content).prepare(numerics, executor="reference").run(*feeds)
    except bittrue.BittrueError as error:
        return error.code
    return ""


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks, deadly = Checks(request), 0
    for rng in checks:
        content, feeds = _single(*_case(rng), rng)
        # ONNX Runtime 1.31 divides by zero there, and its process dies.
        if _code(content, feeds, "onnxruntime") == "BT-WINDOW-NONE":
            deadly += 1
        else:
            checks.add(content, feeds)
    assert set(checks.outcomes) == {"equal", "refused"}
    assert deadly


def test_whole_images(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        checks.add(*_single(*_whole(rng), rng))
    assert set(checks.outcomes) == {"equal", "refused"}


def _exact(inputs: dict[str, np.ndarray], attributes: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """Averages in fractions of a tensor whose output has `shape`; the pads are explicit."""
    x, last = inputs["x"], attributes["channels_last"]
    if last:
        x, shape = np.moveaxis(x, -1, 1), (shape[0], shape[-1], *shape[1:-1])
    taps, count = attributes["kernel_shape"], len(attributes["kernel_shape"])
    strides, pads = attributes.get("strides", [1] * count), attributes.get("pads", [0] * 2 * count)
    real = Fraction(float(inputs["x_scale"])) / Fraction(float(inputs["y_scale"]))
    z, w = int(inputs["x_zero"]), int(inputs.get("y_zero", 0))
    info, out = np.iinfo(x.dtype), np.empty(shape, x.dtype)
    for place in itertools.product(*map(range, shape[2:])):
        first = [p * s - b for p, s, b in zip(place, strides, pads, strict=False)]
        box = tuple(
            slice(max(0, f), max(0, min(f + t, size))) for f, t, size in zip(first, taps, x.shape[2:], strict=True)
        )
        window = x[(slice(None), slice(None), *box)].astype(np.int64) - z
        total = window.sum(axis=tuple(range(2, window.ndim)))
        elements = np.prod(taps) if attributes.get("count_include_pad") else window[0, 0].size
        for index in np.ndindex(total.shape):
            value = round(real * int(total[index]) / int(elements)) + w
            out[(*index, *place)] = min(max(value, info.min), info.max)
    return np.moveaxis(out, 1, -1) if last else out


def test_specification(request: pytest.FixtureRequest) -> None:
    compared = 0
    checks = Checks(request, only="equal")
    for rng in checks:
        inputs, attributes = _case(rng)
        attributes.pop("auto_pad", None)
        inputs["x"] = inputs["x"][:1]
        content, feeds = _single(inputs, attributes, rng)
        if _code(content, feeds, "onnx") == "BT-WINDOW":
            continue
        (found,) = bittrue.load(content).prepare("onnx", executor="reference").run(*feeds).values()
        expected = {"y0": _exact(inputs, attributes, found.shape)}
        checks.add(content, feeds, numerics="onnx", expected=lambda found=expected: found)
        compared += 1
    assert compared > 25


@pytest.mark.parametrize("shape", [(0, 5, 5, 2), (1, 5, 5, 0), (1, 0, 5, 2), (0, 2, 5, 5), (1, 0, 5, 5), (1, 2, 5, 0)])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("operator", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
def test_empty(operator: str, last: int, shape: tuple[int, ...]) -> None:
    one, zero = np.asarray(np.float32(1)), np.asarray(np.uint8(0))
    inputs = {"x": np.zeros(shape, np.uint8), "x_scale": one, "x_zero": zero, "y_scale": one, "y_zero": zero}
    attributes: dict[str, Any] = {"channels_last": last}
    if operator == "QLinearAveragePool":
        attributes["kernel_shape"] = [2, 2]
    content, feeds = single(operator, inputs, [2], attributes, domain=MICROSOFT, constants=list(inputs)[1:])
    assert check(content, feeds) in ("equal", "refused")

"""Averages of whole images and means of quantized numbers: random models against ONNX Runtime and fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bittrue
from support.onnx_models import KIND, MICROSOFT, Checks, check, integers, scale, single, zero_point


def _inputs(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    dtype = (np.uint8, np.int8)[rng.integers(2)]
    far_apart = rng.random() < 0.15
    scales = [np.asarray(np.float32(2.0 ** rng.uniform(-25, 8))) if far_apart else scale(rng) for _ in range(2)]
    x = integers(rng, shape, dtype)
    if rng.random() < 0.3 and x.size:
        # Averages near the ends of the type.
        x = np.where(rng.random(shape) < 0.9, x.reshape(-1)[0], x).astype(dtype)
    return {
        "x": x,
        "x_scale": scales[0],
        "x_zero": zero_point(rng, dtype),
        "y_scale": scales[1],
        "y_zero": zero_point(rng, dtype),
    }


def _image(rng: np.random.Generator) -> tuple[tuple[int, ...], bool]:
    last, batch, channels = bool(rng.integers(2)), int(rng.integers(1, 4)), int(rng.integers(1, 40))
    sizes = tuple(int(v) for v in rng.integers(1, 10, rng.integers(1, 4)))
    return ((batch, *sizes, channels) if last else (batch, channels, *sizes)), last


def _single(operator: str, inputs: dict[str, Any], attributes: dict[str, Any], rng: np.random.Generator) -> Any:
    constants = [name for name in inputs if name != "x"] if rng.random() < 0.9 else []
    return single(operator, inputs, [KIND[inputs["x"].dtype]], attributes, domain=MICROSOFT, constants=constants)


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        shape, last = _image(rng)
        attributes = {"channels_last": int(last)}
        checks.add(*_single("QLinearGlobalAveragePool", _inputs(rng, shape), attributes, rng))
    assert set(checks.outcomes) == {"equal", "refused"}


@pytest.mark.parametrize("last", [False, True])
def test_last_bit_of_the_multiplier(last: bool) -> None:
    """Sums for which f32(s / f32(t * count)) gives another byte than other forms of the multiplier do."""
    rng, found, f32 = np.random.default_rng(3), 0, np.float32
    while found < 20:
        count = int(rng.integers(3, 400))
        scales = rng.integers(1, 30, 2).astype(np.float32) * f32(0.01)
        forms = [
            scales[0] / (scales[1] * f32(count)),
            scales[0] / scales[1] / f32(count),
            scales[0] / f32(count) / scales[1],
        ]
        totals = np.arange(255 * count, dtype=np.float32)
        rounded = [np.rint(totals * form) for form in forms]
        different = np.flatnonzero((rounded[0] < 255) & ((rounded[0] != rounded[1]) | (rounded[0] != rounded[2])))
        if not len(different):
            continue
        found += 1
        total = int(different[rng.integers(len(different))])
        x = np.full(count, total // count, np.uint8)
        x[: total % count] += 1
        zero = np.asarray(np.uint8(0))
        inputs = {"x": x.reshape((1, count, 1) if last else (1, 1, count))}
        inputs |= {"x_scale": np.asarray(scales[0]), "x_zero": zero, "y_scale": np.asarray(scales[1]), "y_zero": zero}
        attributes = {"channels_last": int(last)}
        assert check(*_single("QLinearGlobalAveragePool", inputs, attributes, rng)) == "equal"


def _exact(inputs: dict[str, np.ndarray], axes: tuple[int, ...], kept: bool) -> np.ndarray:
    x = inputs["x"]
    s, t = (Fraction(float(inputs[name])) for name in ("x_scale", "y_scale"))
    zeros = [int(inputs[name]) for name in ("x_zero", "y_zero")]
    count = int(np.prod([x.shape[axis] for axis in axes]))
    totals = np.asarray(x.astype(np.int64).sum(axes, keepdims=kept)) - zeros[0] * count
    info = np.iinfo(x.dtype)
    stored = [min(max(round(s * int(v) / (count * t)) + zeros[1], info.min), info.max) for v in totals.reshape(-1)]
    return np.array(stored, x.dtype).reshape(totals.shape)


def test_specification(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        shape, last = _image(rng)
        inputs, attributes = _inputs(rng, shape), {"channels_last": int(last)}
        axes = tuple(range(1, len(shape) - 1)) if last else tuple(range(2, len(shape)))
        expected = {"y0": _exact(inputs, axes, True)}
        content, feeds = _single("QLinearGlobalAveragePool", inputs, attributes, rng)
        checks.add(content, feeds, numerics="onnx", expected=lambda found=expected: found)


def test_qlinear_reduce_mean(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        shape = tuple(int(v) for v in rng.integers(1, 7, rng.integers(1, 5)))
        axes = tuple(int(v) for v in rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)])
        kept = bool(rng.integers(2))
        inputs, attributes = _inputs(rng, shape), {"keepdims": int(kept)}
        if axes:
            attributes["axes"] = [axis - len(shape) if rng.random() < 0.5 else axis for axis in axes]
        expected = {"y0": _exact(inputs, axes or tuple(range(len(shape))), kept)}
        content, feeds = _single("QLinearReduceMean", inputs, attributes, rng)
        checks.add(content, feeds, numerics="onnx", expected=lambda found=expected: found)
    assert check(content, feeds) == "refused"
    with pytest.raises(bittrue.UnsupportedError, match="no kernel"):
        bittrue.load(content).prepare("onnxruntime")

"""Matrix products and convolutions on integers under numerics `onnx`: recorded vectors, and sums of fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import bittrue
from support.onnx_models import KIND, Checks, integers, scale, single, zero_point
from support.onnx_vectors import check_vector, vectors

U8, S8 = np.uint8, np.int8


@pytest.mark.parametrize("folder", vectors("(qlinear|matmulinteger|convinteger).*"))
def test_recorded_vectors(folder: Path) -> None:
    check_vector(folder)


def stored(acc: int, first: Any, second: Any, output: Any, zero: int, dtype: Any) -> int:
    """round_even(acc * first * second / output) + zero, saturated; `round` of a fraction rounds ties to even."""
    real = acc * Fraction(float(first)) * Fraction(float(second)) / Fraction(float(output))
    info = np.iinfo(dtype)
    return min(max(round(real) + zero, info.min), info.max)


def test_random_products(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=30, only="equal")
    for rng in checks:
        first, second, out = (rng.choice([U8, S8]) for _ in range(3))
        m, k, n = (int(v) for v in rng.integers(1, 5, 3))
        batch = tuple(int(v) for v in rng.integers(1, 3, rng.integers(2)))
        left, right = (*batch, m, k), (*batch, k, n)
        per_row = (m,) if not batch and rng.random() < 0.5 else (*batch, m, 1)
        per_column = (n,) if not batch and rng.random() < 0.5 else (*batch, 1, n)
        rows = per_row if rng.random() < 0.5 else ()
        columns = per_column if rng.random() < 0.5 else ()
        kind = np.float16 if rng.random() < 0.2 else np.float32
        inputs: dict[str, np.ndarray] = {
            "a": integers(rng, left, first),
            "a_scale": scale(rng, rows).astype(kind),
            "a_zero": zero_point(rng, first, rows),
            "b": integers(rng, right, second),
            "b_scale": scale(rng, columns).astype(kind),
            "b_zero": zero_point(rng, second, columns),
            "y_scale": (scale(rng) * np.float32(16 * k)).astype(kind),
            "y_zero": zero_point(rng, out),
        }
        down = {name: array[:, None] if array.shape == (m,) else array for name, array in inputs.items()}
        a = inputs["a"].astype(np.int64) - down["a_zero"].astype(np.int64)
        b = inputs["b"].astype(np.int64) - inputs["b_zero"].astype(np.int64)
        acc = a @ b
        a_scale, b_scale = (np.broadcast_to(s, acc.shape) for s in (down["a_scale"], inputs["b_scale"]))
        expected = np.empty(acc.shape, out)
        for place in np.ndindex(acc.shape):
            expected[place] = stored(
                int(acc[place]), a_scale[place], b_scale[place], inputs["y_scale"], int(inputs["y_zero"]), out
            )
        constants = [] if rng.random() < 0.2 else [name for name in inputs if name != "a"]
        content, feeds = single("QLinearMatMul", inputs, [KIND[np.dtype(out)]], constants=constants)
        checks.add(content, feeds, numerics="onnx", expected=lambda y=expected: {"y0": y})
        plain = {name: inputs[name] for name in ("a", "b", "a_zero", "b_zero")}
        content, feeds = single("MatMulInteger", plain, [KIND[np.dtype(np.int32)]], constants=constants)
        sums = acc.astype(np.int32)
        checks.add(content, feeds, numerics="onnx", expected=lambda y=sums: {"y0": y})


@pytest.mark.parametrize("batch", [(), (2,)])
def test_scales_of_as_many_rows_as_columns(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    rows = 4 // (batch[0] if batch else 1)
    inputs: dict[str, np.ndarray] = {
        "a": integers(rng, (*batch, rows, 3), S8),
        "a_scale": np.geomspace(1e-4, 0.1, 4, dtype=np.float32).reshape(*batch, rows, 1),
        "a_zero": zero_point(rng, S8, (*batch, rows, 1)),
        "b": integers(rng, (*batch, 3, 4), S8),
        "b_scale": np.array(0.3, np.float32),
        "b_zero": np.array(1, np.int8),
        "y_scale": np.array(0.05, np.float32),
        "y_zero": np.array(3, np.int8),
    }
    content, feeds = single("QLinearMatMul", inputs, [KIND[np.dtype(S8)]], constants=[*inputs][1:])
    model = bittrue.load(content)
    executors: tuple[Literal["native", "reference"], ...] = ("native", "reference")
    first, second = (next(iter(model.prepare("onnx", executor=e).run(*feeds).values())) for e in executors)
    assert first.tobytes() == second.tobytes()


def convolved(x: np.ndarray, w: np.ndarray, groups: int, stride: int, dilation: int, pad: int) -> np.ndarray:
    """Sums of a 2-D convolution, product by product."""
    n, _, height, width = x.shape
    filters, depth, taps_h, taps_w = w.shape
    out = [(e + 2 * pad - ((t - 1) * dilation + 1)) // stride + 1 for e, t in ((height, taps_h), (width, taps_w))]
    result = np.zeros((n, filters, *out), np.int64)
    for b, o, y, z, c, i, j in itertools.product(*map(range, (n, filters, *out, depth, taps_h, taps_w))):
        row, column = y * stride - pad + i * dilation, z * stride - pad + j * dilation
        if 0 <= row < height and 0 <= column < width:
            channel = o // (filters // groups) * depth + c
            result[b, o, y, z] += int(x[b, channel, row, column]) * int(w[o, c, i, j])
    return result


def test_random_convolutions(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=20, only="equal")
    for rng in checks:
        first, second, out = (rng.choice([U8, S8]) for _ in range(3))
        groups, depth, each = (int(v) for v in rng.integers(1, 3, 3))
        taps = tuple(int(v) for v in rng.integers(1, 3, 2))
        stride, dilation, pad = int(rng.integers(1, 3)), int(rng.integers(1, 3)), int(rng.integers(0, 2))
        filters = groups * each
        channels = (filters,) if rng.random() < 0.7 else ()
        inputs: dict[str, np.ndarray] = {
            "x": integers(rng, (1, groups * depth, *(int(v) for v in rng.integers(3, 5, 2))), first),
            "x_scale": scale(rng),
            "x_zero": zero_point(rng, first),
            "w": integers(rng, (filters, depth, *taps), second),
            "w_scale": scale(rng, channels),
            "w_zero": zero_point(rng, second, channels),
            "y_scale": scale(rng) * np.float32(64),
            "y_zero": zero_point(rng, out),
        }
        attributes = {
            "group": groups,
            "strides": [stride] * 2,
            "dilations": [dilation] * 2,
            "pads": [pad] * 4,
        }
        x = inputs["x"].astype(np.int64) - int(inputs["x_zero"])
        w = inputs["w"].astype(np.int64) - inputs["w_zero"].astype(np.int64).reshape(-1, 1, 1, 1)
        acc = convolved(x, w, groups, stride, dilation, pad)
        scales = np.broadcast_to(inputs["w_scale"], (filters,))
        expected = np.empty(acc.shape, out)
        for place in np.ndindex(acc.shape):
            expected[place] = stored(
                int(acc[place]),
                inputs["x_scale"],
                scales[place[1]],
                inputs["y_scale"],
                int(inputs["y_zero"]),
                out,
            )
        constants = [] if rng.random() < 0.2 else [name for name in inputs if name != "x"]
        content, feeds = single("QLinearConv", inputs, [KIND[np.dtype(out)]], attributes, constants=constants)
        checks.add(content, feeds, numerics="onnx", expected=lambda y=expected: {"y0": y})
        plain = {name: inputs[name] for name in ("x", "w", "x_zero", "w_zero")}
        content, feeds = single("ConvInteger", plain, [KIND[np.dtype(np.int32)]], attributes, constants=constants)
        sums = acc.astype(np.int32)
        checks.add(content, feeds, numerics="onnx", expected=lambda y=sums: {"y0": y})

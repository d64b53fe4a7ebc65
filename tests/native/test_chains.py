"""Sums of products in several chains: native = reference, on all instruction sets, of one position and of many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bittrue
from support.build import T, single

Build = Callable[[np.random.Generator], tuple[bytes, np.ndarray]]


def _layer(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    rows, depth, units = int(rng.choice([1, 2, 30])), int(rng.integers(1, 40)), int(rng.choice([1, 7, 8, 9, 40, 101]))
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, depth), (units, depth), (units,)))
    operands = [T("f32", x.shape), T("f32", w.shape, data=w), T("f32", b.shape, data=b)]
    options: tuple[str, dict[str, int]] = ("FullyConnectedOptions", {})
    return single("FULLY_CONNECTED", options, operands, [T("f32", (rows, units))]), x


def _convolution(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    taps, units, depth = int(rng.choice([1, 3])), int(rng.choice([3, 8, 9])), int(rng.integers(1, 20))
    height, width = (int(rng.choice([1, 2, 7])) for _ in range(2))
    stride = int(rng.choice([1, 2]))
    x = rng.standard_normal((2, height, width, depth)).astype(np.float32)
    w = rng.standard_normal((units, taps, taps, depth)).astype(np.float32)
    b = rng.standard_normal(units).astype(np.float32)
    out = (2, -(-height // stride), -(-width // stride), units)
    options = ("Conv2DOptions", {"padding": 0, "strideH": stride, "strideW": stride})
    operands = [T("f32", x.shape), T("f32", w.shape, data=w), T("f32", b.shape, data=b)]
    return single("CONV_2D", options, operands, [T("f32", out)]), x


def _depthwise(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    taps, depth, size = int(rng.choice([2, 3, 4, 5])), int(rng.integers(1, 20)), int(rng.integers(1, 9))
    x = rng.standard_normal((1, size, size, depth)).astype(np.float32)
    w = rng.standard_normal((1, taps, taps, depth)).astype(np.float32)
    b = rng.standard_normal(depth).astype(np.float32)
    options = ("DepthwiseConv2DOptions", {"padding": 0, "strideH": 1, "strideW": 1, "depthMultiplier": 1})
    operands = [T("f32", x.shape), T("f32", w.shape, data=w), T("f32", b.shape, data=b)]
    return single("DEPTHWISE_CONV_2D", options, operands, [T("f32", x.shape)]), x


@pytest.mark.parametrize("numerics", ["xnnpack@aarch64", "litert@aarch64"])
@pytest.mark.parametrize("build", [_layer, _convolution, _depthwise])
def test_native_is_the_reference(build: Build, numerics: str, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(request.config.option.seed)
    for _ in range(12):
        content, x = build(rng)
        model = bittrue.load(content)
        (expected,) = model.prepare(numerics, executor="reference").run(x).values()
        for isa in bittrue.isas():
            session = model.prepare(numerics, executor="native", isa=isa)
            assert "reference" not in str(session.plan).split("native executor")[1]
            (found,) = session.run(x).values()
            assert found.tobytes() == expected.tobytes(), (isa, str(session.plan))

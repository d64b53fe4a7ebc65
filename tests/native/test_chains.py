"""Sums of products in an order, some in several chains, and extremes by signs: native = reference, on all instruction
sets, of one position and of many, and no step is left to the reference.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bittrue
from support.build import T, single

Build = Callable[[np.random.Generator], tuple[bytes, list[np.ndarray]]]


def _layer(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    rows, depth, units = int(rng.choice([1, 2, 30])), int(rng.integers(1, 40)), int(rng.choice([1, 7, 8, 9, 40, 101]))
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, depth), (units, depth), (units,)))
    operands = [T("f32", x.shape), T("f32", w.shape, data=w), T("f32", b.shape, data=b)]
    options: tuple[str, dict[str, int]] = ("FullyConnectedOptions", {})
    return single("FULLY_CONNECTED", options, operands, [T("f32", (rows, units))]), [x]


def _convolution(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    taps, units, depth = int(rng.choice([1, 3])), int(rng.choice([3, 8, 9])), int(rng.integers(1, 20))
    height, width = (int(rng.choice([1, 2, 7])) for _ in range(2))
    stride = int(rng.choice([1, 2]))
    x = rng.standard_normal((2, height, width, depth)).astype(np.float32)
    w = rng.standard_normal((units, taps, taps, depth)).astype(np.float32)
    b = rng.standard_normal(units).astype(np.float32)
    out = (2, -(-height // stride), -(-width // stride), units)
    options = ("Conv2DOptions", {"padding": 0, "strideH": stride, "strideW": stride})
    operands = [T("f32", x.shape), T("f32", w.shape, data=w), T("f32", b.shape, data=b)]
    return single("CONV_2D", options, operands, [T("f32", out)]), [x]


def _depthwise(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    taps, depth, size = int(rng.choice([2, 3, 4, 5])), int(rng.integers(1, 20)), int(rng.integers(1, 9))
    x = rng.standard_normal((1, size, size, depth)).astype(np.float32)
    w = rng.standard_normal((1, taps, taps, depth)).astype(np.float32)
    b = rng.standard_normal(depth).astype(np.float32)
    options = ("DepthwiseConv2DOptions", {"padding": 0, "strideH": 1, "strideW": 1, "depthMultiplier": 1})
    operands = [T("f32", x.shape), T("f32", w.shape, data=w), T("f32", b.shape, data=b)]
    return single("DEPTHWISE_CONV_2D", options, operands, [T("f32", x.shape)]), [x]


def _transposed(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    taps, units, depth = int(rng.choice([1, 2, 3, 5])), int(rng.choice([3, 8, 9, 70])), int(rng.integers(1, 20))
    height, width, stride = int(rng.integers(1, 6)), int(rng.choice([1, 3, 60])), int(rng.integers(1, 4))
    padding = int(rng.integers(2))
    out = [(size - 1) * stride + (taps if padding else 1) for size in (height, width)]
    batch = int(rng.integers(1, 3))
    x = rng.standard_normal((batch, height, width, depth)).astype(np.float32)
    w = rng.standard_normal((units, taps, taps, depth)).astype(np.float32)
    b = rng.choice(np.array([-0.0, 0, 1, 2.5], np.float32), units)
    shape = np.array([batch, *out, units], np.int32)
    operands = [T("s32", (4,), data=shape), T("f32", w.shape, data=w), T("f32", x.shape), T("f32", b.shape, data=b)]
    options = ("TransposeConvOptions", {"padding": padding, "strideH": stride, "strideW": stride})
    return single("TRANSPOSE_CONV", options, operands[: 3 + int(rng.integers(2))], [T("f32", tuple(shape))]), [x]


def _volume(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    back, constant = bool(rng.integers(2)), bool(rng.integers(3))
    taps, strides = ([int(n) for n in rng.integers(1, 4, 3)] for _ in range(2))
    units, depth, size = int(rng.choice([1, 8, 40])), int(rng.integers(1, 20)), [int(n) for n in rng.integers(1, 6, 3)]
    x = rng.standard_normal((2, *size, depth)).astype(np.float32)
    w = rng.standard_normal((*taps, units, depth) if back else (*taps, depth, units)).astype(np.float32)
    b = rng.standard_normal(units).astype(np.float32)
    fields: dict[str, int] = {"padding": 0}
    for axis, stride in zip("DHW", strides, strict=True):
        fields |= {f"stride{axis}": stride, f"dilation{axis}Factor": 1}
    operands = [T("f32", x.shape), T("f32", w.shape, data=w if constant else None), T("f32", b.shape, data=b)]
    if back:
        # As many results as lie within the last stride, too.
        out = [(n - 1) * s + 1 + int(rng.integers(s)) for n, s in zip(size, strides, strict=True)]
        operands = [T("s32", (5,), data=np.array([2, *out, units])), operands[1], operands[0], operands[2]]
    feeds = [x] if constant else [w, x] if back else [x, w]
    name = "CONV_3D_TRANSPOSE" if back else "CONV_3D"
    return single(name, ("Conv3DOptions", fields), operands, [T("f32", ())]), feeds


def _products(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    rows, depth, units = int(rng.choice([1, 2, 30])), int(rng.integers(1, 40)), int(rng.choice([1, 7, 40, 101]))
    turned = [bool(rng.integers(2)) for _ in range(2)]
    batch = [(), (3,), (2, 3)][int(rng.integers(3))]
    x = rng.standard_normal((*batch, depth, rows) if turned[0] else (*batch, rows, depth)).astype(np.float32)
    y = rng.standard_normal((*batch[1:], units, depth) if turned[1] else (*batch[1:], depth, units)).astype(np.float32)
    constant = bool(rng.integers(2))
    operands = [T("f32", x.shape), T("f32", y.shape, data=y if constant else None)]
    options = ("BatchMatMulOptions", {"adjX": turned[0], "adjY": turned[1]})
    return single("BATCH_MATMUL", options, operands, [T("f32", (*batch, rows, units))]), [x] if constant else [x, y]


def _ends(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that are often equal, zeros of both signs, and perhaps NaN of two kinds."""
    some = np.array([-1, -0.0, 0, 1] if rng.integers(2) else [-0.0, 0, -2, np.inf, -np.inf, np.nan], np.float32)
    x = rng.choice(some, shape)
    x[np.isnan(x) & (rng.random(shape) < 0.5)] = np.uint32(0xFFA00001).view(np.float32)
    return np.asarray(x, np.float32)


def _larger(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    shape = tuple(int(n) for n in rng.integers(1, 12, 3))
    other = [shape, (shape[2],), (1,), (shape[0], 1, shape[2])][int(rng.integers(4))]
    feeds = [_ends(rng, one) for one in ((shape, other) if rng.integers(2) else (other, shape))]
    name = str(rng.choice(["MAXIMUM", "MINIMUM"]))
    operands = [T("f32", feed.shape) for feed in feeds]
    return single(name, ("MaximumMinimumOptions", {}), operands, [T("f32", shape)]), feeds


def _limited(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    x = _ends(rng, (int(rng.integers(1, 40)),))
    return single(str(rng.choice(["RELU", "RELU6", "RELU_N1_TO_1"])), None, [T("f32", x.shape)], [T("f32", x.shape)]), [
        x
    ]


def _largest(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 70, 200], 3))
    axes = np.flatnonzero(rng.random(3) < 0.5).astype(np.int32)
    x = _ends(rng, shape)
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    operands = [T("f32", shape), T("s32", axes.shape, data=axes)]
    name = str(rng.choice(["REDUCE_MAX", "REDUCE_MIN"]))
    return single(name, ("ReducerOptions", {"keepDims": True}), operands, [T("f32", kept)]), [x]


def _check(build: Build, numerics: str, rng: np.random.Generator) -> None:
    content, feeds = build(rng)
    model = bittrue.load(content)
    (expected,) = model.prepare(numerics, executor="reference").run(*feeds).values()
    for isa in bittrue.isas():
        session = model.prepare(numerics, executor="native", isa=isa)
        assert not session.missing, session.missing
        (found,) = session.run(*feeds).values()
        assert found.tobytes() == expected.tobytes(), (isa, str(session.plan))


@pytest.mark.parametrize("numerics", ["xnnpack@aarch64", "litert@aarch64"])
@pytest.mark.parametrize("build", [_layer, _convolution, _depthwise])
def test_native_is_the_reference(build: Build, numerics: str, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(request.config.option.seed)
    for _ in range(12):
        _check(build, numerics, rng)


@pytest.mark.parametrize("numerics", ["xnnpack@aarch64", "xnnpack", "litert@aarch64", "litert"])
@pytest.mark.parametrize("build", [_transposed, _volume, _products, _larger, _limited, _largest])
def test_orders_of_every_form(build: Build, numerics: str, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(request.config.option.seed)
    for _ in range(25):
        _check(build, numerics, rng)


@pytest.mark.parametrize("numerics", ["xnnpack@aarch64", "litert@aarch64"])
@pytest.mark.parametrize("build", [_transposed, _volume, _products])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_no_number(build: Build, numerics: str, odd: float, request: pytest.FixtureRequest) -> None:
    """Where sums become NaN, the reference tells which."""
    rng = np.random.default_rng(request.config.option.seed)

    def with_odd(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
        content, feeds = build(rng)
        for feed in feeds:
            feed.reshape(-1)[rng.integers(0, feed.size, 3)] = odd * np.float32(rng.choice([-1, 1]))
        return content, feeds

    for _ in range(6):
        _check(with_odd, numerics, rng)

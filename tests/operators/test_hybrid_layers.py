"""Layers with real activations and integer weights against the real runtime."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.native import check_native, needs_native
from support.strategies import activations, scales, seeds

ENDS = {"s8": 127, "s4": 7, "s2": 1}


def activity(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Real inputs; "ties" lie around the middle of two steps of both quantizations."""
    found = rng.standard_normal(shape).astype(np.float32)
    if kind == "positive":
        found = np.abs(found)
    if kind == "negative":
        found = -np.abs(found) - np.float32(3)
    if kind == "ties" and found.size:
        found = (rng.integers(-127, 128, shape) + np.float32(0.5)) / np.float32(rng.choice([1, 4, 7]))
        found = np.nextafter(found, np.float32(np.inf) * rng.choice([-1, 1, 1], shape)).astype(np.float32)
        found = np.where(rng.random(shape) < 0.2, np.float32(0.49999997), found).astype(np.float32)
    if kind == "tiny":
        found *= np.float32(1e-39)
    if kind == "small":
        found *= np.float32(1e-37)
    if kind == "huge":
        found = np.clip(found, -3, 3) * np.float32(1e38)
    if kind == "zero":
        found[...] = rng.choice([0.0, -0.0])
    found[rng.random(shape) < 0.05] = 0.0
    return found


ACTIVITY = st.sampled_from(
    ["normal", "normal", "positive", "negative", "ties", "ties", "tiny", "small", "huge", "zero"]
)


def integers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], lowest: bool) -> np.ndarray:
    end = ENDS[dtype]
    found = rng.integers(-end, end, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.2, -end - 1, found) if lowest else found


@st.composite
def convolution(draw: st.DrawFn, depthwise: bool) -> tuple[bytes, list[np.ndarray]]:
    groups = 1 if depthwise else draw(st.sampled_from([1, 1, 1, 2]))
    depth, filters = draw(st.integers(1, 9)), draw(st.integers(1, 9)) * groups
    taps = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    rng = np.random.default_rng(draw(seeds))
    options: dict[str, int] = {
        "padding": draw(st.integers(0, 1)),
        "strideW": draw(st.integers(1, 3)),
        "strideH": draw(st.integers(1, 3)),
        "fusedActivationFunction": draw(activations),
        "dilationWFactor": draw(st.sampled_from([1, 1, 2])),
        "dilationHFactor": draw(st.sampled_from([1, 1, 2])),
    }
    if depthwise:
        multiplier = draw(st.integers(1, 3))
        channels, filters, shape = depth, depth * multiplier, (1, *taps, depth * multiplier)
        options["depthMultiplier"] = multiplier
    else:
        channels, shape = depth * groups, (filters, *taps, depth)
    dtype = "s8" if depthwise else draw(st.sampled_from(["s8", "s8", "s4"]))
    form = draw(st.sampled_from(["differ", "same", "one"]))
    if depthwise or groups > 1:
        form = "differ"
    scale = [draw(scales(1e-3, 0.1)) for _ in range(filters if form == "differ" else 1)]
    if groups > 1:
        scale[0], scale[1] = 0.25, 0.125
    if form == "same":
        scale = scale * filters
    axis = 3 if depthwise else 0
    w = T(dtype, shape, scale, 0, axis, integers(rng, dtype, shape, draw(st.booleans())))
    bias = (rng.standard_normal(filters) * draw(st.sampled_from([0.0, 1.0, 1e30]))).astype(np.float32)
    b = T("f32", (filters,), data=bias) if not depthwise or draw(st.integers(0, 3)) else None
    image = (draw(st.integers(1, 2)), draw(st.integers(1, 9)), draw(st.integers(1, 9)), channels)
    x = activity(rng, image, draw(ACTIVITY))
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    inputs = [T("f32", x.shape), w, *([] if b is None else [b])]
    return single(name, (table, options), inputs, [T("f32", ())], version=6), [x]


@given(convolution(False))
def test_conv2d(case: tuple[bytes, list[np.ndarray]]) -> None:
    check(case[0], [case[1]])


@given(convolution(True))
def test_depthwise_conv2d(case: tuple[bytes, list[np.ndarray]]) -> None:
    check(case[0], [case[1]])


def layer(x: np.ndarray, w: T, bias: np.ndarray | None, **options: object) -> bytes:
    third = None if bias is None else T("f32", bias.shape, data=bias)
    inputs = [T("f32", x.shape), w, third]
    return single("FULLY_CONNECTED", ("FullyConnectedOptions", options), inputs, [T("f32", ())], version=10)


@given(
    rows=st.integers(1, 5),
    depth=st.integers(1, 70),
    units=st.integers(1, 20),
    dtype=st.sampled_from(["s8", "s8", "s4", "s2"]),
    asymmetric=st.booleans(),
    lowest=st.booleans(),
    activation=activations,
    kind=ACTIVITY,
    data=st.data(),
)
def test_fully_connected(
    rows: int,
    depth: int,
    units: int,
    dtype: str,
    asymmetric: bool,
    lowest: bool,
    activation: int,
    kind: str,
    data: st.DataObject,
) -> None:
    rng = np.random.default_rng(data.draw(seeds))
    x = activity(rng, (rows, depth), kind)
    if rows > 1 and data.draw(st.booleans()):
        x[1] = 0
    per_axis = data.draw(st.booleans())
    scale = [data.draw(scales(1e-3, 0.1)) for _ in range(units if per_axis else 1)]
    w = T(dtype, (units, depth), scale, 0, 0, integers(rng, dtype, (units, depth), lowest))
    bias = data.draw(st.sampled_from([None, 0.0, 1.0]))
    third = None if bias is None else (rng.standard_normal(units) * bias).astype(np.float32)
    content = layer(x, w, third, asymmetricQuantizeInputs=asymmetric, fusedActivationFunction=activation)
    check(content, [[x], [x[::-1].copy()]])


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("shape", [(1, 1000, 33), (7, 513, 16), (3, 4099, 5)])
def test_long_rows(shape: tuple[int, int, int], asymmetric: bool) -> None:
    rows, depth, units = shape
    rng = np.random.default_rng(depth)
    x = activity(rng, (rows, depth), "normal")
    w = T("s8", (units, depth), [0.01] * units, 0, 0, integers(rng, "s8", (units, depth), True))
    assert check(layer(x, w, None, asymmetricQuantizeInputs=asymmetric), [[x]]) == "equal"


@pytest.mark.skipif(platform.machine() == "aarch64", reason="rows whose range overflows give 0 there, a recorded limit")
@pytest.mark.numerics("xnnpack")
@pytest.mark.parametrize("activation", range(4))
@pytest.mark.parametrize("dtype", ["s8", "s4", "s2"])
def test_a_range_that_overflows(dtype: str, activation: int) -> None:
    """No result is a number then, and what becomes of it is a matter of the kernel."""
    x = np.zeros((1, 16), np.float32)
    x[0, :2] = 1.3e38, -2.3e38
    w = T(dtype, (2, 16), [0.001], data=np.eye(2, 16))
    assert check(layer(x, w, None, fusedActivationFunction=activation), [[x]]) == "equal"


@pytest.mark.parametrize("depth", [2047, 2048, 2064, 4099])
def test_sums_of_weights_wrap_at_16_bits(depth: int) -> None:
    x = np.abs(activity(np.random.default_rng(1), (3, depth), "normal"))
    w = T("s8", (4, depth), [0.01] * 4, data=np.full((4, depth), 127))
    assert check(layer(x, w, None, asymmetricQuantizeInputs=True), [[x]]) == "equal"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_cannot_be_quantized_is_refused(value: float) -> None:
    x = np.float32([[1, value]])
    session = bittrue.load(layer(x, T("s8", (1, 2), 0.5, data=np.ones((1, 2))), None)).prepare()
    with pytest.raises(bittrue.RunError, match="BT-RUN-NOT-FINITE"):
        session.run(x)


def test_values_by_hand() -> None:
    """[127, -1] has scale 1, so the sum is 3 * 127 - 4 = 377, in steps of 0.5, plus 1."""
    x = np.float32([[127, -1]])
    session = bittrue.load(layer(x, T("s8", (1, 2), 0.5, data=np.int8([[3, 4]])), np.float32([1]))).prepare()
    assert next(iter(session.run(x).values())).tolist() == [[189.5]]


def test_groups_need_scales_of_their_own() -> None:
    w = T("s8", (2, 1, 1, 1), 0.5, data=np.ones((2, 1, 1, 1)))
    inputs = [T("f32", (1, 1, 1, 2)), w, T("f32", (2,), data=np.zeros(2))]
    content = single("CONV_2D", ("Conv2DOptions", {"strideW": 1, "strideH": 1}), inputs, [T("f32", ())], version=2)
    with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-AXIS"):
        bittrue.load(content).prepare()


@pytest.mark.parametrize(("scale", "multiplier", "code"), [([0.5], 1, "AXIS"), ([0.5, 0.25], 2, "CHANNELS")])
def test_depthwise_needs_scales_and_multiplier(scale: list[float], multiplier: int, code: str) -> None:
    w = T("s8", (1, 1, 1, 2), scale, 0, 3, np.ones((1, 1, 1, 2)))
    options = {"strideW": 1, "strideH": 1, "depthMultiplier": multiplier}
    inputs = [T("f32", (1, 1, 1, 2)), w, T("f32", (2,), data=np.zeros(2))]
    content = single("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", options), inputs, [T("f32", ())], version=6)
    with pytest.raises(bittrue.InvalidModelError, match=code):
        bittrue.load(content).prepare()


def test_computed_weights() -> None:
    """Symmetric rows only: the kernel keeps the weights' sums of the first run."""
    x, w = np.float32([[1, 2]]), T("s8", (1, 2), 0.5)
    assert check(layer(x, w, None), [[x, np.int8([[3, 4]])], [x, np.int8([[-5, 4]])]]) == "equal"
    with pytest.raises(bittrue.UnsupportedError, match="BT-FC-COMPUTED"):
        bittrue.load(layer(x, w, None, asymmetricQuantizeInputs=True)).prepare()


@needs_native
@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 40])
def test_threads(rows: int, asymmetric: bool) -> None:
    """Rows that several threads quantize, whole or in parts, and sums in pieces that are exact in binary32."""
    rng = np.random.default_rng(rows)
    x = activity(rng, (rows, 2051), "ties")
    w = T("s8", (70, 2051), [0.01] * 70, 0, 0, integers(rng, "s8", (70, 2051), False))
    session = bittrue.load(layer(x, w, None, asymmetricQuantizeInputs=asymmetric)).prepare(executor="reference")
    check_native(session, [[x]], session.trace(x), threads=(1, 2, 5))


@needs_native
def test_images_in_pieces() -> None:
    """Sums beyond 2^24 in binary32: taps and channels are added up in pieces."""
    rng = np.random.default_rng(3)
    for depth in (600, 300, 40):
        x = np.abs(activity(rng, (2, 5, 6, depth), "normal"))
        w = T("s8", (9, 3, 3, depth), [0.01 * (i + 1) for i in range(9)], data=np.full((9, 3, 3, depth), 127))
        inputs = [T("f32", x.shape), w, T("f32", (9,), data=np.arange(9))]
        content = single("CONV_2D", ("Conv2DOptions", {"strideW": 1, "strideH": 1}), inputs, [T("f32", ())], version=5)
        assert check(content, [[x]]) == "equal"
        session = bittrue.load(content).prepare(executor="reference")
        check_native(session, [[x]], session.trace(x), threads=(3,))

"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED on real numbers against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.strategies import activations, seeds

KINDS = ("normal", "wide", "subnormal", "huge", "infinite", "nan")
# NaNs of one kind only: which of several stays depends on how the runtime's loops are unrolled.
NAN = np.uint32(0xFFC00000).view(np.float32)


def values(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Normal numbers, or ones whose sums round, underflow, overflow, or are invalid."""
    found = rng.standard_normal(shape).astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        if kind == "wide":
            found *= np.exp2(rng.integers(-60, 60, shape)).astype(np.float32)
        if kind == "subnormal":
            found *= np.float32(1e-22)
        if kind == "huge":
            found *= np.float32(1e19)
    found[rng.random(shape) < 0.1] = 0.0
    found[rng.random(shape) < 0.05] = -0.0
    if kind in ("infinite", "nan"):
        found[rng.random(shape) < 0.05] = np.inf
        found[rng.random(shape) < 0.05] = -np.inf
    if kind == "nan":
        found[rng.random(shape) < 0.05] = NAN
    return found


@st.composite
def convolution(draw: st.DrawFn, depthwise: bool) -> tuple[bytes, list[np.ndarray]]:
    groups = 1 if depthwise else draw(st.sampled_from([1, 1, 1, 2, 3]))
    depth, filters = draw(st.integers(1, 9)), draw(st.one_of(st.integers(1, 7), st.integers(1, 40))) * groups
    taps = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(KINDS))
    options: dict[str, int] = {}
    if depthwise:
        multiplier = draw(st.integers(1, 5))
        channels, filters, shape = depth, depth * multiplier, (1, *taps, depth * multiplier)
        options["depthMultiplier"] = draw(st.sampled_from([0, 1, multiplier]))
    else:
        channels, shape = depth * groups, (filters, *taps, depth)
    options |= {
        "padding": draw(st.integers(0, 1)),
        "strideW": draw(st.integers(1, 3)),
        "strideH": draw(st.integers(1, 3)),
        "fusedActivationFunction": draw(activations),
        "dilationWFactor": draw(st.sampled_from([1, 1, 2])),
        "dilationHFactor": draw(st.sampled_from([1, 1, 2])),
    }
    x = values(rng, (draw(st.integers(1, 2)), draw(st.integers(1, 9)), draw(st.integers(1, 9)), channels), kind)
    w, b = values(rng, shape, draw(st.sampled_from([kind, "normal"]))), values(rng, (filters,), kind)
    constant = draw(st.integers(0, 3)) > 0
    weights = T("f32", shape, data=w if constant else None)
    bias = T("f32", (filters,), data=b) if not depthwise or draw(st.integers(0, 3)) else None
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    inputs = [T("f32", x.shape), weights, *([] if bias is None else [bias])]
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    content = single(name, (table, options), inputs, [T("f32", ())], version=2)
    return content, [x] if constant else [x, w]


@given(convolution(False))
def test_conv2d(case: tuple[bytes, list[np.ndarray]]) -> None:
    check(case[0], [case[1]])


@given(convolution(True))
def test_depthwise_conv2d(case: tuple[bytes, list[np.ndarray]]) -> None:
    check(case[0], [case[1]])


def layer(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, constant: bool = True, **options: object
) -> tuple[bytes, list[np.ndarray]]:
    weights = T("f32", w.shape, data=w if constant else None)
    third = None if bias is None else T("f32", bias.shape, data=bias)
    inputs = [T("f32", x.shape), weights, third]
    content = single("FULLY_CONNECTED", ("FullyConnectedOptions", options), inputs, [T("f32", ())], version=5)
    return content, [x] if constant else [x, w]


@given(
    leading=st.lists(st.integers(1, 4), max_size=3),
    depth=st.integers(1, 40),
    units=st.integers(1, 40),
    keep=st.booleans(),
    activation=activations,
    kind=st.sampled_from(KINDS),
    constant=st.booleans(),
    with_bias=st.booleans(),
    seed=seeds,
)
def test_fully_connected(
    leading: list[int],
    depth: int,
    units: int,
    keep: bool,
    activation: int,
    kind: str,
    constant: bool,
    with_bias: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    x, w = values(rng, (*leading, depth), kind), values(rng, (units, depth), kind)
    bias = values(rng, (units,), kind) if with_bias else None
    content, feed = layer(x, w, bias, constant, keepNumDims=keep, fusedActivationFunction=activation)
    check(content, [feed])


@pytest.mark.parametrize(("depth", "units", "rows"), [(4099, 33, 3), (257, 1001, 1), (5000, 2, 9)])
def test_long_sums(depth: int, units: int, rows: int) -> None:
    """Thousands of roundings: any other order would show."""
    rng = np.random.default_rng(depth)
    x, w = values(rng, (rows, depth), "normal"), values(rng, (units, depth), "normal")
    content, feed = layer(x, w, values(rng, (units,), "normal"))
    assert check(content, [feed]) == "equal"


@pytest.mark.parametrize("shape", [(1, 12, 13, 24, 3, 40), (1, 9, 9, 3, 5, 70), (2, 7, 7, 130, 1, 19)])
def test_larger_images(shape: tuple[int, ...]) -> None:
    batch, height, width, depth, taps, filters = shape
    rng = np.random.default_rng(7)
    x = values(rng, (batch, height, width, depth), "normal")
    w, b = values(rng, (filters, taps, taps, depth), "normal"), values(rng, (filters,), "normal")
    for stride in (1, 2):
        content = single(
            "CONV_2D",
            ("Conv2DOptions", {"strideW": stride, "strideH": stride}),
            [T("f32", x.shape), T("f32", w.shape, data=w), T("f32", b.shape, data=b)],
            [T("f32", ())],
        )
        assert check(content, [[x]]) == "equal"


def test_padding_meets_no_infinite_weight() -> None:
    """Positions outside of the image are left out: 0 times an infinite weight would be NaN."""
    w = np.full((1, 3, 3, 1), np.inf, np.float32)
    content = single(
        "CONV_2D",
        ("Conv2DOptions", {"strideW": 1, "strideH": 1}),
        [T("f32", (1, 2, 2, 1)), T("f32", w.shape, data=w), T("f32", (1,), data=np.zeros(1))],
        [T("f32", ())],
    )
    x = np.ones((1, 2, 2, 1), np.float32)
    assert check(content, [[x]]) == "equal"
    stored = next(iter(bittrue.load(content).prepare().run(x).values()))
    assert (stored == np.finfo(np.float32).max).all()


def test_order_by_hand() -> None:
    """(2^24 + 1) + 1 loses both ones, (1 + 1) + 2^24 none."""
    weights = np.float32([[2**24, 1, 1], [1, 1, 2**24]])
    content, feed = layer(np.ones((1, 3), np.float32), weights, None)
    stored = next(iter(bittrue.load(content).prepare().run(*feed).values()))
    assert stored.tolist() == [[2.0**24, 2.0**24 + 2]]


@pytest.mark.parametrize("activation", [4, 5])
def test_other_fused_activations_are_refused(activation: int) -> None:
    x = np.ones((1, 3), np.float32)
    content, feed = layer(x, x, None, fusedActivationFunction=activation)
    assert check(content, [feed]) == "refused"

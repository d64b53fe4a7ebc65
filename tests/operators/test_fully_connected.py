"""fully_connected against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support import differential
from support.build import T, single
from support.differential import assert_same, check, feeds_for
from support.oracle import oracle
from support.strategies import activations, scales, seeded, seeds, zero_points

# input, weights, output
KINDS = {
    "s8": ("s8", "s8", "s8"),
    "s8s4": ("s8", "s4", "s8"),
    "s8s2": ("s8", "s2", "s8"),
    "u8": ("u8", "u8", "u8"),
    "u8s16": ("u8", "u8", "s16"),
    "s16s8": ("s16", "s8", "s16"),
    "s16s4": ("s16", "s4", "s16"),
    "s16s2": ("s16", "s2", "s16"),
    "s16s16": ("s16", "s16", "s16"),
}
NUMBER = {"f32": 0, "s32": 2, "s64": 4, "s8": 9}


def model(x: T, w: T, bias: T | None, y: T, **options: object) -> bytes:
    version = 11 if options.get("quantizedBiasType") else 4
    return single("FULLY_CONNECTED", ("FullyConnectedOptions", options), [x, w, bias], [y], version=version)


@st.composite
def layer(draw: st.DrawFn, kind: str) -> tuple[bytes, int]:
    """Some draws break a condition of the kernel (16-bit zero points, fused tanh, bias scale): both sides refuse."""
    source, weight, target = KINDS[kind]
    units, depth, seed = draw(st.integers(1, 9)), draw(st.integers(1, 20)), draw(seeds)
    keep = draw(st.booleans())
    leading = draw(st.lists(st.integers(1, 4), max_size=3))
    shape = (*leading, depth)
    if not keep and draw(st.booleans()):
        # rows need not follow the last axis
        shape = (depth, *leading)
    per_axis = weight != "u8" and draw(st.booleans())
    low, high = (1e-5, 1e-3) if source == "s16" else (1e-3, 0.5)
    input_scale = draw(scales(low, high))
    weight_low = 1e-6 if weight == "s16" else 1e-3
    weight_scale = [draw(scales(weight_low, 0.1)) for _ in range(units)] if per_axis else draw(scales(weight_low, 0.1))
    weight_zero = draw(
        st.sampled_from([0, 0, 3]) if weight in ("s2", "s4", "s16") else st.one_of(st.just(0), zero_points(weight))
    )
    input_zero = draw(st.sampled_from([0] * 9 + [1]) if source == "s16" else zero_points(source))
    output_zero = draw(st.sampled_from([0] * 9 + [1]) if target == "s16" else zero_points(target))
    output_scale = draw(scales(low, 4.0))
    options = {
        "keepNumDims": keep,
        "fusedActivationFunction": draw(st.one_of(activations, st.sampled_from([0] * 5 + [4]))),
    }
    bias_type = draw(st.sampled_from(["s32", "s64"])) if source == "s16" else "s32"
    bias = None
    if kind == "u8s16" or draw(st.integers(0, 3)):  # that kernel reads the bias without asking whether there is one
        large = draw(st.sampled_from([100, 30000, 2**31 - 1]))
        bias_scale = np.float32(input_scale) * np.atleast_1d(np.float32(weight_scale))
        bias_scale = bias_scale * np.float32(draw(st.sampled_from([1.0] * 8 + [1.5])))
        values = np.random.default_rng(seed).integers(-large - 1, large, units, endpoint=True)
        bias = T(bias_type, (units,), bias_scale.tolist(), 0, 0, values)
    if source == "s16":
        # unset means s64 beside 8-bit weights and s32 beside 16-bit ones; reading a bias as the other is undefined
        default = "s32" if weight == "s16" else "s64"
        unset = bias is None or bias_type == default
        options["quantizedBiasType"] = NUMBER[draw(st.sampled_from(["f32", bias_type] if unset else [bias_type]))]
    constant = draw(st.integers(0, 4)) or weight in ("s2", "s4")
    data = seeded(weight, (units, depth), seed) if constant else None
    w = T(weight, (units, depth), weight_scale, weight_zero, 0, data)
    y = T(target, (), output_scale, output_zero)
    return model(T(source, shape, input_scale, input_zero), w, bias, y, **options), seed


@pytest.mark.in_turns(2)
@given(st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_layers(kind: str, data: st.DataObject) -> None:
    content, seed = data.draw(layer(kind))
    check(content, feeds_for(content, seed))


END = 2**31
EXTREME = st.sampled_from([-END, 1 - END, END - 1, -129, 128, 65536, -65537]) | st.integers(-END, END - 1)


@given(seed=seeds, x=EXTREME, w=EXTREME, constant=st.booleans(), depth=st.integers(1, 300))
def test_zero_points_far_outside_of_their_type(seed: int, x: int, w: int, constant: bool, depth: int) -> None:
    """Differences and products leave 32 bits; registers keep the low ones. Vector kernels have results of their own."""
    weights = T("s8", (3, depth), 0.01, w, 0, seeded("s8", (3, depth), seed) if constant else None)
    bias = T("s32", (3,), 0.0001, 0, 0, np.array([END - 1, -END, 7]))
    content = model(T("s8", (2, depth), 0.01, x), weights, bias, T("s8", (), 4.0, 3))
    fit = all(-128 <= zero_point <= 127 for zero_point in (x, w))
    refused = () if fit or differential.COMPARED == "litert" else ("BT-QUANT-ZERO-POINT",)
    check(content, feeds_for(content, seed), may_refuse=refused)


@pytest.mark.parametrize("scale", [0.0003, 0.0011])
@pytest.mark.parametrize("zero_point", [-128, -1, 0, 127])
def test_results_beyond_32_bits(zero_point: int, scale: float) -> None:
    """Factors above 1 of sums near both ends of 32 bits."""
    bias = np.array([END - 1, 5 - END, END // 2, -END // 2, -(2**30) - 7, 5])
    weights = T("s8", (6, 4), 0.05, 0, 0, seeded("s8", (6, 4), 1))
    values = T("s32", (6,), float(np.float32(0.05) * np.float32(0.02)), 0, 0, bias)
    content = model(T("s8", (2, 4), 0.02, 3), weights, values, T("s8", (), scale, zero_point))
    check(content, feeds_for(content, 1))


@given(seed=seeds, depth=st.sampled_from([255, 256, 600, 2048]), extreme=st.sampled_from([-128, 127]))
def test_long_rows(seed: int, depth: int, extreme: int) -> None:
    """Sums beyond 2^24, where binary32 accumulation would round, and a bias that wraps the accumulator."""
    weights = np.full((2, depth), extreme, np.int8)
    weights[1] = seeded("s8", (depth,), seed)
    bias = T("s32", (2,), 0.0001, 0, 0, np.array([2**31 - 1, 7]))
    content = model(
        T("s8", (2, depth), 0.01, -128), T("s8", (2, depth), 0.01, 0, 0, weights), bias, T("s8", (), 4.0, 3)
    )
    check(content, feeds_for(content, seed))


@pytest.mark.parametrize("per_axis", [False, True])
def test_multiplier_of_16_bit_weights(per_axis: bool) -> None:
    """The 15-bit multipliers are 18337 (one scale, product in binary32) and 18338 (per axis, binary64)."""
    scale = [0.0020019656512886286] * 2 if per_axis else 0.0020019656512886286
    w = T("s16", (2, 1), scale, 0, 0, np.int16([[1800], [-1800]]))
    content = model(T("s16", (3, 1), 0.00048048104508779943), w, None, T("s16", (), 5.5003794841468334e-05))
    feed = np.int16([[1000], [-1000], [999]])
    result = bittrue.load(content).prepare().run(feed)["t2"]
    assert int(result[0, 0]) == (1800000 * (18338 if per_axis else 18337) + 2**19) >> 20
    assert_same("t2", result, oracle().run(content, [[feed]], [2]).values[2])


def test_values_by_hand() -> None:
    """2*3 + 1*4 + 5 = 15, times 0.5*0.5/0.5; half a step goes away from zero, below zero, too."""
    x, y = T("s8", (1, 2), 0.5, 1), T("s8", (), 0.5, -1)
    w = T("s8", (2, 2), 0.5, 0, 0, np.int8([[3, 4], [-3, -4]]))
    content = model(x, w, T("s32", (2,), 0.25, 0, 0, np.int32([5, -5])), y)
    assert bittrue.load(content).prepare().run(np.int8([[3, 2]]))["t3"].tolist() == [[7, -9]]


def test_uneven_rows_are_refused() -> None:
    """The kernel would drop the elements that are left over."""
    w = T("s8", (2, 3), 0.5, 0, 0, np.zeros((2, 3), np.int8))
    with pytest.raises(bittrue.InvalidModelError, match="BT-FC-DEPTH"):
        bittrue.load(model(T("s8", (4,), 0.5), w, None, T("s8", (), 0.5))).prepare()


@pytest.mark.parametrize(
    ("weight", "bias", "declared"), [("s8", "s32", "f32"), ("s16", "s64", "f32"), ("s8", "s64", "s32")]
)
def test_bias_read_as_another_type_is_refused(weight: str, bias: str, declared: str) -> None:
    w = T(weight, (1, 1), 0.5, 0, 0, np.zeros((1, 1)))
    content = model(
        T("s16", (1,), 0.5),
        w,
        T(bias, (1,), 0.25, data=np.zeros(1)),
        T("s16", (), 0.5),
        quantizedBiasType=NUMBER[declared],
    )
    with pytest.raises(bittrue.InvalidModelError, match="BT-BIAS-TYPE"):
        bittrue.load(content).prepare()


def test_scales_along_the_wrong_axis_are_refused() -> None:
    w = T("s8", (2, 2), [0.5, 0.25], 0, 1, np.zeros((2, 2), np.int8))
    with pytest.raises(bittrue.InvalidModelError, match="BT-QUANT-AXIS"):
        bittrue.load(model(T("s8", (2,), 0.5), w, None, T("s8", (), 0.5))).prepare()


def test_shuffled_weights_are_unsupported() -> None:
    w = T("u8", (4, 16), 0.5, 0, 0, np.zeros((4, 16)))
    bias = T("s32", (4,), 0.25, 0, 0, np.zeros(4))
    with pytest.raises(bittrue.UnsupportedError, match="BT-FC-FORMAT"):
        bittrue.load(model(T("u8", (16,), 0.5), w, bias, T("u8", (), 0.5), weightsFormat=1)).prepare()

"""transpose_conv against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for, only_output
from support.strategies import activations, scales, seeded, seeds, zero_points


def output_sizes(size: int, taps: int, stride: int, padding: int) -> range:
    """Output dimensions whose convolution has `size` outputs."""
    if padding == 0:
        return range((size - 1) * stride + 1, size * stride + 1)
    return range((size - 1) * stride + taps, size * stride + taps)


@st.composite
def transposed(draw: st.DrawFn) -> tuple[bytes, int]:
    kind = draw(st.sampled_from(["s8", "s8", "u8", "s16", "f32", "hybrid"]))
    weight_type = {"u8": "u8", "f32": "f32"}.get(kind, "s8")
    kind, hybrid = ("f32", True) if kind == "hybrid" else (kind, False)
    bias_type = {"s16": draw(st.sampled_from(["s32", "s64"])), "f32": "f32"}.get(kind, "s32")
    filters, depth, padding = draw(st.integers(1, 20)), draw(st.integers(1, 9)), draw(st.integers(0, 1))
    sizes = []
    for _ in "hw":
        size, taps, stride = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
        out = draw(st.sampled_from(output_sizes(size, taps, stride, padding)))
        sizes.append((size, taps, stride, out))
    (height, taps_h, stride_h, out_h), (width, taps_w, stride_w, out_w) = sizes
    seed, batch = draw(seeds), draw(st.integers(1, 2))
    rng = np.random.default_rng(seed)
    plain = kind == "f32"
    per_axis = weight_type == "s8" and draw(st.booleans())
    weight_scale = [draw(scales(1e-3, 0.1)) for _ in range(filters)] if per_axis else draw(scales(1e-3, 0.1))
    input_scale = draw(scales(1e-3, 0.5))
    # Signed weights with a zero point are taken as if they had none.
    weight_zero_point = draw({"u8": zero_points("u8"), "f32": st.just(0)}.get(weight_type, st.sampled_from([0, 0, 7])))
    weight_shape = (filters, taps_h, taps_w, depth)
    large = draw(st.sampled_from([100, 30000, 2**31 - 1]))
    bias = rng.standard_normal(filters) if plain else rng.integers(-large - 1, large, filters, endpoint=True)
    bias_scale = (np.float32(input_scale) * np.float32(np.atleast_1d(weight_scale))).tolist()
    options = {
        "padding": padding,
        "strideW": stride_w,
        "strideH": stride_h,
        "fusedActivationFunction": draw(activations),
    }
    with_bias = draw(st.booleans())
    if kind == "s16":
        options["quantizedBiasType"] = 2 if with_bias and bias_type == "s32" else draw(st.sampled_from([0, 4]))
    shape = T("s32", (4,), data=np.array([batch, out_h, out_w, filters]))
    w = T(
        weight_type,
        weight_shape,
        None if plain and not hybrid else weight_scale,
        weight_zero_point,
        0,
        seeded(weight_type, weight_shape, seed) if draw(st.integers(0, 3)) else None,
    )
    x = T(kind, (batch, height, width, depth), None if plain else input_scale, 0 if plain else draw(zero_points(kind)))
    b = T(bias_type, (filters,), None if plain else bias_scale, 0, 0, bias)
    y = T(kind, (), None if plain else draw(scales(1e-3, 4.0)), 0 if plain else draw(zero_points(kind)))
    inputs = [shape, w, x, *([b] if with_bias else draw(st.sampled_from([[], [None]])))]
    return single("TRANSPOSE_CONV", ("TransposeConvOptions", options), inputs, [y], version=5), seed


@given(transposed())
def test_transpose_conv(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


def layer(kind: str, size: tuple[int, int, int], filters: int, taps: int, stride: int, out: tuple[int, int]) -> bytes:
    height, width, depth = size
    plain = kind == "f32"
    rng = np.random.default_rng(filters)
    weight_type = {"f32": "f32", "u8": "u8"}.get(kind, "s8")
    weights = seeded(weight_type, (filters, taps, taps, depth), filters)
    scale = None if plain else 0.01
    bias = rng.standard_normal(filters) if plain else rng.integers(-3000, 3000, filters)
    inputs = [
        T("s32", (4,), data=np.array([1, *out, filters])),
        T(weight_type, weights.shape, scale, 99 if kind == "u8" else 0, 0, weights),
        T(kind, (1, height, width, depth), scale, 0 if kind in ("s16", "f32") else 3),
        T({"f32": "f32", "s16": "s64"}.get(kind, "s32"), (filters,), None if plain else 0.0001, 0, 0, bias),
    ]
    y = T(kind, (), None if plain else 0.3, 0)
    options = {"padding": 0, "strideH": stride, "strideW": stride, "fusedActivationFunction": 0}
    return single("TRANSPOSE_CONV", ("TransposeConvOptions", options), inputs, [y], version=4)


@pytest.mark.parametrize("kind", ["s8", "u8", "s16", "f32"])
@pytest.mark.parametrize(
    ("size", "filters", "taps", "stride", "out"),
    [
        ((11, 13, 40), 70, 3, 2, (22, 26)),
        ((9, 33, 24), 1, 4, 2, (18, 65)),
        ((5, 40, 17), 3, 9, 3, (15, 118)),
        ((7, 6, 64), 21, 2, 2, (13, 12)),
        ((3, 3, 130), 5, 1, 3, (9, 7)),
    ],
)
def test_layers_of_models(
    kind: str, size: tuple[int, int, int], filters: int, taps: int, stride: int, out: tuple[int, int]
) -> None:
    """Shapes of decoders and super-resolution; sums of binary32 are long enough to show their order."""
    content = layer(kind, size, filters, taps, stride, out)
    assert check(content, feeds_for(content, 1)) == "equal"


def test_by_hand() -> None:
    """Two pixels 1 and 2, filter (10, 20, 30) with stride 2: 10, 20, 30 + 2 * 10, 2 * 20 (padding cuts the rest)."""
    shape = T("s32", (4,), data=np.array([1, 1, 4, 1]))
    w = T("s8", (1, 1, 3, 1), 1.0, data=np.array([10, 20, 30]))
    x, y = T("s8", (1, 1, 2, 1), 1.0), T("s8", (), 1.0)
    content = single("TRANSPOSE_CONV", ("TransposeConvOptions", {"strideW": 2, "strideH": 1}), [shape, w, x], [y])
    assert only_output(content, np.int8([1, 2]).reshape(1, 1, 2, 1)).reshape(-1).tolist() == [10, 20, 50, 40]
    assert check(content, feeds_for(content, 4)) == "equal"


@pytest.mark.parametrize("where", [np.nan, np.inf, -np.inf, 0.0])
def test_special_values(where: float) -> None:
    content = layer("f32", (4, 5, 3), 5, 3, 2, (8, 10))
    feeds = feeds_for(content, 1)
    feeds[0][0][0, 1, 2, 1] = where
    feeds[0][0][0, 3, 4, 0] = -where
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize(
    ("shape", "strides", "code"),
    [
        ([1, 5, 4, 2], (2, 2), "BT-SHAPE-OUTPUT"),
        ([2, 4, 4, 2], (2, 2), "BT-SHAPE-OUTPUT"),
        ([1, 4, 4, 3], (2, 2), "BT-SHAPE-OUTPUT"),
        ([1, 4, 4], (2, 2), "BT-SHAPE-OUTPUT"),
        ([1, 0, 4, 2], (2, 2), "BT-WINDOW"),
        ([1, 4, 4, 2], (0, 2), "BT-WINDOW"),
        ([1, 4, 4, 2], (2, 40000), "BT-WINDOW"),
    ],
)
def test_contradictions_are_refused(shape: list[int], strides: tuple[int, int], code: str) -> None:
    w = T("s8", (2, 3, 3, 2), 0.5, data=seeded("s8", (2, 3, 3, 2), 1))
    x, y = T("s8", (1, 2, 2, 2), 0.5), T("s8", (), 0.5)
    options = {"strideH": strides[0], "strideW": strides[1]}
    given = T("s32", (len(shape),), data=np.array(shape))
    content = single("TRANSPOSE_CONV", ("TransposeConvOptions", options), [given, w, x], [y])
    assert check(content, feeds_for(content, 1)) == "refused"
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code


@pytest.mark.parametrize("kind", ["s8", "s16", "f32"])
def test_an_output_shape_computed_at_run_time(kind: str) -> None:
    plain = kind == "f32"
    weights = seeded("f32" if plain else "s8", (2, 3, 3, 2), 1)
    w = T("f32" if plain else "s8", (2, 3, 3, 2), None if plain else 0.5, data=weights)
    x, y = T(kind, (1, 2, 2, 2), None if plain else 0.5), T(kind, (1, 4, 3, 2), None if plain else 9.0)
    options = {"strideH": 2, "strideW": 2}
    content = single("TRANSPOSE_CONV", ("TransposeConvOptions", options), [T("s32", (4,)), w, x], [y], version=3)
    feed = [np.int32([1, 4, 3, 2]), feeds_for(content, 1)[0][1]]
    assert check(content, [feed]) == "equal"
    for executor in ("reference", "native") if bittrue.isas() else ("reference",):
        with pytest.raises(bittrue.RunError, match="planned for") as caught:
            bittrue.load(content).prepare(executor=executor).run(np.int32([1, 4, 4, 2]), feed[1])
        assert caught.value.code == "BT-RUN-SHAPE"


@pytest.mark.parametrize(("declared", "kind"), [(0, "s32"), (2, "s64"), (4, "s32")])
def test_a_bias_of_another_type_than_declared_is_refused(declared: int, kind: str) -> None:
    """Kernels refuse it, or (nothing declared, s32 given) read it as 64-bit and past its end."""
    shape = T("s32", (4,), data=np.array([1, 2, 2, 1]))
    w = T("s8", (1, 1, 1, 1), 1.0, data=np.array([3]))
    x, b, y = T("s16", (1, 2, 2, 1), 1.0), T(kind, (1,), 1.0, data=np.array([5])), T("s16", (), 1.0)
    options = {"strideW": 1, "strideH": 1, "quantizedBiasType": declared}
    content = single("TRANSPOSE_CONV", ("TransposeConvOptions", options), [shape, w, x, b], [y], version=5)
    assert check(content, feeds_for(content, 4), may_refuse=("BT-BIAS-TYPE",)) == "refused"

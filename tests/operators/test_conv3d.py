"""conv3d and conv3d_transpose against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for, only_output
from support.strategies import activations, seeded, seeds


def options(
    padding: int, strides: tuple[int, ...], dilations: tuple[int, ...] = (1, 1, 1), activation: int = 0
) -> dict[str, int]:
    names = [f"{what}{axis}{end}" for what, end in (("stride", ""), ("dilation", "Factor")) for axis in "DHW"]
    return {
        **dict(zip(names, (*strides, *dilations), strict=True)),
        "padding": padding,
        "fusedActivationFunction": activation,
    }


@st.composite
def convolution(draw: st.DrawFn, transposed: bool = False) -> tuple[bytes, int]:
    batch, channels, filters = draw(st.integers(1, 2)), draw(st.integers(1, 5)), draw(st.integers(1, 10))
    padding, seed = draw(st.integers(0, 1)), draw(seeds)
    taps, strides, dilations, sizes, outs = [], [], [], [], []
    for _ in range(3):
        count, stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2]))
        size = draw(st.integers(1, 5))
        reach = (count - 1) * dilation + 1
        taps.append(count), strides.append(stride), dilations.append(dilation), sizes.append(size)
        outs.append((size - 1) * stride + (reach if padding else 1) + draw(st.integers(0, stride - 1)))
    made = options(padding, tuple(strides), tuple(dilations), draw(activations))
    bias = draw(st.sampled_from([[], [T("f32", (filters,), data=seeded("f32", (filters,), seed))]]))
    x = T("f32", (batch, *sizes, channels))
    shape = (*taps, filters, channels) if transposed else (*taps, channels, filters)
    w = T("f32", shape, data=seeded("f32", shape, seed) if draw(st.integers(0, 3)) else None)
    inputs = [x, w, *bias]
    if transposed:
        inputs = [T("s32", (5,), data=np.array([batch, *outs, filters])), w, x, *bias]
    name = "CONV_3D_TRANSPOSE" if transposed else "CONV_3D"
    return single(name, ("Conv3DOptions", made), inputs, [T("f32", ())]), seed


@given(convolution())
def test_conv3d(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@given(convolution(transposed=True))
def test_conv3d_transpose(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@pytest.mark.parametrize(("filters", "channels"), [(24, 33), (3, 70)])
@pytest.mark.parametrize("transposed", [False, True])
def test_long_sums(filters: int, channels: int, transposed: bool) -> None:
    """Sums of binary32 are long enough to show their order."""
    shape = (3, 3, 3, filters, channels) if transposed else (3, 3, 3, channels, filters)
    x, w = T("f32", (1, 4, 5, 9, channels)), T("f32", shape, data=seeded("f32", shape, 3))
    b = T("f32", (filters,), data=seeded("f32", (filters,), 4))
    inputs = [T("s32", (5,), data=np.array([1, 4, 10, 18, filters])), w, x, b] if transposed else [x, w, b]
    name = "CONV_3D_TRANSPOSE" if transposed else "CONV_3D"
    content = single(name, ("Conv3DOptions", options(0, (1, 2, 2))), inputs, [T("f32", ())])
    feeds = feeds_for(content, 1)
    feeds[0][0][0, 1, 2, 3, 1] = np.inf
    feeds[0][0][0, 2, 2, 5, 0] = np.nan
    assert check(content, feeds) == "equal"


def test_by_hand() -> None:
    """3 * (1, 2) + 5 with a filter of one tap; a stride of 2 leaves a gap that holds the bias."""
    x, b = T("f32", (1, 1, 1, 2, 1)), T("f32", (1,), data=np.float32([5]))
    w = T("f32", (1, 1, 1, 1, 1), data=np.float32([3]))
    content = single("CONV_3D", ("Conv3DOptions", options(0, (1, 1, 1))), [x, w, b], [T("f32", ())])
    feed = np.float32([1, 2]).reshape(1, 1, 1, 2, 1)
    assert only_output(content, feed).reshape(-1).tolist() == [8, 11]
    shape = T("s32", (5,), data=np.array([1, 1, 1, 3, 1]))
    transposed = ("Conv3DOptions", options(0, (1, 1, 2)))
    content = single("CONV_3D_TRANSPOSE", transposed, [shape, w, x, b], [T("f32", ())])
    assert only_output(content, feed).reshape(-1).tolist() == [8, 5, 11]


@pytest.mark.parametrize(
    ("x", "w", "shape", "code"),
    [
        ((1, 2, 2, 2, 3), (1, 1, 1, 2, 4), None, "BT-CONV-CHANNELS"),
        ((1, 2, 2, 2), (1, 1, 1, 2, 4), None, "BT-SHAPE-RANK"),
        ((1, 2, 2, 2, 3), (1, 1, 1, 4, 2), (1, 2, 2, 2, 4), "BT-CONV-CHANNELS"),
        ((1, 2, 2, 2, 3), (1, 1, 1, 4, 3), (1, 2, 3, 2, 4), "BT-SHAPE-OUTPUT"),
        ((1, 2, 2, 2, 3), (1, 1, 1, 4, 3), (1, 2, 2, 4), "BT-SHAPE-OUTPUT"),
        ((2, 2, 2, 2, 3), (1, 1, 1, 4, 3), (1, 2, 2, 2, 4), "BT-SHAPE-OUTPUT"),
    ],
)
def test_contradictions_are_refused(
    x: tuple[int, ...], w: tuple[int, ...], shape: tuple[int, ...] | None, code: str
) -> None:
    source, weights = T("f32", x), T("f32", w, data=seeded("f32", w, 1))
    inputs = [source, weights]
    if shape is not None:
        inputs = [T("s32", (len(shape),), data=np.array(shape)), weights, source]
    name = "CONV_3D" if shape is None else "CONV_3D_TRANSPOSE"
    content = single(name, ("Conv3DOptions", options(0, (1, 1, 1))), inputs, [T("f32", ())])
    assert check(content, feeds_for(content, 1)) == "refused"
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code

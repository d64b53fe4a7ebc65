"""resize_linear and resize_nearest against the real runtime."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for, only_output
from support.strategies import scales, seeds, zero_points

TABLES = {"RESIZE_BILINEAR": "ResizeBilinearOptions", "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions"}


def model(name: str, x: T, size: list[int], align: bool = False, half: bool = False, y: T | None = None) -> bytes:
    options = {"alignCorners": align, "halfPixelCenters": half}
    y = y or T(x.dtype, (), x.scale, x.zero_point)
    sizes = T("s32", (len(size),), data=np.int32(size))
    return single(name, (TABLES[name], options), [x, sizes], [y], version=3)


@st.composite
def resize(draw: st.DrawFn, name: str, types: tuple[str, ...], largest: int = 40) -> tuple[bytes, int]:
    dtype = draw(st.sampled_from(types))
    dimension = st.integers(1, 9)
    shape = (draw(st.integers(1, 2)), draw(dimension), draw(dimension), draw(st.integers(1, 4)))
    size = [draw(st.integers(0 if draw(st.integers(0, 30)) == 0 else 1, largest)) for _ in range(2)]
    mode = draw(st.sampled_from([(False, False), (True, False), (False, True), (False, True), (True, True)]))
    x, y = T(dtype, shape), T(dtype, ())
    if dtype in ("s8", "u8", "s16"):
        # The parameters play no part, not even different ones.
        x.scale, x.zero_point = draw(scales()), draw(zero_points(dtype))
        y.scale, y.zero_point = draw(scales()), draw(zero_points(dtype))
    return model(name, x, size, *mode, y), draw(seeds)


@given(resize("RESIZE_BILINEAR", ("s8", "s16", "s8", "s16", "u8", "f32")))
def test_resize_bilinear(case: tuple[bytes, int]) -> None:
    content, seed = case
    # BT-RESIZE-RANGE: the kernel reads beyond the image, so its result is whatever lies there.
    check(content, feeds_for(content, seed), may_refuse={"BT-RESIZE-RANGE"})


@given(resize("RESIZE_BILINEAR", ("u8", "f32"), 300))
def test_resize_bilinear_in_binary32_to_large_images(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@st.composite
def by_powers_of_two(draw: st.DrawFn) -> tuple[bytes, int]:
    """Weights are multiples of a power of two: 2^-1 to 2^-7 on each side, with corners aligned or half pixels."""
    dtype = draw(st.sampled_from(["s8", "u8"]))
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 40)))
    align = draw(st.booleans())
    factors = [2 ** draw(st.integers(0, 6)) for _ in range(2)]
    size = [(n - 1) * f + 1 if align else n * f for n, f in zip(shape[1:3], factors, strict=True)]
    x, y = T(dtype, shape, 0.5), T(dtype, (), 0.5)
    return model("RESIZE_BILINEAR", x, size, align, not align and draw(st.booleans()), y), draw(seeds)


@given(by_powers_of_two())
def test_resize_bilinear_with_exact_weights(case: tuple[bytes, int]) -> None:
    content, seed = case
    assert check(content, feeds_for(content, seed)) == "equal"


@given(resize("RESIZE_NEAREST_NEIGHBOR", ("s8", "u8", "s16", "f32", "s32", "u32", "f16", "bool"), 60))
def test_resize_nearest(case: tuple[bytes, int]) -> None:
    """Where a runtime's quotient by 0 ends its process, on x86-64, it is 0 on aarch64."""
    content, seed = case
    check(content, feeds_for(content, seed), may_refuse={"BT-RESIZE-EMPTY"} if platform.machine() == "aarch64" else ())


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("dtype", ["s8", "s16", "u8"])
def test_extremes(dtype: str, half: bool) -> None:
    low, high = {"s8": (-128, 127), "s16": (-32768, 32767), "u8": (0, 255)}[dtype]
    numpy_type = {"s8": np.int8, "s16": np.int16, "u8": np.uint8}[dtype]
    x = np.random.default_rng(0).choice([low, high], (1, 6, 6, 8)).astype(numpy_type)
    for size in ([12, 12], [7, 13], [3, 2], [1, 1], [25, 18]):
        content = model("RESIZE_BILINEAR", T(dtype, x.shape, 0.5), size, half=half)
        assert check(content, [[x]]) == "equal"


@pytest.mark.parametrize("special", [np.nan, np.inf, -0.0])
def test_special_binary32_values(special: float) -> None:
    x = np.random.default_rng(0).choice(np.float32([special, -0.0, 1.0]), (1, 5, 5, 3)).astype(np.float32)
    for mode in ((False, False), (True, False), (False, True)):
        for size in ([5, 5], [9, 11]):
            content = model("RESIZE_BILINEAR", T("f32", x.shape), size, *mode)
            assert check(content, [[x]]) == "equal"


def test_bilinear_by_hand() -> None:
    """Between 2 and 3 lies 2.5 -> 3, between -2 and -3 lies -2.5 -> -3: ties away from zero."""
    x = np.int8([[2, 3], [-2, -3]]).reshape(2, 1, 2, 1)
    content = model("RESIZE_BILINEAR", T("s8", x.shape, 0.5), [1, 4])
    assert only_output(content, x).reshape(2, 4).tolist() == [[2, 3, 3, 3], [-2, -3, -3, -3]]


def test_nearest_by_hand() -> None:
    x = np.int8([1, 2, 3]).reshape(1, 1, 3, 1)
    content = model("RESIZE_NEAREST_NEIGHBOR", T("s8", x.shape, 0.5), [1, 5])
    assert only_output(content, x).reshape(-1).tolist() == [1, 1, 2, 2, 3]
    content = model("RESIZE_NEAREST_NEIGHBOR", T("s8", x.shape, 0.5), [1, 5], align=True)
    assert only_output(content, x).reshape(-1).tolist() == [1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        # 2 * 1024 / 65 = 31.5 is rounded up to 32, and 64 * 32 / 1024 = 2 is outside.
        (model("RESIZE_BILINEAR", T("s8", (1, 2, 2, 1), 0.5), [1, 65]), "BT-RESIZE-RANGE"),
        (model("RESIZE_BILINEAR", T("s8", (1, 2, 2, 1), 0.5), [1, 0]), "BT-RESIZE-SIZE"),
        (model("RESIZE_BILINEAR", T("s8", (1, 2, 2, 1), 0.5), [1, 2, 3]), "BT-RESIZE-SIZE"),
        (model("RESIZE_BILINEAR", T("s8", (1, 2, 2, 1), 0.5), [2, 2], True, True), "BT-RESIZE-MODE"),
        (model("RESIZE_BILINEAR", T("s8", (1, 0, 2, 1), 0.5), [2, 2]), "BT-RESIZE-EMPTY"),
        (model("RESIZE_NEAREST_NEIGHBOR", T("s8", (1, 2, 2), 0.5), [2, 2]), "BT-SHAPE-RANK"),
        (model("RESIZE_NEAREST_NEIGHBOR", T("s8", (1, 2, 2, 1), 0.5), [-2, 2]), "BT-RESIZE-SIZE"),
    ],
)
def test_refused(content: bytes, code: str) -> None:
    with pytest.raises(bittrue.InvalidModelError, match=code):
        bittrue.load(content).prepare()
    if code not in ("BT-RESIZE-RANGE", "BT-RESIZE-EMPTY"):
        assert check(content, feeds_for(content, 0)) == "refused"


def test_absurd_sizes() -> None:
    content = model("RESIZE_NEAREST_NEIGHBOR", T("s8", (1, 1, 1, 1), 0.5), [2**31 - 1, 0])
    with pytest.raises(bittrue.UnsupportedError, match="BT-RESIZE-EXTENT"):
        bittrue.load(content).prepare()

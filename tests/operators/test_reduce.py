"""mean, sum and the other reductions against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import NUMPY, T, single
from support.differential import check, feeds_for, only_output, random_values
from support.oracle import oracle
from support.strategies import scales, seeds, zero_points

OPTIONS = "ReducerOptions"
QUANTIZED = ("s8", "u8", "s16")


def constant_axes(values: list[int], shape: tuple[int, ...] | None = None) -> T:
    data = np.int32(values)
    return T("s32", data.shape if shape is None else shape, data=data)


@st.composite
def axes_of(draw: st.DrawFn, rank: int) -> T:
    """Any axes: negative, repeated, a scalar, all, sometimes one that does not exist."""
    if rank == 0:
        return constant_axes([draw(st.integers(-1, 0))])
    if draw(st.integers(0, 5)) == 0:
        return constant_axes([draw(st.integers(-rank, rank - 1))], ())
    outside = draw(st.integers(0, 30)) == 0
    limit = rank + 1 if outside else rank
    return constant_axes(draw(st.lists(st.integers(-limit, limit - 1), min_size=1, max_size=5)))


@st.composite
def shape_of(draw: st.DrawFn) -> tuple[int, ...]:
    sizes = st.integers(1, 6) if draw(st.integers(0, 15)) else st.integers(0, 3)
    return tuple(draw(st.lists(sizes, min_size=0 if draw(st.integers(0, 9)) == 0 else 1, max_size=5)))


@st.composite
def reduction(draw: st.DrawFn, name: str, types: tuple[str, ...], version: int) -> tuple[bytes, int]:
    dtype = draw(st.sampled_from(types))
    shape = draw(shape_of())
    x, y = T(dtype, shape), T(dtype, ())
    if dtype in QUANTIZED:
        x.scale, x.zero_point = draw(scales(1e-3, 4)), draw(zero_points(dtype))
        same = draw(st.booleans()) if name in ("MEAN", "SUM") else draw(st.integers(0, 9)) > 0
        y.scale, y.zero_point = (x.scale, x.zero_point) if same else (draw(scales(1e-3, 4)), draw(zero_points(dtype)))
        if dtype == "s16" and draw(st.integers(0, 19)) == 0:
            x.zero_point = y.zero_point = 1
        if name.startswith("REDUCE") and draw(st.integers(0, 9)) == 0:
            x.scale = y.scale = None
    elif dtype != "bool" and draw(st.integers(0, 9)) == 0:
        x.scale = y.scale = 0.5
    options = {"keepDims": draw(st.booleans())}
    return single(name, (OPTIONS, options), [x, draw(axes_of(len(shape)))], [y], version=version), draw(seeds)


@given(reduction("MEAN", ("s8", "u8", "s16", "s8", "u8", "s32", "s64", "f32"), 3))
def test_mean(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@given(reduction("SUM", ("u8", "u8", "s32", "s64", "f32"), 2))
def test_sum(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@given(st.data())
def test_sum_of_s8_is_that_of_shifted_u8(data: st.DataObject) -> None:
    """The runtime reads s8 buffers as u8 (see the row's limit), so it is asked for x + 128 with zero points + 128."""
    shape, seed = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)), data.draw(seeds)
    scale, out_scale = data.draw(scales(1e-3, 4)), data.draw(scales(1e-3, 4))
    zero, out_zero = data.draw(zero_points("s8")), data.draw(zero_points("s8"))
    axes = T("s32", (1,), data=np.int32([data.draw(st.integers(0, len(shape) - 1))]))
    x = random_values(np.random.default_rng(seed), np.dtype(np.int8), shape)

    def built(dtype: str, shift: int) -> bytes:
        inputs = [T(dtype, shape, scale, zero + shift), axes]
        return single(
            "SUM", (OPTIONS, {"keepDims": True}), inputs, [T(dtype, (), out_scale, out_zero + shift)], version=2
        )

    ours = only_output(built("s8", 0), x)
    shifted = (x.astype(np.int16) + 128).astype(np.uint8)
    theirs = oracle().run(built("u8", 128), [[shifted]], [2]).values[2]
    assert (ours.astype(np.int16) + 128 == theirs).all()


def test_sum_of_s16() -> None:
    """Only here the runtime cannot be asked; 3 * 10000 + 5000 = 35000 saturates, halves tie away from zero."""
    axes = constant_axes([1])
    x = np.int16([[10000, 10000, 10000, 5000], [1, 2, 0, 0], [-1, -2, 0, 0]])
    for scale, expected in ((1.0, [32767, 3, -3]), (0.25, [8750, 1, -1]), (0.5, [17500, 2, -1])):
        content = single("SUM", (OPTIONS, {}), [T("s16", (3, 4), scale), axes], [T("s16", (), 1.0)], version=2)
        assert only_output(content, x).tolist() == expected


@given(reduction("REDUCE_MAX", ("s8", "u8", "s16", "s32", "s64", "f32"), 3))
def test_reduce_max(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@given(reduction("REDUCE_MIN", ("s8", "u8", "s16", "s32", "s64", "f32"), 3))
def test_reduce_min(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed))


@given(reduction("REDUCE_PROD", ("s8", "s16", "s8", "s16", "u8", "s32", "s64", "f32"), 2))
def test_reduce_prod(case: tuple[bytes, int]) -> None:
    content, seed = case
    check(content, feeds_for(content, seed), may_refuse={"BT-REDUCE-EMPTY", "BT-MULTIPLIER"})


@pytest.mark.numerics("litert")
@given(st.data())
@pytest.mark.parametrize("dtype", ["s8", "s16"])
def test_products_near_one(dtype: str, data: st.DataObject) -> None:
    """Scales and values whose partial products neither vanish nor saturate."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
    axes = constant_axes(data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=2)))
    centre = 64 if dtype == "s8" else 16384
    rng = np.random.default_rng(data.draw(seeds))
    x = (rng.integers(centre // 2, 2 * centre - 1, shape) * rng.choice([-1, 1], shape)).astype(NUMPY[dtype])
    source = T(dtype, shape, data.draw(scales(0.7 / centre, 1.5 / centre)))
    target = T(dtype, (), data.draw(scales(0.3 / centre, 4 / centre)))
    if dtype == "s8":
        source.zero_point, target.zero_point = data.draw(st.integers(-5, 5)), data.draw(zero_points("s8"))
    content = single("REDUCE_PROD", (OPTIONS, {"keepDims": True}), [source, axes], [target], version=2)
    assert check(content, [[x]]) == "equal"


@given(reduction("REDUCE_ANY", ("bool",), 1), reduction("REDUCE_ALL", ("bool",), 1))
def test_reduce_any_and_all(one: tuple[bytes, int], other: tuple[bytes, int]) -> None:
    for content, seed in (one, other):
        check(content, feeds_for(content, seed))


@pytest.mark.parametrize("name", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"])
@pytest.mark.parametrize("axes", [[0], [1], [0, 1]])
def test_special_binary32_values(name: str, axes: list[int]) -> None:
    rng = np.random.default_rng(5)
    for values in (
        [-0.0, 0.0], [-0.0], [-np.inf, -0.0, 0.0], [np.inf], [-np.inf],
        [np.inf, 3e38, -3e38, 1e-45, -0.0, 0.0, 1.0],
        *([[np.nan, 1.0, -np.inf, np.inf], [np.nan, -np.inf]] if name in ("REDUCE_MAX", "REDUCE_MIN") else []),
    ):  # fmt: skip
        x = rng.choice(np.float32(values), (6, 5)).astype(np.float32)
        content = single(name, (OPTIONS, {}), [T("f32", x.shape), constant_axes(axes)], [T("f32", ())])
        assert check(content, [[x]]) == "equal"


@pytest.mark.numerics("litert-optimized", "xnnpack")
@pytest.mark.parametrize("name", ["REDUCE_MAX", "REDUCE_MIN"])
def test_extremes_of_neighbours(name: str) -> None:
    """In vectors, where a NaN forgets what its lane has seen, and of two zeros the one in the later lane is kept."""
    rng = np.random.default_rng(6)
    values = [[np.nan, -np.nan, *range(-8, 8)], [0.0, -0.0, *[-1 if name == "REDUCE_MAX" else 1] * 5]]
    for shape, axes in (
        ((3, 150), [1]), ((4, 17), [0, 1]), ((5, 1, 40), [0, 2]), ((5, 1, 40), [0, 1, 2]), ((2, 3, 33), [2, 1]),
        ((70, 3), [0]), ((40, 1), [0]), ((40, 1), [0, 1]), ((2, 20, 3, 20), [1, 3]),
    ):  # fmt: skip
        for choices in values:
            x = rng.choice(np.float32(choices), shape)
            declared = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
            content = single(
                name, (OPTIONS, {"keepDims": True}), [T("f32", shape), constant_axes(axes)], [T("f32", declared)]
            )
            assert check(content, [[x]]) == "equal"


@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "s32", "s64", "f32"])
@pytest.mark.parametrize("name", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"])
def test_reductions_of_nothing(name: str, dtype: str) -> None:
    for shape, axes in (((0,), [0]), ((3, 0), [1]), ((0, 3), [0]), ((0, 3), [1]), ((2, 0, 3), [0, 1, 2])):
        x, y = (T(dtype, part, 0.5 if dtype in QUANTIZED else None) for part in (shape, ()))
        content = single(name, (OPTIONS, {}), [x, constant_axes(axes)], [y], version=2)
        check(content, [[np.empty(shape, NUMPY[dtype])]], may_refuse={"BT-REDUCE-EMPTY"})


def test_long_sums() -> None:
    """Many summands: binary32 rounds at every step, 32-bit sums of 16-bit values wrap."""
    x = (np.random.default_rng(2).standard_normal((3, 70000)) * 100).astype(np.float32)
    for name in ("MEAN", "SUM"):
        for axes in ([1], [0], [0, 1]):
            content = single(name, (OPTIONS, {}), [T("f32", x.shape), constant_axes(axes)], [T("f32", ())])
            assert check(content, [[x]]) == "equal"
    for dtype, value in (("s16", -32768), ("s16", 32767), ("s8", -128), ("u8", 255)):
        wide = np.full((2, 70000), value, T(dtype, ()).dtype.replace("s", "int").replace("u8", "uint8"))
        content = single(
            "MEAN", (OPTIONS, {}), [T(dtype, wide.shape, 0.5), constant_axes([1])], [T(dtype, (), 0.5)], version=3
        )
        assert check(content, [[wide]]) == "equal"


def test_constant_input_is_folded() -> None:
    for name in ("MEAN", "REDUCE_PROD", "REDUCE_MAX"):
        for dtype, numpy_type in (("s32", np.int32), ("f32", np.float32)):
            x = T(dtype, (2, 3), data=np.arange(1, 7).astype(numpy_type))
            y = T(dtype, ())
            content = single(name, (OPTIONS, {}), [x, constant_axes([1])], [y])
            check(content, [[]])


def test_mean_by_hand() -> None:
    """(1 + 2) / 2 = 1.5 -> 2, (-1 - 2) / 2 = -1.5 -> -1: without a right shift ties go up."""
    x = np.int8([[1, 2], [-1, -2], [127, 126]])
    content = single("MEAN", (OPTIONS, {}), [T("s8", (3, 2), 1.0), constant_axes([-1])], [T("s8", (), 1.0)])
    assert only_output(content, x).tolist() == [2, -1, 127]
    assert check(content, [[x]]) == "equal"


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_means_of_images(dtype: str, keep: bool) -> None:
    """Over height and width: 16 channels together, and 4 that are left."""
    x, y = T(dtype, (2, 3, 5, 20), 0.5, 3), T(dtype, (), 0.3, 5)
    content = single("MEAN", (OPTIONS, {"keepDims": keep}), [x, constant_axes([1, 2])], [y], version=3)
    assert check(content, feeds_for(content, seed=1)) == "equal"


def test_reduce_prod_and_logic_by_hand() -> None:
    content = single("REDUCE_PROD", (OPTIONS, {}), [T("s32", (4,)), constant_axes([0])], [T("s32", ())])
    assert only_output(content, np.int32([65536, 65536, 1, 1])).tolist() == 0
    content = single("REDUCE_ANY", (OPTIONS, {}), [T("bool", (2, 2)), constant_axes([1])], [T("bool", ())])
    assert only_output(content, np.array([[0, 1], [0, 0]], bool)).tolist() == [True, False]


@pytest.mark.parametrize("name", ["MEAN", "SUM"])
@pytest.mark.parametrize(("scale", "out_scale"), [(1e7, 1e-2), (1e-10, 1e3), (1e10, 1e-3), (1e-20, 1e10)])
def test_extreme_ratios_of_scales(compared_numerics: str, name: str, scale: float, out_scale: float) -> None:
    """A ratio of 2^30 or more needs a left shift for which a fixed-point kernel's result is undefined."""
    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    content = single(
        name, (OPTIONS, {}), [T("u8", (2, 3), scale), constant_axes([1])], [T("u8", (), out_scale)], version=2
    )
    in_fixed_point = compared_numerics == "litert" or (name == "MEAN" and compared_numerics == "litert-optimized")
    expected = "refused" if in_fixed_point and scale / out_scale > 2**30 else "equal"
    assert check(content, [[x]], may_refuse={"BT-MULTIPLIER"}) == expected


@pytest.mark.parametrize("shape", [(2, 3), ()])
@pytest.mark.parametrize("name", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_PROD"])
def test_no_axes_and_no_options(name: str, shape: tuple[int, ...]) -> None:
    for options in ((OPTIONS, {}), None):
        content = single(name, options, [T("f32", shape), constant_axes([], (0,))], [T("f32", ())])
        assert check(content, feeds_for(content, 0)) == "equal"

"""average_pool, lp_pool and max_pool against the real runtime."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support import differential
from support.build import T, single
from support.differential import check, feeds_for, only_output
from support.runtimes import RUNTIMES
from support.strategies import scales, seeds, zero_points

TYPES = st.sampled_from(["s8", "u8", "s16", "f32"])


VERSION = {"L2_POOL_2D": 1}


def model(name: str, dtype: str, shape: tuple[int, ...], filters: tuple[int, int], **options: int) -> bytes:
    fields = {
        "filterHeight": filters[0],
        "filterWidth": filters[1],
        "strideH": 1,
        "strideW": 1,
        "padding": 0,
        **options,
    }
    scale = None if dtype == "f32" else 0.5
    x, y = T(dtype, shape, scale), T(dtype, (), scale)
    return single(name, ("Pool2DOptions", fields), [x], [y], version=VERSION.get(name, 3))


@st.composite
def pool(draw: st.DrawFn, name: str) -> tuple[bytes, int]:
    dtype = draw(TYPES)
    sizes = st.integers(1, 9) if draw(st.integers(0, 19)) else st.integers(0, 2)
    shape = (draw(st.integers(1, 2)), draw(sizes), draw(sizes), draw(st.integers(1, 5)))
    far = [0, 40, 60000, 65536, 65537, 10**6] if shape[1] and shape[2] else [0, 40, 60000]
    taps = st.one_of(st.integers(1, 4), st.integers(1, 12), st.sampled_from(far))
    options = {
        "padding": draw(st.integers(0, 1)),
        "strideW": draw(st.integers(1, 4)),
        "strideH": draw(st.integers(1, 4)),
        "filterWidth": draw(taps),
        "filterHeight": draw(taps),
        "fusedActivationFunction": draw(st.sampled_from([0, 0, 1, 2, 3, 4])),
    }
    if dtype == "f32":
        return single(name, ("Pool2DOptions", options), [T("f32", shape)], [T("f32", ())], version=3), draw(seeds)
    # Input and output parameters may differ: the kernels do not look, except for the activation's bounds.
    x = T(dtype, shape, draw(scales()), draw(zero_points(dtype)))
    y = T(dtype, (), draw(scales()), draw(zero_points(dtype)))
    if draw(st.integers(0, 9)) == 0:
        y.zero_point = draw(st.integers(-70000, 70000))
    if draw(st.integers(0, 9)) == 0:
        x.scale = y.scale = None
        options["fusedActivationFunction"] = 0
    return single(name, ("Pool2DOptions", options), [x], [y], version=3), draw(seeds)


def check_pool(content: bytes, seed: int) -> None:
    """bittrue pads by up to 32767: beyond it, some kernels refuse and others make something of it. A maximum of one tap
    is a clamp for XNNPACK, whose zero points may differ.
    """
    options = bittrue.load(content).graph.nodes[0].attributes
    refused = set()
    if options["padding"] == "same_upper" and max(options["kernel"]) > 65535:  # type: ignore[type-var]
        refused.add("BT-WINDOW")
    if differential.COMPARED == "xnnpack" and options["kernel"] == (1, 1):
        refused.add("BT-QUANT-SAME")
    check(content, feeds_for(content, seed), may_refuse=refused)


@given(pool("AVERAGE_POOL_2D"))
def test_average_pool2d(case: tuple[bytes, int]) -> None:
    check_pool(*case)


@pytest.mark.parametrize("zero_point", [-40000, -32768, 32767, 32768, 65536])
@pytest.mark.parametrize("activation", range(4))
def test_averages_with_a_zero_point_beyond_the_type(activation: int, zero_point: int) -> None:
    """Beyond 16 bits, an optimised kernel's limits wrap."""
    options = {"strideW": 1, "strideH": 1, "filterWidth": 2, "filterHeight": 2, "fusedActivationFunction": activation}
    x, y = T("s8", (1, 2, 2, 1), 0.001), T("s8", (), 0.001, zero_point)
    content = single("AVERAGE_POOL_2D", ("Pool2DOptions", options), [x], [y], version=3)
    feed = np.int8([[[[-100], [-50]], [[20], [30]]]])
    if differential.COMPARED == "litert" or not activation or abs(zero_point) <= 32768 - (zero_point > 0):
        assert check(content, [[feed]]) == "equal"
    else:
        with pytest.raises(bittrue.BittrueError, match="BT-UNDEFINED"):
            bittrue.load(content).prepare(differential.COMPARED)


@pytest.mark.parametrize("filters", [(1, 3), (3, 3), (4, 5), (7, 7), (2, 8), (3, 9)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_averages_of_many_channels(filters: tuple[int, int], stride: int, dtype: str) -> None:
    """Where windows are one column apart, sums of columns may slide along a row."""
    for channels, width, padding in [(31, 9, 0), (32, 9, 1), (40, 12, 0), (300, 10, 1), (64, 2, 0)]:
        content = model("AVERAGE_POOL_2D", dtype, (2, 8, width, channels), filters, strideH=stride, padding=padding)
        if padding and filters[1] > width:
            continue
        assert check(content, feeds_for(content, channels)) == "equal"


@given(pool("MAX_POOL_2D"))
def test_max_pool2d(case: tuple[bytes, int]) -> None:
    check_pool(*case)


@pytest.mark.numerics("xnnpack")
def test_xnnpack_pads_further_and_bittrue_refuses_it() -> None:
    content = model("AVERAGE_POOL_2D", "f32", (1, 1, 1, 1), (1, 65537))
    assert RUNTIMES["xnnpack"].run(content, feeds_for(content, 0), [1]).ran
    assert check(content, feeds_for(content, 0), may_refuse={"BT-WINDOW"}) == "refused"


@pytest.mark.numerics("xnnpack")
@pytest.mark.parametrize("activation", range(4))
def test_an_average_of_one_tap_keeps_zeros_and_what_is_no_number(activation: int) -> None:
    content = model("AVERAGE_POOL_2D", "f32", (1, 2, 2, 2), (1, 1), fusedActivationFunction=activation)
    x = np.float32([-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf, -3, 7]).reshape(1, 2, 2, 2)
    assert check(content, [[x]]) == "equal"


@pytest.mark.numerics("xnnpack")
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_rows_of_windows_that_hang_over_top_and_bottom(stride: int) -> None:
    """XNNPACK finds the taps of another row there; with a stride, rows of the image are missing."""
    taken = 0
    for height, taps in itertools.product(range(2, 7), range(3, 14, 2)):
        content = model("AVERAGE_POOL_2D", "f32", (1, height, 5, 8), (taps, 3), strideH=stride, strideW=stride)
        assert check(content, feeds_for(content, 7 * height + taps)) == "equal"
        taken += sum("rows" in step.arrays for step in bittrue.load(content).prepare("xnnpack").plan.steps)
    assert taken


@given(
    sizes=st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9), st.integers(1, 20)),
    filters=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    strides=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.integers(0, 1),
    activation=st.sampled_from([0, 0, 1, 2, 3, 4]),
    scale=st.sampled_from([1.0, 1e-22, 1e19]),
    seed=seeds,
)
def test_l2_pool2d(
    sizes: tuple[int, ...],
    filters: tuple[int, int],
    strides: tuple[int, int],
    padding: int,
    activation: int,
    scale: float,
    seed: int,
) -> None:
    content = model(
        "L2_POOL_2D", "f32", sizes, filters,
        strideH=strides[0], strideW=strides[1], padding=padding, fusedActivationFunction=activation,
    )  # fmt: skip
    x = (np.random.default_rng(seed).standard_normal(sizes) * scale).astype(np.float32)
    check(content, [[x]])


@pytest.mark.parametrize("name", ["AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize("padding", [0, 1])
def test_special_binary32_values(compared_numerics: str, name: str, padding: int) -> None:
    values = np.float32([np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 3e38, -3e38, 1e-45, -1e-45])
    if compared_numerics == "xnnpack":
        # Its rows leave subnormal numbers, and zeros of both signs among maxima, to the delegate.
        values = values[3:-2] if name == "MAX_POOL_2D" else values[:-2]
    elif name == "MAX_POOL_2D":
        values = np.append(values, np.float32(np.nan))
    x = np.random.default_rng(1).choice(values, (1, 20, 20, 8)).astype(np.float32)
    for activation in range(4):
        content = model(name, "f32", x.shape, (2, 2), padding=padding, fusedActivationFunction=activation)
        assert check(content, [[x]]) == "equal"


@pytest.mark.parametrize("value", [32767, -32768])
def test_sums_beyond_32_bits_wrap(value: int) -> None:
    x = np.full((1, 260, 260, 1), value, np.int16)
    assert check(model("AVERAGE_POOL_2D", "s16", x.shape, (260, 260), padding=1), [[x]]) == "equal"


def test_ties_by_hand() -> None:
    """[1, 2] averages to 1.5 -> 2 and [-1, -2] to -1.5 -> -2; the zero point does not matter."""
    x = np.int8([1, 2, -1, -2]).reshape(1, 1, 4, 1)
    content = model("AVERAGE_POOL_2D", "s8", x.shape, (1, 2), strideW=2, padding=1)
    assert only_output(content, x).reshape(-1).tolist() == [2, -2]
    assert check(content, [[x]]) == "equal"


def test_max_by_hand() -> None:
    x = np.uint8([[1, 5], [7, 2]]).reshape(1, 2, 2, 1)
    content = model("MAX_POOL_2D", "u8", x.shape, (2, 2))
    assert only_output(content, x).reshape(2, 2).tolist() == [[7, 5], [7, 2]]


def test_huge_windows_cost_no_more_than_the_image() -> None:
    x = np.random.default_rng(0).integers(-128, 128, (1, 64, 64, 8)).astype(np.int8)
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        content = model(name, "s8", x.shape, (65000, 65000))
        begin = time.process_time()
        result = only_output(content, x)
        assert time.process_time() - begin < 2
        # The window of every pixel covers the whole image.
        assert (result == result[:, :1, :1]).all()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"strideW": 0}, "BT-WINDOW"),
        ({"filterHeight": 10**6}, "BT-WINDOW"),
        ({"shape": (4, 4, 1)}, "BT-SHAPE-RANK"),
    ],
)
def test_refused(change: dict, code: str) -> None:
    shape = change.pop("shape", (1, 4, 4, 1))
    content = model("MAX_POOL_2D", "s8", shape, (2, 2), **change)
    with pytest.raises(bittrue.InvalidModelError, match=code):
        bittrue.load(content).prepare()


def test_activation_beyond_32_bits() -> None:
    """Both sides refuse for uint8; the kernels of the other types go on with undefined bounds."""
    tiny = T("u8", (), 1e-30)
    content = single(
        "AVERAGE_POOL_2D",
        (
            "Pool2DOptions",
            {"filterHeight": 1, "filterWidth": 1, "strideH": 1, "strideW": 1, "fusedActivationFunction": 3},
        ),
        [T("u8", (1, 1, 1, 1), 1e-30)],
        [tiny],
    )
    assert check(content, feeds_for(content, 0)) == "refused"


def test_windows_that_do_not_fit_give_nothing() -> None:
    x = np.zeros((1, 4, 4, 1), np.int8)
    for filters, expected in (((9, 1), (1, 0, 4, 1)), ((1, 9), (1, 0, 0, 1)), ((0, 1), (1, 0, 4, 1))):
        content = model("MAX_POOL_2D", "s8", x.shape, filters, padding=1)
        assert only_output(content, x).shape == expected
        assert check(content, [[x]]) == "equal"

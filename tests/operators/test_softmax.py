"""softmax and log_softmax against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support import differential
from support.build import NUMPY, T, single
from support.differential import check, feeds_for, only_output
from support.runtimes import here
from support.strategies import f32, scales, seeds, shapes, zero_points
from support.unary import reals

Case = tuple[bytes, list[list[np.ndarray]]]


def softmax(x: T, y: T, beta: float = 1.0) -> bytes:
    return single("SOFTMAX", ("SoftmaxOptions", {"beta": beta}), [x], [y], version=3)


def output_of(dtype: str, out: str) -> T:
    if out == "s16":
        return T(out, (), 1 / 32768, 0)
    return T(out, (), 1 / 256, -128 if dtype == "s8" else 0)


@st.composite
def rows(draw: st.DrawFn, dtype: str) -> tuple[tuple[int, ...], np.ndarray]:
    """Rows of every length, some almost constant (large sums), some spread over the whole type."""
    shape = draw(shapes())
    shape = (*shape[:-1], draw(st.one_of(st.integers(1, 5), st.integers(1, 300))))
    if draw(st.integers(0, 19)) == 0:
        shape = draw(st.sampled_from([(0, 3), (2, 0, 3)]))
    rng = np.random.default_rng(draw(seeds))
    info = np.iinfo(NUMPY[dtype])
    spread = draw(st.sampled_from([0, 1, 3, 30, int(info.max) - int(info.min)]))
    centre = draw(st.integers(int(info.min), int(info.max)))
    values = centre + rng.integers(-spread, spread, shape, endpoint=True)
    return shape, np.clip(values, info.min, info.max).astype(NUMPY[dtype])


@st.composite
def probabilities(draw: st.DrawFn) -> Case:
    dtype, out = draw(st.sampled_from([("s8", "s8"), ("u8", "u8"), ("s8", "s16"), ("u8", "s16"), ("s16", "s16")]))
    shape, values = draw(rows(dtype))
    beta = draw(st.sampled_from([1.0, 1.0, 0.5, 2.0, f32(0.1), 10.0, 1e4 if dtype == "s16" else 1e20]))
    if draw(st.integers(0, 49)) == 0:
        # Mostly too small: the runtime aborts for 8-bit types.
        beta = draw(st.sampled_from([1e-6, 1e-10, 0.0, -1.0]))
    low = 1e-6 if dtype == "s16" else 1e-3
    x = T(dtype, shape, draw(scales(low, 4.0)), draw(zero_points(dtype)))
    y = output_of(dtype, out)
    if draw(st.integers(0, 9)) == 0:
        # A tenth of a per cent is allowed where the output is checked at all.
        y.scale = y.scale * draw(st.sampled_from([1.0005, 0.9995, 1.01]))
        y.zero_point += draw(st.integers(0, 1))
    return softmax(x, y, beta), [[values]]


@given(probabilities())
def test_softmax(case: Case) -> None:
    check(*case)


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("out", ["8", "s16"])
@pytest.mark.parametrize("depth", [255, 256, 257, 511, 512, 513, 1001, 4095, 4096])
def test_long_flat_rows(compared_numerics: str, dtype: str, out: str, depth: int) -> None:
    """In fixed point: with 8 bits, 512 equal values abort the runtime; with 16 bits, 4096 overflow its sum."""
    out = dtype if out == "8" else out
    x = np.zeros((2, depth), NUMPY[dtype])
    x[1, :7] = 1
    content = softmax(T(dtype, x.shape, 0.1), output_of(dtype, out))
    may_refuse = {"BT-SOFTMAX-SUM"} if depth >= 4096 else ()
    refused = check(content, [[x]], may_refuse=may_refuse) == "refused"
    assert refused == (compared_numerics == "litert" and depth >= (512 if out != "s16" else 4096))


@pytest.mark.parametrize("depth", [65536, 70000])
def test_long_flat_rows_of_s16(depth: int) -> None:
    x = np.zeros((1, depth), np.int16)
    content = softmax(T("s16", x.shape, 0.01), output_of("s16", "s16"))
    result = check(content, [[x]], may_refuse={"BT-SOFTMAX-SUM"})
    assert result == ("equal" if depth <= 65536 else "refused")


def test_enormous_scale_of_s16() -> None:
    """The kernel shifts 32-bit numbers left by more than 30 places, which has no defined result."""
    content = softmax(T("s16", (1, 3), 1.0), output_of("s16", "s16"), 1e20)
    assert check(content, feeds_for(content, 0), may_refuse={"BT-SOFTMAX-SCALE"}) == "refused"


def test_probabilities_by_hand() -> None:
    """Two equal values: 1/2 is 128/256, stored as 0. One far ahead: 1 saturates at 127."""
    x = np.int8([[5, 5, -128], [9, -128, -128]])
    content = softmax(T("s8", x.shape, 0.5), output_of("s8", "s8"))
    assert only_output(content, x).tolist() == [[0, 0, -128], [127, -128, -128]]
    content = softmax(T("s16", x.shape, 0.5), output_of("s16", "s16"))
    assert only_output(content, x.astype(np.int16)).tolist()[0][:2] == [16384, 16384]


@st.composite
def logarithms(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8"]))
    shape, values = draw(rows(dtype))
    x = T(dtype, shape, draw(scales(1e-3 if draw(st.integers(0, 49)) else 1e-10, 40.0)), draw(zero_points(dtype)))
    y = T(dtype, (), 1 / 16, 127 if dtype == "s8" else 255)
    if draw(st.integers(0, 9)) == 0:
        y.scale, y.zero_point = draw(st.sampled_from([(1 / 17, y.zero_point), (1 / 16, 3)]))
    return single("LOG_SOFTMAX", ("LogSoftmaxOptions", {}), [x], [y], version=2), [[values]]


@given(logarithms())
def test_log_softmax(case: Case) -> None:
    check(*case)


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("depth", [512, 4095, 4096])
def test_long_flat_rows_of_logarithms(compared_numerics: str, dtype: str, depth: int) -> None:
    x = np.zeros((2, depth), NUMPY[dtype])
    x[1, :7] = 1
    y = T(dtype, (), 1 / 16, 127 if dtype == "s8" else 255)
    content = single("LOG_SOFTMAX", ("LogSoftmaxOptions", {}), [T(dtype, x.shape, 0.1)], [y], version=2)
    refused = check(content, [[x]], may_refuse={"BT-SOFTMAX-SUM"} if depth >= 4096 else ()) == "refused"
    assert refused == (compared_numerics == "litert" and depth >= 4096)


def test_logarithms_by_hand() -> None:
    """ln(1/2) = -0.693 is -11.09 sixteenths below 127; far behind is the smallest output."""
    x = np.int8([[5, 5, -128]])
    y = T("s8", (), 1 / 16, 127)
    content = single("LOG_SOFTMAX", ("LogSoftmaxOptions", {}), [T("s8", x.shape, 1.0)], [y], version=2)
    assert only_output(content, x).tolist() == [[116, 116, -128]]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0)])
@pytest.mark.parametrize("types", [("s8", "s8"), ("u8", "s16"), ("s16", "s16")])
def test_rows_without_elements(compared_numerics: str, shape: tuple[int, ...], types: tuple[str, str]) -> None:
    """The reference kernel aborts when it divides by the sum of no exponentials in 16 bits."""
    if (
        here(compared_numerics).endswith("@aarch64")
        and compared_numerics != "litert"
        and types == ("s8", "s8")
        and shape != (0, 0)
    ):
        pytest.skip("the optimised kernel of the wheel for aarch64 ends the process")
    content = softmax(T(types[0], shape, 1.0), output_of(*types))
    aborts = compared_numerics == "litert" and types == ("u8", "s16") and shape != (0, 0)
    assert check(content, feeds_for(content, 0)) == ("refused" if aborts else "equal")


def test_logarithms_of_a_scalar_are_refused() -> None:
    """The runtime mostly refuses; now and then it runs on whatever it finds where the last dimension should be."""
    content = single(
        "LOG_SOFTMAX", ("LogSoftmaxOptions", {}), [T("s8", (), 1.0)], [T("s8", (), 1 / 16, 127)], version=2
    )
    with pytest.raises(bittrue.InvalidModelError, match="BT-SHAPE-RANK"):
        bittrue.load(content).prepare()


@pytest.mark.numerics("litert")
@pytest.mark.parametrize(
    ("x", "y", "beta", "code"),
    [
        (T("s8", (2, 3), 1.0), T("s8", (), 1 / 128, -128), 1.0, "BT-QUANT-OUTPUT"),
        (T("s8", (2, 3), 1.0), T("s8", (), 1 / 256, 0), 1.0, "BT-QUANT-OUTPUT"),
        (T("s8", (2, 3), 1.0), T("s8", (), 1 / 256, -128), 1e-9, "BT-SOFTMAX-SCALE"),
        (T("s8", (), 1.0), T("s8", (), 1 / 256, -128), 1.0, "BT-SHAPE-RANK"),
        (T("s8", (2, 3)), T("s8", (), 1 / 256, -128), 1.0, "BT-QUANT-MISSING"),
        (T("s8", (2, 3), 1.0), T("s8", (), 1 / 256, -128), float("nan"), "BT-SOFTMAX-SCALE"),
    ],
)
def test_refused(x: T, y: T, beta: float, code: str) -> None:
    content = softmax(x, y, beta)
    with pytest.raises(bittrue.InvalidModelError, match=code):
        bittrue.load(content).prepare()
    assert check(content, feeds_for(content, 0)) == "refused"


@given(
    shape=shapes(),
    length=st.integers(1, 5) | st.integers(1, 300),
    seed=seeds,
    spread=st.sampled_from([0.0, 0.01, 1.0, 30.0, 1e30]),
    special=st.booleans(),
    beta=st.sampled_from([1.0, 1.0, 0.5, -2.0, 0.0, f32(0.1), 10.0, 1e38]),
)
@pytest.mark.parametrize(("operator", "dtype"), [("SOFTMAX", "f32"), ("SOFTMAX", "f16"), ("LOG_SOFTMAX", "f32")])
def test_real(
    operator: str,
    dtype: str,
    shape: tuple[int, ...],
    length: int,
    seed: int,
    spread: float,
    special: bool,
    beta: float,
) -> None:
    shape = (*shape[:-1], length)
    x = (np.random.default_rng(seed).standard_normal(shape) * spread).astype(np.float32)
    with np.errstate(over="ignore"):
        x = reals(seed, shape, 0.01, NUMPY[dtype]) if special else x.astype(NUMPY[dtype])
    if dtype == "f32" and differential.COMPARED.startswith(("xnnpack", "litert-optimized")):
        # Where NaN has several sources in a row, or numbers beside it overflow, its sign follows the order in which the
        # kernel looks for the largest number and adds (the row's limit): beside one source only ordinary numbers.
        source = np.isnan(x) | (x == np.inf)
        first = source & (np.cumsum(source, axis=-1) == 1)
        x[source.any(axis=-1, keepdims=True) & ~first & ~(np.abs(x) < 30)] = 1
    source, target = T(dtype, shape), T(dtype, ())
    content = softmax(source, target, beta) if operator == "SOFTMAX" else single(operator, None, [source], [target])
    check(content, [[x]])

"""add and sub against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import T, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, constants, nans, outputs_of, plain_values, refusal
from support.strategies import activations, scales, seeds, zero_points

Case = tuple[bytes, list[list[np.ndarray]]]
TABLES = {"ADD": "AddOptions", "SUB": "SubOptions"}


@st.composite
def quantized(draw: st.DrawFn, operator: str) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8", "s16"]))
    shapes = draw(broadcast_shapes())
    seed = draw(seeds)
    # Output scales down to where the result multiplier reaches 1: both sides must refuse beyond.
    low = draw(st.sampled_from([1e-3, 1e-3, 1e-3, 1e-7]))
    first, second, result = draw(scales()), draw(scales()), draw(scales(low, 2.0))
    points = [draw(zero_points(dtype)) for _ in range(3)]
    if dtype == "s16" and draw(st.integers(0, 19)) == 0:
        points[draw(st.integers(0, 2))] = 1
    options = {"fusedActivationFunction": draw(activations), "potScaleInt16": False}
    rng = np.random.default_rng(seed)
    inputs = [T(dtype, shapes[0], first, points[0]), T(dtype, shapes[1], second, points[1])]
    values = [plain_values(rng, dtype, shape) for shape in shapes]
    return binary(
        operator, TABLES[operator], options, inputs, T(dtype, (), result, points[2]), values, draw(constants), 2
    )


@st.composite
def powers_of_two(draw: st.DrawFn, operator: str) -> Case:
    shapes = draw(broadcast_shapes())
    # This form of ADD aborts where a broadcast is needed, and the runtime's process takes a while to come back.
    if operator == "ADD" and draw(st.integers(0, 24)):
        shapes = (shapes[0], shapes[0])
    near = draw(st.sampled_from([1.0, 1.0, 1.0005, 1.001]))
    out = draw(st.integers(-15, 0))
    down = [0, draw(st.integers(-1, 15))][:: draw(st.sampled_from([1, -1]))]
    inputs = [T("s16", shape, near * 2.0 ** (out - by)) for shape, by in zip(shapes, down, strict=True)]
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, "s16", shape) for shape in shapes]
    options = {"fusedActivationFunction": draw(activations), "potScaleInt16": True}
    return binary(operator, TABLES[operator], options, inputs, T("s16", (), 2.0**out), values, draw(constants), 2)


@st.composite
def plain(draw: st.DrawFn, operator: str) -> Case:
    dtype = draw(st.sampled_from(["f32", "f32", "s32", "s64", *(["s16"] if operator == "ADD" else [])]))
    shapes = draw(broadcast_shapes())
    nan = draw(nans)
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, dtype, shape, pattern) for shape, pattern in zip(shapes, nan, strict=True)]
    options = {"fusedActivationFunction": draw(st.integers(0, 5)), "potScaleInt16": draw(st.booleans())}
    inputs = [T(dtype, shape) for shape in shapes]
    return binary(operator, TABLES[operator], options, inputs, T(dtype, ()), values, draw(constants), 4)


@given(quantized("ADD"))
def test_add_quantized(case: Case) -> None:
    check(*case)


@given(quantized("SUB"))
def test_sub_quantized(case: Case) -> None:
    # With a result multiplier above 1 the kernel shifts by a negative amount: undefined.
    check(*case, may_refuse={"BT-MULTIPLIER"})


@given(powers_of_two("ADD"))
def test_add_powers_of_two(case: Case) -> None:
    check(*case)


@given(powers_of_two("SUB"))
def test_sub_powers_of_two(case: Case) -> None:
    check(*case)


@given(plain("ADD"))
def test_add_plain(case: Case) -> None:
    check(*case)


@given(plain("SUB"))
def test_sub_plain(case: Case) -> None:
    check(*case)


def _model(operator: str, first: T, second: T, output: T, **options: object) -> bytes:
    return single(operator, (TABLES[operator], options), [first, second], [output], version=2)


def test_literal() -> None:
    # Real halves, output step 1: (1, -1.5, 63.5) and (1.5, -1.5, 36). Ties go away from zero.
    scales = T("s8", (3,), 0.5), T("s8", (3,), 0.5), T("s8", (3,), 1.0)
    feeds = np.int8([2, -3, 127]), np.int8([3, -4, 72])
    assert outputs_of(_model("ADD", *scales), *feeds) == [3, -4, 100]
    assert outputs_of(_model("SUB", *scales), *feeds) == [-1, 1, 28]


def test_literal_powers_of_two() -> None:
    # Second input in quarters of the output's step: 2/4, -2/4 and 6/4 are ties.
    tensors = T("s16", (4,), 1.0), T("s16", (4,), 0.25), T("s16", (4,), 1.0)
    feeds = np.int16([0, 0, 1, 32767]), np.int16([2, -2, 6, 400])
    assert outputs_of(_model("ADD", *tensors, potScaleInt16=True), *feeds) == [1, -1, 3, 32767]
    assert outputs_of(_model("SUB", *tensors, potScaleInt16=True), *feeds) == [-1, 1, -1, 32667]


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (_model("ADD", T("s8", (2,), 1.0), T("s8", (2,), 1.0), T("s8", (2,), 2.0**-20)), "BT-MULTIPLIER"),
        (_model("ADD", T("s8", (2,), 1.0), T("s8", (3,), 1.0), T("s8", (2,), 1.0)), "BT-SHAPE-BROADCAST"),
        (_model("ADD", T("s8", (2,)), T("s8", (2,), 1.0), T("s8", (2,), 1.0)), "BT-QUANT-MISSING"),
        (_model("SUB", T("s8", (2,), 1.0, 128), T("s8", (2,), 1.0), T("s8", (2,), 1.0)), "BT-QUANT-ZERO-POINT"),
        (_model("ADD", T("s16", (2,), 1.0, 1), T("s16", (2,), 1.0), T("s16", (2,), 1.0)), "BT-QUANT-ZERO-POINT"),
        (_model("ADD", T("s16", (2, 1), 1.0), T("s16", (2,), 1.0), T("s16", (2,), 1.0)), "BT-SHAPE-BROADCAST"),
        (_model("ADD", T("s16", (2,), 1.0), T("s16", (2,), 2.0), T("s16", (2,), 1.0)), "BT-ADD-POWERS"),
        (_model("ADD", T("f32", (1,) * 8 + (2,)), T("f32", (2,) + (1,) * 8), T("f32", ())), "BT-SHAPE-RANK"),
    ],
)
def test_refusals(model: bytes, code: str) -> None:
    assert refusal(model) == code


@pytest.mark.parametrize(("dtype", "runs"), [("s16", False), ("s32", True)])
def test_rank_9_without_a_scale(dtype: str, runs: bool) -> None:
    """Found by the deep run: 16-bit integers without a scale abort above rank 8 even where nothing is broadcast."""
    shape = (2,) + (1,) * 8
    content = single("ADD", ("AddOptions", {}), [T(dtype, shape), T(dtype, shape)], [T(dtype, ())])
    values = np.ones(shape, np.int16 if dtype == "s16" else np.int32)
    assert check(content, [[values, values]]) == ("equal" if runs else "refused")


@pytest.mark.numerics("litert-optimized", "xnnpack")
@pytest.mark.parametrize("second", [(1,) * 8 + (7,), (2,) * 9, (3,)])
def test_five_loops_subtract_at_any_rank(second: tuple[int, ...]) -> None:
    first = (1,) * 9
    content = single(
        "SUB",
        ("SubOptions", {"potScaleInt16": False}),
        [T("s16", first, 0.5), T("s16", second, 0.25)],
        [T("s16", (), 0.5)],
        version=2,
    )
    feeds = [np.full(first, 4, np.int16), np.arange(np.prod(second)).reshape(second).astype(np.int16)]
    assert check(content, [feeds]) == "equal"


@pytest.mark.numerics("litert-optimized", "xnnpack")
@pytest.mark.parametrize(
    ("first", "second", "runs"),
    [
        ((2,) + (1,) * 7 + (7,), (1,) * 9, True),
        ((2,) + (1,) * 7 + (7,), (2,) + (1,) * 8, True),
        ((2,) * 9, (2,), True),
        ((2, 1) * 4 + (2,), (1, 2) * 4 + (1,), False),
    ],
)
@pytest.mark.parametrize("operator", ["ADD", "MUL"])
def test_five_loops_of_real_numbers_take_any_rank(
    operator: str, first: tuple[int, ...], second: tuple[int, ...], runs: bool
) -> None:
    """Found by a fresh seed; what does not fit five loops is refused."""
    options = {"ADD": "AddOptions", "MUL": "MulOptions"}[operator]
    content = single(operator, (options, {}), [T("f32", first), T("f32", second)], [T("f32", ())])
    feeds = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in (first, second)]
    assert check(content, [feeds]) == ("equal" if runs else "refused")


@pytest.mark.numerics("litert-optimized")
@pytest.mark.parametrize("powers", [False, True])
@pytest.mark.parametrize("last", [1, 7])
def test_sub_of_rank_9(powers: bool, last: int) -> None:
    """With scales that are powers of two, a broadcast aborts the runtime."""
    x, y = T("s16", (*[1] * 8, last), 1.0), T("s16", (*[1] * 8, 7), 1.0)
    content = single("SUB", ("SubOptions", {"potScaleInt16": powers}), [x, y], [T("s16", (), 1.0)], version=4)
    feed = [np.full(x.shape, 5, np.int16), np.full(y.shape, 3, np.int16)]
    assert check(content, [feed]) == ("refused" if powers and last == 1 else "equal")

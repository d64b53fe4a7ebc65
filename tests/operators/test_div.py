"""div against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, constants, nans, outputs_of, plain_values, refusal
from support.strategies import activations, scales, seeds, zero_points

Case = tuple[bytes, list[list[np.ndarray]]]


@st.composite
def quantized(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8", "s16"]))
    shapes = draw(broadcast_shapes())
    if draw(st.booleans()):
        shapes = (shapes[0], shapes[0])
    first, second = draw(scales()), draw(scales())
    result = draw(scales(1e-3, 0.2)) * first / second
    points = [draw(zero_points(dtype)) for _ in range(3)]
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, dtype, shape) for shape in shapes]
    zero = NUMPY[dtype](points[1])
    beside = NUMPY[dtype](points[1] - 1 if points[1] > 0 else points[1] + 1)
    if draw(st.integers(0, 9)):
        values[1] = np.where(values[1] == zero, beside, values[1])
    if draw(st.integers(0, 9)) and shapes[0] == shapes[1]:
        # Keep quotients above one output step, where the shift is defined.
        quotient = (values[0].astype(float) - points[0]) * first / (values[1].astype(float) - points[1] + 1e-9) / second
        small = np.abs(quotient) < result
        far = np.iinfo(NUMPY[dtype]).max if points[0] <= 0 else np.iinfo(NUMPY[dtype]).min
        values = [np.where(small, far, values[0]), np.where(small, beside, values[1])]
    values = [np.asarray(value, NUMPY[dtype]) for value in values]
    inputs = [T(dtype, shapes[0], first, points[0]), T(dtype, shapes[1], second, points[1])]
    options = {"fusedActivationFunction": draw(activations)}
    return binary("DIV", "DivOptions", options, inputs, T(dtype, (), result, points[2]), values, draw(constants), 2)


@st.composite
def plain(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["f32", "s32"]))
    shapes = draw(broadcast_shapes())
    rng = np.random.default_rng(draw(seeds))
    nan = draw(nans)
    values = [plain_values(rng, dtype, shape, pattern) for shape, pattern in zip(shapes, nan, strict=True)]
    if dtype == "s32" and draw(st.integers(0, 9)):
        values[1] = np.asarray(np.where(values[1] == 0, -1, values[1]), np.int32)
    options = {"fusedActivationFunction": draw(st.integers(0, 5))}
    inputs = [T(dtype, shape) for shape in shapes]
    return binary("DIV", "DivOptions", options, inputs, T(dtype, ()), values, draw(constants), 1)


@given(quantized())
def test_div_quantized(case: Case) -> None:
    # Right shifts outside 0..31 are undefined in the kernel: small numerators over large divisors.
    check(*case, may_refuse={"BT-DIVIDE-RANGE"})


@given(plain())
def test_div_plain(case: Case) -> None:
    check(*case)


def _model(first: T, second: T, output: T, **options: object) -> bytes:
    return single("DIV", ("DivOptions", options), [first, second], [output], version=2)


def test_literal() -> None:
    # 5 / 2 is a tie; for -5 / 2 the first of the two roundings has already moved it.
    model = _model(T("s8", (4,), 1.0), T("s8", (4,), 1.0), T("s8", (4,), 1.0))
    assert outputs_of(model, np.int8([5, -5, 127, -128]), np.int8([2, 2, 1, -1])) == [3, -2, 127, 127]


def test_literal_plain() -> None:
    model = _model(T("s32", (4,)), T("s32", (4,)), T("s32", (4,)))
    lowest = -(2**31)
    assert outputs_of(model, np.int32([7, -7, lowest, lowest]), np.int32([-2, -2, -1, 1])) == [-3, 3, 2**31 - 1, lowest]
    model = _model(T("f32", (2,)), T("f32", (2,)), T("f32", (2,)), fusedActivationFunction=3)
    assert outputs_of(model, np.float32([1, -1]), np.float32([0, 0])) == [6.0, 0.0]


def _unit() -> T:
    return T("s8", (1,), 1.0)


@pytest.mark.parametrize(
    ("model", "feeds", "code"),
    [
        (_model(_unit(), _unit(), _unit()), ([3], [0]), "BT-DIVIDE-ZERO"),
        (_model(_unit(), _unit(), _unit()), ([0], [4]), "BT-DIVIDE-RANGE"),
        (_model(T("s32", (1,)), T("s32", (1,)), T("s32", (1,))), ([3], [0]), "BT-DIVIDE-ZERO"),
        (_model(_unit(), T("s8", (1,)), _unit()), ([3], [1]), "BT-QUANT-MISSING"),
        (_model(_unit(), T("s8", (2,), [1.0, 2.0], [0, 0]), _unit()), ([3], [1, 1]), "BT-QUANT-PER-AXIS"),
    ],
)
def test_refusals(model: bytes, feeds: tuple[list[int], list[int]], code: str) -> None:
    dtype = bittrue.load(model).graph.tensors[0].type.numpy
    assert refusal(model, *(np.array(feed, dtype) for feed in feeds)) == code

"""squared_difference against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import T, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, constants, nans, outputs_of, plain_values, refusal
from support.strategies import scales, seeds, zero_points

Case = tuple[bytes, list[list[np.ndarray]]]


@st.composite
def quantized(draw: st.DrawFn) -> Case:
    shapes = draw(broadcast_shapes())
    # The result multiplier reaches 1 for output scales below about scale^2 / 4096: both sides must refuse.
    result = draw(scales(draw(st.sampled_from([1e-3, 1e-3, 1e-6])), 100.0))
    inputs = [T("s8", shape, draw(scales()), draw(zero_points("s8"))) for shape in shapes]
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, "s8", shape) for shape in shapes]
    output = T("s8", (), result, draw(zero_points("s8")))
    return binary("SQUARED_DIFFERENCE", None, {}, inputs, output, values, draw(constants), 2)


@st.composite
def plain(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["f32", "s32"]))
    shapes = draw(broadcast_shapes())
    nan = draw(nans)
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, dtype, shape, pattern) for shape, pattern in zip(shapes, nan, strict=True)]
    inputs = [T(dtype, shape) for shape in shapes]
    return binary("SQUARED_DIFFERENCE", None, {}, inputs, T(dtype, ()), values, draw(constants), 1)


@given(quantized())
def test_squared_difference_quantized(case: Case) -> None:
    check(*case)


@given(plain())
def test_squared_difference_plain(case: Case) -> None:
    check(*case)


def _model(first: T, second: T, output: T) -> bytes:
    return single("SQUARED_DIFFERENCE", None, [first, second], [output], version=2)


def test_literal() -> None:
    # Differences of 2, -3 and 255 halves: squares 1, 2.25 and 16256.25 in units of the output.
    model = _model(T("s8", (3,), 0.5), T("s8", (3,), 0.5), T("s8", (3,), 1.0))
    assert outputs_of(model, np.int8([3, 1, 127]), np.int8([1, 4, -128])) == [1, 2, 127]
    model = _model(T("s32", (2,)), T("s32", (2,)), T("s32", (2,)))
    assert outputs_of(model, np.int32([5, 2**16]), np.int32([8, 0])) == [9, 0]


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (_model(T("s8", (1,), 1.0), T("s8", (1,), 1.0), T("s8", (1,), 2.0**-12)), "BT-MULTIPLIER"),
        (_model(T("s8", (1,), 1.0, 128), T("s8", (1,), 1.0), T("s8", (1,), 1.0)), "BT-QUANT-ZERO-POINT"),
        (_model(T("s8", (1,)), T("s8", (1,), 1.0), T("s8", (1,), 1.0)), "BT-QUANT-MISSING"),
        (_model(T("u8", (1,), 1.0), T("u8", (1,), 1.0), T("u8", (1,), 1.0)), "BT-OPERATOR"),
    ],
)
def test_refusals(model: bytes, code: str) -> None:
    assert refusal(model) == code

"""equal, not_equal, greater, greater_equal, less, less_equal against the real runtime."""

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
# Highest operator version of each kernel.
OPERATORS = {"EQUAL": 3, "NOT_EQUAL": 3, "GREATER": 2, "GREATER_EQUAL": 2, "LESS": 2, "LESS_EQUAL": 2}


@st.composite
def cases(draw: st.DrawFn, operator: str, types: tuple[str, ...], scaled: bool) -> Case:
    dtype = draw(st.sampled_from(types))
    shapes = draw(broadcast_shapes())
    nan = draw(nans)
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, dtype, shape, pattern) for shape, pattern in zip(shapes, nan, strict=True)]
    # Scales near each other (one in three equal) make rescaled values meet; tiny ones flush to zero.
    first = draw(scales(draw(st.sampled_from([1e-3, 1e-12])), 0.99))
    second = draw(st.sampled_from([first, first / 2, draw(scales(1e-3, 0.99))]))
    points = [draw(zero_points(dtype)) for _ in range(2)] if scaled else [0, 0]
    inputs = [
        T(dtype, shape, scale, point) if scaled else T(dtype, shape)
        for shape, scale, point in zip(shapes, (first, second), points, strict=True)
    ]
    table = "".join(word.capitalize() for word in operator.split("_")) + "Options"
    return binary(operator, table, {}, inputs, T("bool", ()), values, draw(constants), OPERATORS[operator])


@pytest.mark.parametrize("operator", OPERATORS)
@given(data=st.data())
def test_scaled(operator: str, data: st.DataObject) -> None:
    check(*data.draw(cases(operator, ("s8", "u8", "s16"), scaled=True)))


@pytest.mark.parametrize("operator", OPERATORS)
@given(data=st.data())
def test_plain(operator: str, data: st.DataObject) -> None:
    types = ("s16",) if operator not in ("NOT_EQUAL",) else ()
    types += ("bool",) if operator in ("EQUAL", "NOT_EQUAL") else ()
    check(*data.draw(cases(operator, ("f32", "f32", "s32", "s64", *types), scaled=False)))


def _model(operator: str, first: T, second: T) -> bytes:
    return single(operator, None, [first, second], [T("bool", (1,))], version=OPERATORS[operator])


def test_literal() -> None:
    # 1/1024 and 2/1024 are 0.25 and 0.5 steps of 1/256: the tie goes up, so 0 < 1. 3/1024 rounds to 1 as well.
    feeds = np.int8([1, 2, 2]), np.int8([2, 3, 2])
    for operator, expected in (("LESS", [True, False, False]), ("EQUAL", [False, True, True])):
        model = _model(operator, T("s8", (3,), 2.0**-10), T("s8", (3,), 2.0**-10))
        assert outputs_of(model, *feeds) == expected
    # 16-bit order comparisons ignore scales: 0.5 * 3 > 0.25 * 4, but 3 < 4.
    model = _model("LESS", T("s16", (1,), 0.5), T("s16", (1,), 0.25))
    assert outputs_of(model, np.int16([3]), np.int16([4])) == [True]


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (_model("EQUAL", T("s8", (1,), 1.0), T("s8", (1,), 0.5)), "BT-COMPARE-SCALE"),
        (_model("LESS", T("u8", (1,), 0.5), T("u8", (1,), 2.0)), "BT-COMPARE-SCALE"),
        (_model("EQUAL", T("s8", (1,)), T("s8", (1,), 0.5)), "BT-QUANT-MISSING"),
        (_model("EQUAL", T("s16", (1,), 0.5), T("s16", (1,))), "BT-QUANT-MISSING"),
        (_model("NOT_EQUAL", T("s16", (1,)), T("s16", (1,))), "BT-QUANT-MISSING"),
        (_model("LESS", T("bool", (1,)), T("bool", (1,))), "BT-OPERATOR"),
        (_model("LESS", T("s32", (2,)), T("s32", (3,))), "BT-SHAPE-BROADCAST"),
    ],
)
def test_refusals(model: bytes, code: str) -> None:
    assert refusal(model) == code

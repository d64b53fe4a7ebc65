"""maximum and minimum against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bittrue
from support import differential
from support.build import T, single
from support.differential import check
from support.elementwise import binary, broadcast_shapes, constants, nans, outputs_of, plain_values, refusal
from support.strategies import scales, seeds, zero_points

Case = tuple[bytes, list[list[np.ndarray]]]


@st.composite
def cases(draw: st.DrawFn, operator: str) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8", "s16", "s32", "s64", "f32", "f32"]))
    shapes = draw(broadcast_shapes())
    nan = draw(nans)
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, dtype, shape, pattern) for shape, pattern in zip(shapes, nan, strict=True)]
    # Different scales change nothing: quantized values are compared.
    scaled = dtype in ("s8", "u8", "s16") and draw(st.booleans())
    tensors = [
        T(dtype, shape, draw(scales()), draw(zero_points(dtype))) if scaled else T(dtype, shape)
        for shape in (*shapes, ())
    ]
    return binary(operator, "MaximumMinimumOptions", {}, tensors[:2], tensors[2], values, draw(constants), 4)


def _check(case: Case) -> None:
    # What the delegate makes of NaN depends on the place in its vectors: a recorded limit of that row.
    assume(differential.COMPARED != "xnnpack" or not any(_has_nan(value) for value in _values(case)))
    check(*case)


def _values(case: Case) -> list[np.ndarray]:
    """Inputs and constants."""
    constants = [tensor.values() for tensor in bittrue.load(case[0]).graph.tensors if tensor.is_constant]
    return [*case[1][0], *constants]


def _has_nan(value: np.ndarray) -> bool:
    return value.dtype.kind == "f" and bool(np.isnan(value).any())


@given(cases("MAXIMUM"))
def test_maximum(case: Case) -> None:
    _check(case)


@given(cases("MINIMUM"))
def test_minimum(case: Case) -> None:
    _check(case)


def test_literal() -> None:
    model = single("MAXIMUM", None, [T("s8", (2,), 0.5, 3), T("s8", (2,), 2.0)], [T("s8", (2,), 1.0)])
    assert outputs_of(model, np.int8([3, -4]), np.int8([2, -3])) == [3, -3]
    # Neither of two equal zeros is larger: the second one is kept.
    model = single("MINIMUM", None, [T("f32", (2,)), T("f32", (2,))], [T("f32", (2,))])
    assert str(outputs_of(model, np.float32([0.0, -0.0]), np.float32([-0.0, 0.0]))) == "[-0.0, 0.0]"


@pytest.mark.parametrize(
    ("shapes", "code"),
    [(((2,), (3,)), "BT-SHAPE-BROADCAST"), (((1,) * 8 + (2,), (2,)), "BT-SHAPE-RANK")],
)
def test_refusals(shapes: tuple[tuple[int, ...], tuple[int, ...]], code: str) -> None:
    model = single("MAXIMUM", None, [T("s32", shape) for shape in shapes], [T("s32", ())])
    assert refusal(model) == code

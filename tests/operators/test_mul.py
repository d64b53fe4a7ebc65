"""mul against the real runtime."""

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


@st.composite
def quantized(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8", "s16"]))
    shapes = draw(broadcast_shapes())
    low = draw(st.sampled_from([1e-3, 1e-3, 1e-12]))
    first, second, result = draw(scales()), draw(scales()), draw(scales(low, 4.0))
    points = [draw(zero_points(dtype)) for _ in range(3)]
    rng = np.random.default_rng(draw(seeds))
    inputs = [T(dtype, shapes[0], first, points[0]), T(dtype, shapes[1], second, points[1])]
    values = [plain_values(rng, dtype, shape) for shape in shapes]
    options = {"fusedActivationFunction": draw(activations)}
    return binary("MUL", "MulOptions", options, inputs, T(dtype, (), result, points[2]), values, draw(constants), 4)


@st.composite
def narrowing(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["s8", "u8"]))
    shapes = draw(broadcast_shapes())
    # The kernel aborts where a broadcast is needed, and the runtime's process takes a while to come back.
    if draw(st.integers(0, 24)):
        shapes = (shapes[0], shapes[0])
    inputs = [T("s16", shape, draw(st.sampled_from([None, 2.0**-15])), 0) for shape in shapes]
    output = T(dtype, (), draw(scales(1e-3, 0.1)), draw(zero_points(dtype)))
    rng = np.random.default_rng(draw(seeds))
    values = [plain_values(rng, "s16", shape) for shape in shapes]
    options = {"fusedActivationFunction": draw(activations)}
    return binary("MUL", "MulOptions", options, inputs, output, values, draw(st.sampled_from([0, 0, 1, 2])), 4)


@st.composite
def plain(draw: st.DrawFn) -> Case:
    dtype = draw(st.sampled_from(["f32", "f32", "s32", "s64", "u32", "s16"]))
    shapes = draw(broadcast_shapes())
    rng = np.random.default_rng(draw(seeds))
    nan = draw(nans)
    values = [plain_values(rng, dtype, shape, pattern) for shape, pattern in zip(shapes, nan, strict=True)]
    options = {"fusedActivationFunction": draw(st.integers(0, 5))}
    inputs = [T(dtype, shape) for shape in shapes]
    return binary("MUL", "MulOptions", options, inputs, T(dtype, ()), values, draw(constants), 6)


@given(quantized())
def test_mul_quantized(case: Case) -> None:
    # Undefined in the kernel: left shifts by 31 or more, and a clamp of exactly 2^31 steps.
    check(*case, may_refuse={"BT-MULTIPLIER", "BT-ACTIVATION-RANGE"})


@given(narrowing())
def test_mul_narrowing(case: Case) -> None:
    check(*case)


@given(plain())
def test_mul_plain(case: Case) -> None:
    check(*case)


def _model(first: T, second: T, output: T, **options: object) -> bytes:
    return single("MUL", ("MulOptions", options), [first, second], [output], version=4)


def test_literal() -> None:
    # Quarters: 1 * 2 and -1 * 2 are ties; 100 * 100 / 4 saturates.
    model = _model(T("s8", (3,), 0.5), T("s8", (3,), 0.5), T("s8", (3,), 1.0))
    assert outputs_of(model, np.int8([1, -1, 100]), np.int8([2, 2, 100])) == [1, -1, 127]


def test_literal_narrowing() -> None:
    # 128 * 32767 / 2^15 is 128 (127.996 rounded), then 128 / 256 is a tie.
    model = _model(T("s16", (3,), 1.0), T("s16", (3,), 1.0), T("s8", (3,), 1.0))
    feeds = np.int16([128, -128, -32768]), np.int16([32767, 32767, -32768])
    assert outputs_of(model, *feeds) == [1, -1, 127]


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (_model(T("s8", (2,), 1.0), T("s8", (3,), 1.0), T("s8", (2,), 1.0)), "BT-SHAPE-BROADCAST"),
        (_model(T("s16", (2,), 1.0, 1), T("s16", (2,), 1.0), T("s16", (2,), 1.0)), "BT-QUANT-ZERO-POINT"),
        (_model(T("s16", (2, 1), 1.0), T("s16", (2,), 1.0), T("s8", (2,), 1.0)), "BT-SHAPE-BROADCAST"),
        (_model(T("s16", (1,), 1.0), T("s16", (2,), 1.0), T("s8", (2,), 1.0)), "BT-SHAPE-BROADCAST"),
        (_model(T("s16", (2,), 1.0), T("s16", (1,), 1.0), T("s8", (2,), 1.0)), "BT-SHAPE-BROADCAST"),
        # The kernel takes a missing scale as 0 and fills the output with its zero point.
        (_model(T("s8", (2,), 1.0), T("s8", (2,), 1.0), T("s8", (2,))), "BT-QUANT-MISSING"),
        (_model(T("s8", (2,), 1e9), T("s8", (2,), 1e9), T("s8", (2,), 1.0)), "BT-MULTIPLIER"),
        (_model(T("f32", (1,) * 8 + (2,)), T("f32", (2,) + (1,) * 8), T("f32", ())), "BT-SHAPE-RANK"),
    ],
)
def test_refusals(model: bytes, code: str) -> None:
    assert refusal(model) == code

"""concatenation against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.movement import feeds, nearly, parameters, runs_in_runtime, sizes, tensor
from support.strategies import seeded, seeds

TYPES = ("s4", "s8", "s8", "s8", "u8", "s16", "s32", "u32", "s64", "f16", "bf16", "f32", "bool")


def concatenate(inputs: list[T], output: T, axis: int = 0, activation: int = 0) -> bytes:
    options = ("ConcatenationOptions", {"axis": axis, "fusedActivationFunction": activation})
    return single("CONCATENATION", options, inputs, [output], version=6)


@st.composite
def concatenation(draw: st.DrawFn) -> bytes:
    dtype = draw(st.sampled_from(TYPES))
    shape = draw(sizes(1, 4))
    axis = draw(st.integers(0, len(shape) - 1))
    common = draw(parameters(dtype))
    inputs = []
    for _ in range(draw(st.integers(1, 4))):
        part = list(shape)
        part[axis] = draw(st.integers(0, 4))
        if draw(st.integers(0, 30)) == 0:
            part[draw(st.integers(0, len(part) - 1))] += 1
        own = draw(nearly(dtype, common))
        data = seeded(dtype, tuple(part), draw(seeds)) if draw(st.integers(0, 3)) == 0 else None
        inputs.append(tensor(dtype, part, own, data))
    # The interpreter cannot hand out results without elements that it computed while preparing.
    inputs[0].data = None
    if draw(st.integers(0, 30)) == 0:
        axis = draw(st.integers(-6, 5))
    elif draw(st.booleans()):
        axis -= len(shape)
    activation = draw(st.sampled_from([0] * 15 + [1]))
    return concatenate(inputs, tensor(dtype, (), draw(nearly(dtype, common))), axis, activation)


@st.composite
def rescaled(draw: st.DrawFn) -> bytes:
    """u8 with parameters of its own for every tensor; scales far apart make values leave 32 bits."""
    scale = st.one_of(
        st.sampled_from([0.25, 0.5, 1.0, 2.0, 1e-20, 1e20, 3e38, 1e-38]),
        st.floats(0.0078125, 4, width=32),
    )
    zero_point = st.sampled_from([0, 255, 128]) | st.integers(0, 255)
    optional = st.one_of(st.tuples(scale, zero_point), st.tuples(scale, zero_point), st.none())
    shape = (draw(st.integers(1, 40)),)
    inputs = [tensor("u8", shape, draw(optional)) for _ in range(draw(st.integers(1, 3)))]
    return concatenate(inputs, tensor("u8", (), draw(optional)))


@st.composite
def scalars(draw: st.DrawFn) -> bytes:
    """Joined while the kernel prepares: raw copies, whatever the parameters are."""
    dtype = draw(st.sampled_from([t for t in TYPES if t != "s4"]))
    common = draw(parameters(dtype))
    inputs = [
        tensor(dtype, (), draw(parameters(dtype)), seeded(dtype, (), draw(seeds)))
        for _ in range(draw(st.integers(1, 4)))
    ]
    if draw(st.integers(0, 9)) == 0:
        inputs.append(tensor(dtype, (), common))
    return concatenate(inputs, tensor(dtype, (), common), draw(st.sampled_from([0, 0, 0, 0, 1, -1])))


@given(concatenation(), seeds)
def test_concatenation(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(rescaled(), seeds)
def test_unsigned_inputs_are_rescaled(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


@given(scalars(), seeds)
def test_scalars(content: bytes, seed: int) -> None:
    check(content, feeds(content, seed))


def test_ties_go_away_from_zero() -> None:
    # Half the scale: 5 -> 2.5 -> 3; with zero point 10: (5 - 10) / 2 = -2.5 -> -3, plus the output's zero point 100.
    content = concatenate([T("u8", (1,), 0.5, 0), T("u8", (2,), 0.5, 10)], T("u8", (), 1.0, 100, name="y"))
    values = bittrue.load(content).prepare().run(np.uint8([5]), np.uint8([5, 255]))
    assert values["y"].tolist() == [103, 97, 223]


@pytest.mark.parametrize(
    ("inputs", "output", "axis", "activation", "code"),
    [
        ([T("s8", (2,), 0.5, 0), T("s8", (2,), 0.25, 0)], T("s8", (), 0.5, 0), 0, 0, "BT-QUANT-SAME"),
        ([T("s16", (2,), 0.5, 1)], T("s16", (), 0.5, 0), 0, 0, "BT-QUANT-ZERO-POINT"),
        ([T("s32", (2, 2)), T("s32", (2, 3))], T("s32", ()), 0, 0, "BT-CONCATENATION"),
        ([T("s32", (2, 2)), T("s32", (2,))], T("s32", ()), 0, 0, "BT-CONCATENATION"),
        ([T("s32", (2, 2))], T("s32", ()), 2, 0, "BT-SHAPE-AXIS"),
        ([T("s32", (2, 2))], T("s32", ()), 0, 1, "BT-CONCATENATION"),
        ([T("s32", (2,)), T("s64", (2,))], T("s32", ()), 0, 0, "BT-OPERATOR"),
        ([T("s32", ()), T("s32", ())], T("s32", ()), 1, 0, "BT-CONCATENATION"),
    ],
)
def test_errors(inputs: list[T], output: T, axis: int, activation: int, code: str) -> None:
    content = concatenate(inputs, output, axis, activation)
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == code
    assert not runs_in_runtime(content, feeds(content, 0)[0])

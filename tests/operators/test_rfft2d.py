"""rfft2d against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.build import T, single
from support.differential import check, only_output
from support.selection import Case, given_as, refused_by_both
from support.strategies import seeds

OPTIONS = ("Rfft2dOptions", {})


def model(shape: tuple[int, ...], height: int, width: int) -> bytes:
    lengths = T("s32", (2,), data=np.int32([height, width]))
    return single("RFFT2D", OPTIONS, [T("f32", shape), lengths], [T("c64", ())])


def signals(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Noise hides the last bits of binary64; where a frequency is absent, what remains is nothing else."""
    if kind == "noise":
        return (rng.standard_normal(shape) * 4).astype(np.float32)
    if kind == "integers":
        return rng.integers(-3, 4, shape).astype(np.float32)
    if kind == "tone":
        period = 2.0 ** rng.integers(1, 7)
        return np.broadcast_to(np.cos(2 * np.pi / period * np.arange(shape[-1])), shape).astype(np.float32)
    values = np.zeros(shape, np.float32)
    values.reshape(-1)[rng.integers(0, values.size)] = rng.choice(np.float32([1, -3.25e-30, 1e30]))
    return values


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = draw(st.booleans())
    height = 1 if rows else 2 ** draw(st.integers(0, 6))
    width = 2 ** draw(st.integers(0, 12 if rows else 6))
    given_height = draw(st.sampled_from([height, height, max(1, height - 1), height + 1]))
    given_width = draw(st.sampled_from([width, width, max(1, width * 3 // 4), width + 3]))
    outer = draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    shape = (*outer, given_height, given_width)
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["noise", "integers", "tone", "impulse"]))
    return model(shape, height, width), [[signals(rng, shape, kind)]]


@given(cases())
def test_rfft2d(case: Case) -> None:
    check(*case)


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("kind", ["noise", "integers", "tone", "impulse"])
@pytest.mark.parametrize("power", range(16))
def test_every_length(power: int, kind: str) -> None:
    shape = (2, 1, 2**power)
    check(model(shape, 1, 2**power), [[signals(np.random.default_rng(power), shape, kind)]])


@pytest.mark.parametrize(("height", "width"), [(4096, 2), (512, 8), (64, 256), (2, 2048), (1024, 1)])
def test_columns(height: int, width: int) -> None:
    shape = (1, height, width)
    check(model(shape, height, width), [[signals(np.random.default_rng(height), shape, "integers")]])


def test_lengths_that_are_computed() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    content = single("RFFT2D", OPTIONS, [T("f32", (3, 4)), T("s32", (2,))], [T("c64", ())])
    check(content, [[x, np.int32([4, 8])]])


def test_literal() -> None:
    out = only_output(model((1, 4), 1, 4), np.float32([[1, 2, 3, 5]]))
    assert out.tolist() == [[11 + 0j, -2 + 3j, -3 + 0j]]


@pytest.mark.parametrize(
    ("shape", "lengths", "code"),
    [
        ((2, 4), [1, 3], "BT-FFT-LENGTH"),
        ((2, 4), [0, 4], "BT-FFT-LENGTH"),
        ((2, 4), [4], "BT-FFT-LENGTH"),
        ((4,), [1, 4], "BT-SHAPE-RANK"),
    ],
)
def test_refusals(shape: tuple[int, ...], lengths: list[int], code: str) -> None:
    case = given_as("RFFT2D", OPTIONS, [("f32", np.ones(shape)), ("s32", np.array(lengths))], ["c64"], 2)
    refused_by_both(case, code)

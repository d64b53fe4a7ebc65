"""hadamard_rotation (aeq.hadamard_rotation of the AI Edge Quantizer) against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.flexbuffer import packed
from support.selection import Case
from support.strategies import seeds


def model(shape: tuple[int, ...], size: int, dtype: str = "f32") -> bytes:
    options = packed({"hadamard_size": size})
    return single("CUSTOM:aeq.hadamard_rotation", options, [T(dtype, shape)], [T(dtype, shape)])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = 1 << draw(st.integers(0, 9))
    width = draw(st.one_of(st.integers(1, 3).map(lambda n: n * size), st.integers(1, 2 * size + 5)))
    shape = (*draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)), width)
    x = np.random.default_rng(draw(seeds)).standard_normal(shape)
    return model(shape, size), [[(x * 10.0 ** draw(st.integers(-3, 30))).astype(np.float32)]]


# Rows that are no whole chunks; four dimensions, of which two are counted; sums beyond the largest number.
@example((model((2, 3), 2), [[np.arange(6, dtype=np.float32).reshape(2, 3)]]))
@example((model((2, 2, 2, 4), 2), [[np.arange(32, dtype=np.float32).reshape(2, 2, 2, 4)]]))
@example((model((1, 8), 8), [[np.full((1, 8), 3e38, np.float32)]]))
@given(cases())
def test_hadamard_rotation(case: Case) -> None:
    check(*case)


def rotated(x: np.ndarray, size: int) -> np.ndarray:
    return next(iter(bittrue.load(model(x.shape, size)).prepare("litert-optimized").run(x).values()))


def test_literal() -> None:
    x = np.float32([[1, 2, 3, 4], [1, 0, 0, 0]])
    assert rotated(x, 4).tolist() == [[5, -1, -2, 0], [0.5, 0.5, 0.5, 0.5]]


def test_a_rotation_turned_back() -> None:
    x = np.random.default_rng(1).integers(-100, 100, (3, 128)).astype(np.float32)
    # 8 passes of integers and a factor of 1/8: nothing is rounded.
    assert np.array_equal(rotated(rotated(x, 64), 64), x)


@pytest.mark.parametrize(("shape", "size"), [((4,), 2), ((2, 4), 0), ((2, 4), 3), ((2, 4), -2)])
def test_refusals(shape: tuple[int, ...], size: int) -> None:
    with pytest.raises(bittrue.InvalidModelError) as caught:
        bittrue.load(model(shape, size)).prepare("litert-optimized")
    assert caught.value.code == "BT-HADAMARD"


def test_who_has_it() -> None:
    with pytest.raises(bittrue.UnsupportedError, match="reference resolver does not register"):
        bittrue.load(model((2, 4), 2)).prepare("litert")
    with pytest.raises(bittrue.UnsupportedError, match="takes integers of 32 bits for real numbers"):
        bittrue.load(model((2, 4), 2, "s32")).prepare("litert-optimized")

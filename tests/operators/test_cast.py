"""cast against the real runtime, for every pair of types."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, TYPES, T
from support.differential import assert_same, check, random_values
from support.oracle import oracle
from support.strategies import seeds, shapes
from support.unary import reals, unary

NUMBERS = ("s64", "s32", "u32", "s16", "u16", "u8", "s8", "bool", "f16", "bf16", "f32", "f64")
NARROW = ("s4", "u4", "s2")


def model(source: T, to: str) -> bytes:
    return unary(
        "CAST", source, T(to, ()), ("CastOptions", {"inDataType": TYPES[source.dtype], "outDataType": TYPES[to]})
    )


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    if dtype in ("f16", "bf16", "f32", "f64"):
        floats = reals(seed, shape, dtype=np.float64 if dtype == "f64" else np.float32)
        with np.errstate(all="ignore"):
            if dtype == "f64":
                return floats * np.random.default_rng(seed).choice([1.0, 1 + 2.0**-40, 1e-3, 1e9], shape)
            return floats.astype(NUMPY[dtype])
    return random_values(np.random.default_rng(seed), np.dtype(NUMPY[dtype]), shape)


@given(source=st.sampled_from(NUMBERS), to=st.sampled_from(NUMBERS), shape=shapes(0), seed=seeds)
def test_pairs(source: str, to: str, shape: tuple[int, ...], seed: int) -> None:
    check(model(T(source, shape), to), [[values(source, shape, seed)]])


@pytest.mark.parametrize("source", NUMBERS)
def test_every_pair(source: str) -> None:
    """One large case for each target type."""
    for to in NUMBERS:
        assert check(model(T(source, (500,)), to), [[values(source, (500,), 7)]]) == "equal", to


@pytest.mark.parametrize("to", NARROW)
def test_to_4_and_2_bits(to: str) -> None:
    assert check(model(T("f32", (301,)), to), [[reals(3, (301,))]]) == "equal"


@pytest.mark.parametrize(("source", "low", "high"), [("s4", -8, 7), ("u4", 0, 15), ("s2", -2, 1)])
@pytest.mark.parametrize("count", [1, 15, 16, 18])
def test_from_4_and_2_bits(source: str, low: int, high: int, count: int) -> None:
    data = np.resize(np.arange(low, high + 1), count)
    assert check(model(T(source, (count,), data=data), "f32"), [[]]) == "equal"


@pytest.mark.parametrize(
    ("source", "to"), [*itertools.product(["s4"], ["s8", "s32", "f16"]), ("s8", "s4"), ("f64", "s4")]
)
def test_pairs_that_both_sides_refuse(source: str, to: str) -> None:
    data = np.zeros(4, np.int8) if source == "s4" else None
    feed = [] if source == "s4" else [np.zeros(4, NUMPY[source])]
    content = model(T(source, (4,), data=data), to)
    assert oracle().run(content, [feed], [1]).refused
    with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR"):
        bittrue.load(content).prepare()


def test_values_by_hand() -> None:
    """Toward zero, saturated, NaN to the maximum; integers keep their low bits."""
    x = np.float32([1.9, -1.9, 300, -300, np.nan])
    assert bittrue.load(model(T("f32", (5,)), "s8")).prepare().run(x)["t1"].tolist() == [1, -1, 127, -128, 127]
    y = bittrue.load(model(T("s32", (3,)), "s8")).prepare().run(np.int32([200, -129, 5]))["t1"]
    assert_same("y", y, np.int8([-56, 127, 5]))

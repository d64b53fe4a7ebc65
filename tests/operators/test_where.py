"""where and unique: how many results there are is in the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bittrue
from support.build import NUMPY, T, chain, single
from support.differential import check, random_values
from support.strategies import seeds

WHERE_TYPES = ("bool", "f32", "s64", "s32", "s8", "u8", "u32")
UNIQUE_TYPES = ("s8", "u8", "s16", "s32", "s64", "f32")


def values(seed: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Many zeros and repeated values, some NaNs and negative zeros."""
    rng = np.random.default_rng(seed)
    x = random_values(rng, np.dtype(NUMPY[dtype]), shape)
    few = rng.integers(0, 4, shape).astype(x.dtype)
    x = np.where(rng.random(shape) < 0.7, few, x)
    if dtype == "f32":
        special = rng.choice(np.float32([np.nan, -0.0, np.inf, -np.inf, 1e-45]), shape)
        x = np.where(rng.random(shape) < 0.15, special, x)
    return x.astype(NUMPY[dtype])


shapes = st.lists(st.integers(0, 5), min_size=1, max_size=5).map(tuple)


def scale(dtype: str) -> float | None:
    return 0.5 if dtype in ("s8", "u8") else None


@given(st.sampled_from(WHERE_TYPES), shapes, seeds, st.booleans())
@example("f32", (2, 3), 1, False)
def test_where(dtype: str, shape: tuple[int, ...], seed: int, constant: bool) -> None:
    x = values(seed, dtype, shape)
    source = T(dtype, shape, scale(dtype), 1, data=x if constant else None)
    found = T("s64", (1, len(shape)), signature=(-1, len(shape)))
    # The shape of what follows depends on it, too.
    after = T("s64", (1, len(shape)), signature=(-1, len(shape)))
    nodes = [("WHERE", ("WhereOptions", {}), [source], [found]), ("NEG", ("NegOptions", {}), [found], [after])]
    if constant:
        # A model needs an input.
        nodes.append(("NEG", ("NegOptions", {}), [T("s32", (1,))], [T("s32", (1,))]))
    feed = [np.ones(1, np.int32)] if constant else [x]
    assert check(chain(nodes), [feed]) == "equal"


def test_where_again_and_again() -> None:
    """One session, many counts: plans are kept and made anew as they are needed."""
    x, found, after = T("bool", (7,)), T("s64", (1, 1), signature=(-1, 1)), T("s64", (1, 1), signature=(-1, 1))
    content = chain([("WHERE", ("WhereOptions", {}), [x], [found]), ("NEG", None, [found], [after])])
    rng = np.random.default_rng(0)
    for executor in ("reference", *(["native"] if bittrue.isas() else [])):
        session = bittrue.load(content).prepare(executor=executor)
        assert session.outputs[0].shape == (-1, 1)
        for _ in range(50):
            feed = rng.random(7) < rng.random()
            (result,) = session.run(feed).values()
            assert result.dtype == np.int64
            assert result.tolist() == [[-i] for i in np.flatnonzero(feed)]


def test_where_takes_no_scalar() -> None:
    content = single("WHERE", ("WhereOptions", {}), [T("bool", ())], [T("s64", (1, 1))])
    assert check(content, [[np.array(True)]]) == "refused"


@given(
    st.sampled_from(UNIQUE_TYPES), st.integers(0, 40), seeds, st.sampled_from([("s32", 2), ("s64", 4)]), st.booleans()
)
def test_unique(dtype: str, count: int, seed: int, kind: tuple[str, int], constant: bool) -> None:
    index_type, number = kind
    x = values(seed, dtype, (count,))
    source = T(dtype, (count,), scale(dtype), 1, data=x if constant and count else None)
    found, which = T(dtype, (1,), scale(dtype), 1, signature=(-1,)), T(index_type, (count,))
    after = T("s64", (1,))
    nodes = [
        ("UNIQUE", ("UniqueOptions", {"idxOutType": number}), [source], [found, which]),
        ("SHAPE", ("ShapeOptions", {"outType": 4}), [found], [after]),
    ]
    feed = [x]
    if constant and count:
        nodes.append(("NEG", ("NegOptions", {}), [T("s32", (1,))], [T("s32", (1,))]))
        feed = [np.ones(1, np.int32)]
    assert check(chain(nodes), [feed]) == "equal"


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "x",
    [
        [NAN],
        [NAN, 1, 2, NAN],
        [1, NAN, 2, 0, NAN],
        [0.0, -0.0, NAN],
        [-0.0, 0.0],
        [3, 1, NAN, -INF, NAN, 3],
        [INF, NAN],
    ],
)
def test_unique_and_nan(x: list[float]) -> None:
    source, found, which = T("f32", (len(x),)), T("f32", (1,), signature=(-1,)), T("s32", (len(x),))
    content = single("UNIQUE", ("UniqueOptions", {"idxOutType": 2}), [source], [found, which])
    assert check(content, [[np.float32(x)]]) == "equal"


def test_unique_takes_vectors() -> None:
    x, found, which = T("s32", (2, 2)), T("s32", (1,)), T("s32", (2, 2))
    content = single("UNIQUE", ("UniqueOptions", {"idxOutType": 2}), [x], [found, which])
    assert check(content, [[np.ones((2, 2), np.int32)]]) == "refused"
    x, found, which = T("s32", (4,)), T("s32", (1,)), T("s64", (4,))
    content = single("UNIQUE", ("UniqueOptions", {"idxOutType": 2}), [x], [found, which])
    assert check(content, [[np.ones(4, np.int32)]]) == "refused"

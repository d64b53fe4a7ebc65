"""bucketize against the real runtime."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.differential import check
from support.elementwise import outputs_of, plain_values
from support.movement import sizes
from support.selection import Case, given_as, refused, refused_by_both
from support.strategies import seeds


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dtype, shape = draw(st.sampled_from(["s32", "s64", "f32", "f64"])), draw(sizes(0, 3))
    rng = np.random.default_rng(draw(seeds))
    boundaries = np.sort(plain_values(rng, "f32", (draw(st.integers(1, 9)),)))
    if dtype == "f64":
        x = rng.standard_normal(shape) * 4
        x = np.where(rng.random(shape) < 0.1, np.nan, x)
    else:
        x = plain_values(rng, dtype, shape, 0x7FC12345)
    x = np.where(
        rng.random(shape) < 0.3,
        rng.choice(np.nan_to_num(boundaries[np.isfinite(boundaries)]), shape) if np.isfinite(boundaries).any() else 0,
        x,
    )
    with np.errstate(all="ignore"):
        return given_as("BUCKETIZE", ("BucketizeOptions", {"boundaries": boundaries}), [(dtype, x)], ["s32"])


@given(cases())
def test_bucketize(case: Case) -> None:
    check(*case)


def literal(boundaries: list[float], dtype: str = "s32", x: object = (-1, 0, 10, 99, 100)) -> Case:
    options = ("BucketizeOptions", {"boundaries": np.float32(boundaries)})
    return given_as("BUCKETIZE", options, [(dtype, np.array(x))], ["s32"])


def test_literal() -> None:
    content, (feed,) = literal([0, 10, 100])
    assert outputs_of(content, *feed) == [0, 1, 2, 2, 3]
    # 2^24 + 1 is 2^24 in binary32.
    content, (feed,) = literal([2.0**24 + 2], x=[2**24 + 1, 2**24 + 3])
    assert outputs_of(content, *feed) == [0, 1]
    check(content, [feed])


def test_refusals() -> None:
    refused_by_both(literal([1, 0]), "BT-BUCKETIZE")
    refused(literal([0, float("nan")]), "BT-BUCKETIZE")

"""local_response_normalization against the real runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check
from support.strategies import seeds


def model(shape: tuple[int, ...], **options: float) -> bytes:
    return single(
        "LOCAL_RESPONSE_NORMALIZATION",
        ("LocalResponseNormalizationOptions", options),
        [T("f32", shape)],
        [T("f32", ())],
    )


@given(
    shape=st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 4), st.integers(1, 30)),
    radius=st.integers(-2, 12) | st.integers(20, 200),
    bias=st.sampled_from([0.0, 1.0, 2.0, -1.0]) | st.floats(0.125, 10, width=32),
    alpha=st.sampled_from([0.0, 1.0, 1e-4, -0.1]) | st.floats(2**-9, 10, width=32),
    beta=st.sampled_from([0.0, 0.5, 0.75, 1.0, 2.0, -0.5]) | st.floats(-3, 3, width=32),
    scale=st.sampled_from([1.0, 100.0, 1e-20, 1e19]),
    seed=seeds,
)
def test_against_the_runtime(
    shape: tuple[int, ...], radius: int, bias: float, alpha: float, beta: float, scale: float, seed: int
) -> None:
    x = (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)
    check(model(shape, radius=radius, bias=bias, alpha=alpha, beta=beta), [[x]])


@pytest.mark.parametrize("beta", [1.0, -1.0, 3.0, -3.0, 2.0, 0.5])
def test_signs_of_nan(beta: float) -> None:
    """0 times the infinite sum of squares; odd powers lose the sign."""
    x = np.float32([1e18, 1e20, -3e19, 2.0]).reshape(1, 1, 1, 4)
    assert check(model(x.shape, radius=2, bias=1.0, alpha=0.0, beta=beta), [[x]]) == "equal"


def test_values_by_hand() -> None:
    """Radius 1 takes the channel before and the channel itself: (1 + 9 + 16) ^ -1 for the second one, 1 / 10 first."""
    session = bittrue.load(model((1, 1, 1, 2), radius=1, bias=1.0, alpha=1.0, beta=1.0)).prepare()
    result = next(iter(session.run(np.float32([3, 4]).reshape(1, 1, 1, 2)).values()))
    expected = np.float32([3, 4]) * np.float32([np.float32(1 / 10), np.float32(1 / 26)])
    assert result.reshape(-1).tolist() == expected.tolist()


def test_a_radius_that_leaves_32_bits_is_refused() -> None:
    with pytest.raises(bittrue.InvalidModelError, match="BT-LRN-RADIUS"):
        bittrue.load(model((1, 1, 1, 2), radius=2**31 - 1, bias=1.0, alpha=1.0, beta=1.0)).prepare()

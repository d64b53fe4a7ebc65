"""floats and matmul against the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittrue.arithmetic import exact, floats, matmul

NAMES = ("round_away", "round_even", "truncate_to_s32", "saturate_to_s32")


def candidates(real) -> np.ndarray:
    """Halves, their neighbours, powers of two, the s32 borders, the largest odd integers, NaN and infinities."""
    bits = np.finfo(real).nmant + 1
    base = [k + 0.5 for k in range(-5, 6)] + [2.0**n for n in range(-60, 70)] + [2.0**31, 2.0**31 - 1, 2.0**31 - 0.5]
    base += [2.0**bits - 1, 2.0 ** (bits - 1) - 0.5, 2.0 ** (bits - 2) + 0.5, 2.0 ** (bits - 1) + 1, 1e30, 0.0]
    x = np.array(base + [-v for v in base], dtype=real)
    x = np.concatenate([x, np.nextafter(x, real(np.inf)), np.nextafter(x, real(-np.inf))])
    random = np.random.default_rng(1).normal(0, 1, 3000) * 2.0 ** np.random.default_rng(2).integers(-5, 34, 3000)
    halves = np.random.default_rng(3).integers(-(2**22), 2**22, 2000) + 0.5
    return np.concatenate([x, random, halves, [np.nan, np.inf, -np.inf]]).astype(real)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_equals_oracle(name, real):
    x = candidates(real)
    got = getattr(floats, name)(x)
    assert got.dtype == (real if name.startswith("round") else np.int64)
    expected = np.array([getattr(exact, name)(float(v)) for v in x])
    np.testing.assert_array_equal(got, expected)
    if name.startswith("round"):
        assert (np.signbit(got) == np.signbit(expected)).all()


@settings(max_examples=120)
@given(st.floats(allow_nan=False))
def test_random(x):
    for name in NAMES:
        assert getattr(floats, name)(x) == getattr(exact, name)(x)


def test_sums_to_odd():
    x = candidates(np.float64)
    x = x[np.isfinite(x)]
    rng = np.random.default_rng(4)
    a, b = rng.permutation(x), rng.permutation(x) * 2.0 ** rng.integers(-70, 5, x.size)
    got = floats.add_to_odd(a, b)
    expected = np.array([exact.add_to_odd(p, q) for p, q in zip(a.tolist(), b.tolist(), strict=True)])
    assert (got != a + b).any()
    assert got.tobytes() == expected.tobytes()


def test_literal_values():
    assert floats.round_away(0.49999999999999994) == 0
    assert floats.round_away(np.float32(0.49999997)) == 0
    assert floats.round_away([0.5, -0.5, 1.5, -1.5, 2.5, -2.5]).tolist() == [1, -1, 2, -2, 3, -3]
    assert floats.round_even([0.5, -0.5, 1.5, -1.5, 2.5, -2.5]).tolist() == [0, 0, 2, -2, 2, -2]
    assert floats.round_away([2.0**52 + 1, 2.0**53 - 1, -(2.0**52) - 1, 1e300]).tolist() == [
        2.0**52 + 1,
        2.0**53 - 1,
        -(2.0**52) - 1,
        1e300,
    ]
    assert floats.truncate_to_s32([math.nan, math.inf, -math.inf, 2.0**31, 2.0**31 - 0.5]).tolist() == [
        -(2**31),
        -(2**31),
        -(2**31),
        -(2**31),
        2**31 - 1,
    ]
    assert floats.round_away(7).dtype == np.float64
    for bad in (1j, np.array([None])):
        with pytest.raises(TypeError):
            floats.round_away(bad)


def test_arguments_are_kept():
    for name in NAMES:
        x = np.array([0.5, -1.5])
        getattr(floats, name)(x)[...] = 9
        assert x.tolist() == [0.5, -1.5]


@pytest.mark.parametrize(
    ("bound", "kind"),
    [(2**24 - 1, np.float32), (2**24, np.float64), (2**53 - 1, np.float64), (2**53, np.int64), (2**70, np.int64)],
)
def test_matmul_types(bound, kind):
    got = matmul.exact_matmul([[1, -2]], [[3], [4]], bound)
    assert got.dtype == kind
    assert got.tolist() == [[-5]]


@pytest.mark.parametrize("limit", [2**24, 2**53, 2**62])
def test_matmul_at_the_bound(limit):
    rng = np.random.default_rng(limit % 97)
    for k in (1, 2, 7, 64, 1024):
        largest = math.isqrt((limit - 1) // k)
        a = rng.integers(-largest, largest + 1, (5, k))
        b = rng.integers(-largest, largest + 1, (k, 3))
        a[0], b[:, 0] = largest, largest  # the bound itself
        a[1], b[:, 1] = largest, -largest
        bound = int((np.abs(a).astype(object) @ np.abs(b).astype(object)).max())
        assert bound < limit
        got = matmul.exact_matmul(a, b, bound)
        assert got.astype(object).tolist() == exact.exact_matmul(a.tolist(), b.tolist(), bound)


def test_matmul_s8_prepacked_batched_and_errors():
    rng = np.random.default_rng(5)
    a = rng.integers(-128, 128, (2, 17, 300), dtype=np.int8)
    b = rng.integers(-128, 128, (300, 9), dtype=np.int8)
    expected = a.astype(np.int64) @ b.astype(np.int64)
    assert (matmul.exact_matmul(a, b, 300 * 128 * 128) == expected).all()
    assert (matmul.exact_matmul(a, b.astype(np.float32), 2**60) == expected).all()
    with pytest.raises(ValueError, match="bound"):
        matmul.exact_matmul(a, b, -1)


def test_fused_multiply_add() -> None:
    rng = np.random.default_rng(8)
    a, b = ((rng.standard_normal(4000) * 2.0 ** rng.integers(-40, 40, 4000)).astype(np.float32) for _ in range(2))
    # Sums that nearly cancel are where a second rounding shows.
    c = (-a.astype(np.float64) * b * rng.choice([1, 0.5, 1 + 2.0**-30, 1e-3], 4000)).astype(np.float32)
    expected = [exact.fused_multiply_add(*map(float, v)) for v in zip(a, b, c, strict=True)]
    assert floats.fused_multiply_add(a, b, c).tolist() == expected


def test_fused_multiply_add_of_binary16() -> None:
    """Against fractions, where sums cancel, where they are subnormal, and where they leave the range."""
    rng = np.random.default_rng(10)
    a, b = (
        np.clip(rng.standard_normal(4000) * 2.0 ** rng.integers(-20, 14, 4000), -65504, 65504).astype(np.float16)
        for _ in range(2)
    )
    with np.errstate(all="ignore"):
        c = (-a.astype(np.float64) * b * rng.choice([1, 0.5, 1 + 2.0**-9, -0.3, 1e-3], 4000)).astype(np.float16)
    c = np.where(np.isfinite(c), c, np.float16(65504))
    expected = [exact.fused_multiply_add_16(*map(float, v)) for v in zip(a, b, c, strict=True)]
    found = floats.fused_multiply_add_16(a, b, c)
    assert found.tolist() == expected
    assert np.isinf(found).any()
    assert (np.abs(found) < 2.0**-14).any()


def test_fused_multiply_add_of_binary64() -> None:
    """Against fractions, where sums cancel, where they are subnormal, and where parts leave the range."""
    rng = np.random.default_rng(9)
    spread = np.where(np.arange(3000) % 5 == 0, rng.integers(-560, 560, 3000), rng.integers(-40, 40, 3000))
    a, b = (rng.standard_normal(3000) * 2.0**spread for _ in range(2))
    with np.errstate(all="ignore"):
        c = -a * b * rng.choice([1, 0.5, 1 + 2.0**-52, 1e-3, 0], 3000)
        c = np.where(np.isfinite(c), c, 1.0)

    expected = [exact.fused_multiply_add_64(*map(float, v)) for v in zip(a, b, c, strict=True)]
    assert floats.fused_multiply_add_64(a, b, c).tolist() == expected
    odd = [(0.0, -1.0, -0.0), (np.inf, 2.0, 1.0), (1.0, 1.0, -np.inf), (-1.0, 1.0, 1.0)]
    found = [floats.fused_multiply_add_64(*v).item() for v in odd]
    assert str(found) == "[-0.0, inf, -inf, 0.0]"

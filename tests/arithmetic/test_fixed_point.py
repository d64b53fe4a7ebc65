"""fixed_point and multiplier against the oracle: exhaustive where small, at every tie and saturation point, random."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittrue.arithmetic import exact, fixed_point, multiplier

TIES = ("away", "up", "down", "even", "trunc")
S32_EDGES = sorted(
    {s * (2**n) + d for n in range(32) for d in (-1, 0, 1) for s in (-1, 1) if -(2**31) <= s * 2**n + d < 2**31}
)
s32 = st.integers(-(2**31), 2**31 - 1)
s64_quarter = st.integers(-(2**62), 2**62)


def equal(name: str, arrays: list, **constants) -> None:
    """The array function and the scalar oracle of one name agree on every element."""
    module = multiplier if hasattr(multiplier, name) and not hasattr(fixed_point, name) else fixed_point
    got = getattr(module, name)(*arrays, **constants)
    assert isinstance(got, np.ndarray)
    assert got.dtype == np.int64
    oracle = getattr(exact, name)
    expected = [oracle(*map(int, row), **constants) for row in zip(*arrays, strict=True)]
    wrong = np.flatnonzero(got != np.array(expected, dtype=np.int64))
    assert not wrong.size, [([int(a[i]) for a in arrays], expected[i], int(got[i])) for i in wrong[:3]]


@pytest.mark.parametrize("tie", TIES)
def test_division_exhaustive(tie):
    x = np.arange(-300, 301)
    for right_shift in range(12):
        equal(f"divide_by_power_of_two_{tie}", [x, np.full_like(x, right_shift)])
        scalar = getattr(fixed_point, f"divide_by_power_of_two_{tie}")(x, right_shift)
        assert (scalar == [getattr(exact, f"divide_by_power_of_two_{tie}")(int(v), right_shift) for v in x]).all()


@pytest.mark.parametrize("tie", TIES)
def test_division_around_every_tie_of_every_right_shift(tie):
    rows = set()
    for n in range(63):
        half = 2**n // 2
        for quotient in (-3, -2, -1, 0, 1, 2, 3, 2**62 // 2**n - 1, -(2**62) // 2**n):
            for d in (-1, 0, 1):
                x = quotient * 2**n + half + d
                if abs(x) <= 2**62:
                    rows.add((x, n))
        rows |= {(2**62, n), (-(2**62), n), (0, n)}
    x, n = np.array(sorted(rows), dtype=np.int64).T
    equal(f"divide_by_power_of_two_{tie}", [x, n])


@pytest.mark.parametrize("tie", TIES)
@settings(max_examples=100)
@given(x=s64_quarter, n=st.integers(0, 62))
def test_division_random(tie, x, n):
    name = f"divide_by_power_of_two_{tie}"
    assert getattr(fixed_point, name)(x, n) == getattr(exact, name)(x, n)


@pytest.mark.parametrize("tie", TIES)
def test_division_broadcasts_both_ways_and_keeps_its_arguments(tie):
    divide = getattr(fixed_point, f"divide_by_power_of_two_{tie}")
    x = np.arange(-6, 6).reshape(3, 4)
    kept = x.copy()
    per_channel = divide(x, [0, 1, 2, 3])
    assert (per_channel[:, 2] == divide(x[:, 2], 2)).all()
    assert (per_channel[:, 0] == x[:, 0]).all()
    assert divide(5, [0, 1, 2]).shape == (3,)
    assert divide(5, 0).shape == ()
    assert isinstance(divide(5, 1), np.ndarray)
    assert (x == kept).all()
    result = divide(x, 0)
    result += 1
    assert (x == kept).all(), "the result must not be a view of the argument"
    assert divide(np.empty((0, 4), dtype=np.int64), [0, 1, 2, 3]).shape == (0, 4)
    for right_shift in (-1, 63):
        with pytest.raises(ValueError, match=r"0\.\.62"):
            divide(x, right_shift)


def test_literal_values():
    f = fixed_point
    x = [5, -5, 6, -6, 7, -7, 10, -10]
    literal = {
        "away": [1, -1, 2, -2, 2, -2, 3, -3],
        "up": [1, -1, 2, -1, 2, -2, 3, -2],
        "down": [1, -1, 1, -2, 2, -2, 2, -3],
        "even": [1, -1, 2, -2, 2, -2, 2, -2],
        "trunc": [1, -1, 1, -1, 1, -1, 2, -2],
    }
    for tie, expected in literal.items():
        assert getattr(f, f"divide_by_power_of_two_{tie}")(x, 2).tolist() == expected
    assert f.doubling_high_multiply_up(-(2**31), -(2**31)) == 2**31 - 1
    assert f.doubling_high_multiply_up(-(2**31), 2**31 - 1) == -(2**31) + 1
    assert f.doubling_high_multiply_up(-1, 2**30) == 0
    assert f.doubling_high_multiply_up(-3, 2**30) == -1
    assert f.wrap_s32(2**63 - 1) == -1
    assert f.count_leading_zeros_s32([0, 1, 2**30, -(2**31)]).tolist() == [32, 31, 1, 0]


def test_wraps():
    x = np.array(
        [k * 2**n + d for n in (15, 16, 31, 32, 61) for k in (-2, -1, 0, 1, 2) for d in (-1, 0, 1)], dtype=np.int64
    )
    equal("wrap_s32", [x])
    equal("wrap_s16", [x])
    equal("wrap_s16", [np.arange(-(2**17), 2**17, 3)])
    noncontiguous = np.arange(2**16 * 8).reshape(-1, 8)[:, ::3]
    assert (fixed_point.wrap_s16(noncontiguous) == noncontiguous.astype(np.int16)).all()


def test_products():
    a, b = (grid.ravel() for grid in np.meshgrid(S32_EDGES, S32_EDGES))
    equal("doubling_high_multiply_up", [a, b])
    rng = np.random.default_rng(1)
    a, b = rng.integers(-(2**31), 2**31, (2, 20000))
    equal("doubling_high_multiply_up", [a, b])
    # ties: an odd multiple of 2^30
    odd = rng.integers(-(2**20), 2**20, 5000) * 2 + 1
    for power in (0, 5, 9):
        equal("doubling_high_multiply_up", [odd << power, np.full_like(odd, 2 ** (30 - power))])
    edges = [v for v in S32_EDGES if -(2**15) <= v < 2**15]
    a, b = (grid.ravel() for grid in np.meshgrid(edges, np.arange(-(2**15), 2**15, 31)))
    equal("doubling_high_multiply_up_s16", [a, b])
    a, b = (grid.ravel() for grid in np.meshgrid(edges, edges))
    equal("doubling_high_multiply_up_s16", [a, b])


def test_multiply_by_power_of_two():
    x, e = (grid.ravel() for grid in np.meshgrid(S32_EDGES, np.arange(-62, 32)))
    equal("saturating_multiply_by_power_of_two", [x, e])
    small = [v for v in S32_EDGES if -(2**15) <= v < 2**15]
    x, e = (grid.ravel() for grid in np.meshgrid(small, np.arange(-20, 16)))
    equal("saturating_multiply_by_power_of_two", [x, e], bits=16)
    every_s16 = np.arange(-(2**15), 2**15)
    for exponent in (-2, -1, 0, 1, 2):
        got = fixed_point.saturating_multiply_by_power_of_two(every_s16, exponent, 16)
        assert got.tolist() == [exact.saturating_multiply_by_power_of_two(int(v), exponent, 16) for v in every_s16]
    for exponent in (-63, 32):
        with pytest.raises(ValueError, match=r"-62\.\.31"):
            fixed_point.saturating_multiply_by_power_of_two(1, exponent)
    x = np.arange(4)
    fixed_point.saturating_multiply_by_power_of_two(x, 0)[...] = 9
    assert x.tolist() == [0, 1, 2, 3]


def test_sums_and_zeros():
    a, b = (grid.ravel() for grid in np.meshgrid(S32_EDGES, S32_EDGES))
    equal("half_sum_away", [a, b])
    equal("saturating_add_s32", [a, b])
    equal("saturating_add_s16", [a % 2**16 - 2**15, b % 2**16 - 2**15])
    equal("count_leading_zeros_s32", [np.array(S32_EDGES)])


@settings(max_examples=120)
@given(a=s32, b=s32, e=st.integers(-62, 31))
def test_random_s32(a, b, e):
    f = fixed_point
    assert f.doubling_high_multiply_up(a, b) == exact.doubling_high_multiply_up(a, b)
    assert f.half_sum_away(a, b) == exact.half_sum_away(a, b)
    assert f.saturating_multiply_by_power_of_two(a, e) == exact.saturating_multiply_by_power_of_two(a, e)
    assert f.wrap_s32(a + b) == exact.wrap_s32(a + b)
    assert f.count_leading_zeros_s32(a) == exact.count_leading_zeros_s32(a)


def test_argument_types():
    assert fixed_point.as_s64([]).dtype == np.int64
    assert fixed_point.wrap_s32(np.uint8(200)) == 200
    assert fixed_point.doubling_high_multiply_up(np.int8([-128]), np.int32([2**30])).tolist() == [-64]
    with pytest.raises(TypeError):
        fixed_point.wrap_s32(1.5)
    with pytest.raises(OverflowError):
        fixed_point.wrap_s32(np.uint64(2**63))


def encoded(values):
    multipliers, exponents = multiplier.encode_q31(values)
    return list(zip(multipliers.tolist(), exponents.tolist(), strict=True))


def test_encode_q31():
    rng = np.random.default_rng(2)
    values = np.concatenate(
        [
            [0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 2.0**-1022, 1.7e308, -1.7e308, 2.0**31, 2.0**-31, 2.0**-32, 2.0**-33],
            [math.nextafter(2.0**-32, 0), math.nextafter(1.0, 0), -math.nextafter(1.0, 0), 1 - 2.0**-32, 1 - 2.0**-33],
            # ties of both signs: an odd number of halves of the last place
            *[s * (2 * rng.integers(2**30, 2**31, 300) + 1) * 2.0 ** rng.integers(-70, 30) for s in (-1, 1)],
            rng.lognormal(0, 12, 3000) * rng.choice([-1, 1], 3000),
            rng.uniform(0, 1, 3000).astype(np.float32) / np.float64(3),
        ]
    )
    assert encoded(values) == [exact.encode_q31(float(v)) for v in values]
    m, e = multiplier.encode_q31(0.75)
    assert (m.shape, int(m), int(e)) == ((), 3 << 29, 0)
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="finite"):
            multiplier.encode_q31([1.0, bad])
        with pytest.raises(ValueError, match="finite"):
            exact.encode_q31(bad)


@settings(max_examples=120)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_encode_q31_random(value):
    assert encoded([value]) == [exact.encode_q31(value)]
    m, e = encoded([value])[0]
    if m:
        assert abs(m) == 2**31 or 2**30 <= abs(m) < 2**31
        assert abs(math.ldexp(m, -31) - math.ldexp(value, -e)) <= 2.0**-32


def test_reduce_to_q15():
    edges = [0, 1, 2**15 - 1, 2**15, 2**15 + 1, 2**16, 0x7FFEFFFF, 0x7FFF0000, 0x7FFF7FFF, 0x7FFF8000, 2**31 - 1]
    m = np.concatenate([edges, np.random.default_rng(3).integers(0, 2**31, 3000), 2**15 + 2**16 * np.arange(0, 99)])
    equal("reduce_to_q15", [m])
    for bad in (-1, 2**31):
        with pytest.raises(ValueError, match="multipliers"):
            multiplier.reduce_to_q15(bad)

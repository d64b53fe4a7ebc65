"""transcendental against the oracle, and against math so that both cannot be wrong together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from bittrue.arithmetic import exact, transcendental

EVERY_S16 = np.arange(-(2**15), 2**15)
# Of all 16-bit numbers the slow oracle sees one in so many, others with every seed; all of them with --deep.
_TURNS = 4


@pytest.fixture(scope="module", autouse=True)
def _remembered() -> Iterator[None]:
    """The oracle takes each of its steps once per argument: exhaustive tests meet most of them again and again."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_exp_on_negative", "_newton"):
            patch.setattr(exact, name, cache(getattr(exact, name)))
        yield


def spread(count: int, seed: int) -> np.ndarray:
    """Values in [0, 2^31 - 1]: all scales, uniform, and the neighbours of powers of two."""
    rng = np.random.default_rng(seed)
    edges = [v for n in range(32) for v in (2**n - 2, 2**n - 1, 2**n, 2**n + 1, 3 * 2**n // 2) if 0 <= v < 2**31]
    by_scale = (2.0 ** rng.uniform(0, 31, count)).astype(np.int64)
    return np.unique(np.concatenate([edges, by_scale, rng.integers(0, 2**31, count)]))


def equal(got, oracle, x, *rest):
    expected = np.array([oracle(int(v), *rest) for v in x], dtype=np.int64)
    if isinstance(got, tuple):
        got = np.stack(got, axis=-1)
    wrong = np.argwhere(got != expected)
    assert not wrong.size, (int(x[wrong[0][0]]), expected[wrong[0][0]], got[wrong[0][0]])


@pytest.fixture
def turn(request: pytest.FixtureRequest) -> slice:
    """The numbers of `EVERY_S16` that the oracle sees."""
    option = request.config.option
    return slice(None) if option.deep else slice(option.seed % _TURNS, None, _TURNS)


def test_exp_on_minus_quarter_to_zero():
    x = -spread(1500, 1)
    x = np.append(x[(x >= -(2**29)) & (x < 0)], [-(2**29), -(2**29) + 1, -(2**28)])
    got = transcendental.exp_on_minus_quarter_to_zero(x)
    equal(got, exact.exp_on_minus_quarter_to_zero, x)
    assert np.abs(got / 2**31 - np.exp(x / 2**31)).max() < 2.0**-22


@pytest.mark.parametrize("integer_bits", [*range(13), 29])
def test_exp_on_negative(integer_bits):
    x = np.append(-spread(250, integer_bits), [-(2**31)])
    got = transcendental.exp_on_negative(x, integer_bits)
    equal(got, exact.exp_on_negative, x, integer_bits)
    # the polynomial leaves out x^5/120 <= 2^-21.9, times exp(-1/8)
    assert np.abs(got / 2**31 - np.exp(x / 2.0 ** (31 - integer_bits))).max() < 2.0**-22
    if integer_bits > 5:  # the border below which the result is 0
        border = -(2 ** (36 - integer_bits))
        equal(
            transcendental.exp_on_negative([border - 1, border, border + 1], integer_bits),
            exact.exp_on_negative,
            np.array([border - 1, border, border + 1]),
            integer_bits,
        )


def test_exp_on_negative_literal_and_errors():
    got = transcendental.exp_on_negative([0, -(2**26), -(2**31)], 5)
    assert got.tolist() == [2147483647, 790015308, 0]
    for integer_bits in (-1, 30):
        with pytest.raises(ValueError, match="integer_bits"):
            transcendental.exp_on_negative([-1], integer_bits)


def test_reciprocals_of_one_plus():
    x = spread(2000, 3)
    got = transcendental.reciprocal_of_one_plus(x)
    equal(got, exact.reciprocal_of_one_plus, x)
    assert np.abs(got / 2**31 - 1 / (1 + x / 2**31)).max() < 2.0**-28
    got = transcendental.one_minus_x_over_one_plus_x(x)
    equal(got, exact.one_minus_x_over_one_plus_x, x)
    assert np.abs(got / 2**31 - (1 - x / 2**31) / (1 + x / 2**31)).max() < 2.0**-27


def test_reciprocal():
    x = spread(2000, 4)[1:]
    for integer_bits in (0, 12):
        raw, bits = transcendental.reciprocal(x, integer_bits)
        equal((raw, bits), exact.reciprocal, x, integer_bits)
        real = x / 2.0 ** (31 - integer_bits)
        assert np.abs(raw * 2.0 ** (-31 - bits) * real - 1).max() < 2.0**-27
    for bad in (0, -1):
        with pytest.raises(ValueError, match="positive"):
            transcendental.reciprocal([1, bad], 12)


def test_inverse_square_root():
    x = np.unique(np.concatenate([np.arange(300), 2**29 + np.arange(-5, 6), spread(1500, 5)]))
    multiplier, exponent = transcendental.inverse_square_root(x)
    equal((multiplier, exponent), exact.inverse_square_root, x)
    assert (multiplier[:2].tolist(), exponent[:2].tolist()) == ([2**31 - 1] * 2, [0, 0])
    assert (exponent <= 0).all()
    error = multiplier[2:] * 2.0 ** (exponent[2:] - 31.0) * np.sqrt(x[2:]) - 1
    assert np.abs(error).max() < 2e-6
    with pytest.raises(ValueError, match=">= 0"):
        transcendental.inverse_square_root([-1])


def test_logarithm():
    x = np.unique(np.concatenate([np.arange(1, 300), spread(2000, 6)[1:]]))
    got = transcendental.logarithm(x)
    equal(got, exact.logarithm, x)
    error = np.abs(got / 2**26 - np.log(x / 2**19))
    assert x[error > 2.0**-24].tolist() == [1, 5]  # known weak spots of the published algorithm
    assert error.max() < 0.17
    for bad in (0, -1):
        with pytest.raises(ValueError, match="positive"):
            transcendental.logarithm([1, bad])


@pytest.mark.parametrize("name", ["logistic_f4", "tanh_f4"])
def test_activations_with_four_integer_bits(name):
    x = spread(800, 5)
    x = np.concatenate([x, -x, [-(2**31) + 1]])
    got = getattr(transcendental, name)(x)
    equal(got, getattr(exact, name), x)
    real = np.tanh(x / 2**27) if name == "tanh_f4" else 1 / (1 + np.exp(-x / 2**27))
    assert np.abs(got / 2**31 - real).max() < 2.0**-21


def test_logistic_s16_exhaustive(turn):
    got = transcendental.logistic_s16(EVERY_S16)
    equal(got[turn], exact.logistic_s16, EVERY_S16[turn])
    assert np.abs(got / 2**15 - 1 / (1 + np.exp(-EVERY_S16 / 2**12))).max() < 7 / 2**15


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("integer_bits", range(7))
def test_tanh_s16_exhaustive(turn, integer_bits):
    got = transcendental.tanh_s16(EVERY_S16, integer_bits)
    equal(got[turn], exact.tanh_s16, EVERY_S16[turn], integer_bits)
    assert np.abs(got / 2**15 - np.tanh(EVERY_S16 * 2.0 ** (integer_bits - 15))).max() < 13 / 2**15
    assert (got[1:] == -got[:0:-1]).all()


def test_shapes_and_scalars():
    assert transcendental.tanh_s16([[1, 2], [3, 4]], 3).shape == (2, 2)
    assert transcendental.logistic_s16(0).shape == ()
    assert transcendental.exp_on_negative(-5, 5).dtype == np.int64
    assert transcendental.logarithm(np.empty(0, dtype=np.int64)).shape == (0,)

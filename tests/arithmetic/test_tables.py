"""tables against the oracle, whose functions are correctly rounded from 120 decimal digits."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest

from bittrue.arithmetic import exact, tables


def logistic(x: np.ndarray) -> np.ndarray:
    """Three binary32 steps."""
    with np.errstate(over="ignore"):
        return np.float32(1) / (np.float32(1) + np.exp(-x.astype(np.float64)).astype(np.float32))


EXACT_FUNCTIONS = {
    "logistic": (logistic, exact.logistic),
    "tanh": (np.tanh, exact.tanh),
    "exp": (np.exp, exact.exponential),
}


def random_parameters(count: int, seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        signed = bool(rng.integers(2))
        low, high = (-128, 127) if signed else (0, 255)
        scales = np.exp(rng.uniform(-8, 1, 2)).astype(np.float32)
        yield (
            float(scales[0]),
            int(rng.integers(low, high + 1)),
            float(scales[1]),
            int(rng.integers(low, high + 1)),
            low,
            high,
        )


@pytest.mark.parametrize("name", EXACT_FUNCTIONS)
def test_table_256(name):
    fast, slow = EXACT_FUNCTIONS[name]
    for parameters in random_parameters(25, 1):
        try:
            expected = exact.table_256(slow, *parameters)
        except ValueError:
            with pytest.raises(ValueError, match="leave 32 bits"):
                tables.table_256(fast, *parameters)
            continue
        got = tables.table_256(fast, *parameters)
        assert got.dtype == np.int64
        assert got.tolist() == expected, parameters
    for parameters in [(1 / 16, 0, 1 / 256, -128, -128, 127), (1e30, 0, 1 / 128, 0, -128, 127)]:
        assert tables.table_256(fast, *parameters).tolist() == exact.table_256(slow, *parameters)


def test_table_256_ties_saturation_and_order():
    table = tables.table_256(lambda x: x, 1.0, 0, 2.0, 0, -128, 127)
    assert table[128:133].tolist() == [0, 1, 1, 2, 2]
    assert table[124:128].tolist() == [-2, -2, -1, -1]
    assert table[[0, 255]].tolist() == [-64, 64]
    assert tables.table_256(np.exp, 1.0, 0, 1.0, 0, -128, 127)[[0, 128, 255]].tolist() == [0, 1, 127]
    assert tables.table_256(lambda x: x * np.inf, 1.0, 0, 1.0, 5, -128, 127)[[0, 128, 255]].tolist() == [-128, 0, 127]
    assert len(tables.table_256(np.exp, 1 / 16, 0, 1.0, 0, 0, 255)) == 256


def test_logistic_is_three_binary32_steps():
    x = np.linspace(-110, 110, 4001).astype(np.float32)
    got = logistic(x)
    assert got.dtype == np.float32
    assert got.tolist() == [exact.logistic(float(v)) for v in x]
    assert np.abs(got - 1 / (1 + np.exp(-x.astype(np.float64)))).max() < 2.0**-23


def test_tanh_by_exponentials_is_four_binary32_steps():
    x = np.concatenate([np.linspace(-20, 20, 2001), [1e-30, -1e-30, 200, -200]]).astype(np.float32)
    got = tables.tanh_by_exponentials(x)
    assert got.dtype == np.float32
    assert got.tolist() == [exact.tanh_by_exponentials(float(v)) for v in x]
    assert np.abs(got - np.tanh(x.astype(np.float64))).max() < 2.0**-22


def test_hard_swish_times_sixth_is_four_binary32_steps():
    x = np.concatenate([np.linspace(-4, 8, 2001), [-3, 3, 1e-30, -1e-30, 1e30, -1e30]]).astype(np.float32)
    got = tables.hard_swish_times_sixth(x)
    assert got.dtype == np.float32
    assert got.tolist() == [exact.hard_swish_times_sixth(float(v)) for v in x]
    assert np.abs(got - x * np.clip(x.astype(np.float64) / 6 + 0.5, 0, 1))[:2001].max() < 2.0**-20


def test_table_513_binary32():
    for name, scales in [
        ("tanh", (3e-4, 0, 2.0**-15, 0)),
        ("logistic", (5e-4, 0, 2.0**-15, 0)),
        ("exp", (1e-4, 0, 1e-3, 0)),
    ]:
        fast, slow = EXACT_FUNCTIONS[name]
        assert tables.table_513(fast, *scales).tolist() == exact.table_513(slow, *scales)


def test_table_513_binary64():
    got = tables.table_513(np.exp, 10 / 65535, 32767, 2 / 65535, 0, np.float64)
    assert got.tolist() == exact.table_513(lambda x: exact.exponential(x, 53), 10 / 65535, 32767, 2 / 65535, 0, 53)
    assert got[512] == 32767
    got = tables.table_513(lambda x: 1 / (1 + x), 1 / 65535, -32768, 2 / 65535, 0, np.float64)
    slow = exact.table_513(lambda x: 1 / (1 + x), 1 / 65535, -32768, 2 / 65535, 0, 53)
    assert got.tolist() == slow


def test_lookup_513_exhaustive():
    x = np.arange(-(2**15), 2**15)
    table = tables.table_513(np.tanh, 3e-4, 0, 2.0**-15, 0)
    got = tables.lookup_513(table, x)
    assert got.tolist() == [exact.lookup_513(table.tolist(), int(v)) for v in x]
    assert np.abs(got / 2**15 - np.tanh(x * 3e-4)).max() < 8 / 2**15
    steep = np.random.default_rng(4).integers(-(2**15), 2**15, 513)  # slopes that wrap
    got = tables.lookup_513(steep, x)
    assert got.tolist() == [exact.lookup_513(steep.tolist(), int(v)) for v in x]


def test_sigmoid_table_s16():
    table = tables.sigmoid_table_s16()
    assert table.tolist() == exact.sigmoid_table_s16()
    # digest and sum of the published table, as little-endian 16-bit words
    assert int(table.sum()) == 15670629
    digest = hashlib.sha256(table.astype("<u2").tobytes()).hexdigest()
    assert digest == "c79a34d2c8c6e794fbb0207601538fe0169e968cd6d9d5ca65fff859dcd55183"


def test_exact_functions_against_math():
    for x in (-20.0, -1.0, -1e-3, 1e-30, 0.7, 3.0, 20.0):
        assert math.isclose(exact.exponential(x, 53), math.exp(x), rel_tol=4e-16)
        assert math.isclose(exact.tanh(x, 53), math.tanh(x), rel_tol=4e-16)
        assert math.isclose(exact.logistic(x), 1 / (1 + math.exp(-x)), rel_tol=2.0**-22)


def test_logistic_of_fractions():
    for x in (
        Fraction(0),
        Fraction(1, 3),
        Fraction(-7, 2),
        Fraction(40),
        Fraction(-200),
        Fraction(9999),
        Fraction(-9999),
    ):
        one, other = tables.logistic_fraction(x), exact.logistic_fraction(x)
        assert abs(one - other) <= other / 10**39
        assert abs(one - other) <= (1 - other) / 10**39
    assert tables.logistic_fraction(Fraction(10**12)) == tables.logistic_fraction(Fraction(10_000))


def test_exp_binary64():
    x = np.concatenate([np.random.default_rng(5).uniform(-60, 60, 40), [0.0, -1e-9, 1.0, 720.0, -760.0]])
    assert tables.exp_binary64(x).tolist() == [exact.exp_binary64(v) for v in x.tolist()]
    assert math.isnan(tables.exp_binary64(np.nan))

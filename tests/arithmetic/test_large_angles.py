"""Sine and cosine of large angles, rounded once: decided without exact arithmetic for each of them."""

from __future__ import annotations

import time
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from bittrue.arithmetic import exact
from bittrue.arithmetic.rounded_functions import FUNCTIONS


def by_doubling(x: float) -> tuple[float, float]:
    """(sin x, cos x) as binary32: a series for an angle below 1, doubled as often as it takes. No pi is needed."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 300, -(10**6), 10**6
        doublings = 0
        angle = Decimal(x)
        while abs(angle) > 1:
            angle, doublings = angle / 2, doublings + 1
        sine, cosine, term = Decimal(0), Decimal(0), Decimal(1)
        for n in range(1, 240):
            if n % 2:
                cosine += term * (-1) ** (n // 2)
            else:
                sine += term * (-1) ** (n // 2 - 1)
            term = term * angle / n
        for _ in range(doublings):
            sine, cosine = 2 * sine * cosine, cosine * cosine - sine * sine
        return exact.nearest_binary(Fraction(sine), 24), exact.nearest_binary(Fraction(cosine), 24)


def angles() -> np.ndarray:
    """Of every exponent from 2^20 on, both signs, and 16367173 * 2^72, which is nearest to a multiple of pi / 2."""
    rng = np.random.default_rng(0)
    bits = (np.arange(147, 255, dtype=np.uint32) << 23) | rng.integers(0, 1 << 23, 108, dtype=np.uint32)
    some = bits.view(np.float32)
    return np.concatenate([some, -some[::3], np.float32([16367173 * 2.0**72, 2.0**20, 3.4e38, 0.5, 1.0, -3.0, 1e-30])])


def test_every_size_of_angle() -> None:
    x = angles()
    wanted = np.float32([by_doubling(float(value)) for value in x])
    for name, expected in zip(("sin", "cos"), wanted.T, strict=True):
        np.testing.assert_array_equal(FUNCTIONS[name](x), expected)


def test_many_of_them_take_no_time() -> None:
    x = np.tile(angles(), 2000)
    started = time.process_time()
    for name in ("sin", "cos"):
        FUNCTIONS[name](x)
    assert time.process_time() - started < 5

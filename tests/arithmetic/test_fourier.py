"""Fourier transforms: exact where arithmetic is, and against sums of exact fractions everywhere else.

That each rounding happens where the runtime's library rounds is shown by `tests/operators/test_rfft2d.py`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bittrue.arithmetic import fourier

LENGTHS = [2**power for power in range(12)]


@pytest.mark.parametrize("points", LENGTHS)
def test_an_impulse_has_all_frequencies(points: int) -> None:
    z = np.zeros((2, points))
    z[0, 0] = 3
    assert fourier.transform(z).tolist() == [[3.0] * points, [0.0] * points]


@pytest.mark.parametrize("points", LENGTHS)
def test_whole_numbers_whose_factors_are_whole(points: int) -> None:
    """Frequencies 0, n / 4, n / 2 and 3 n / 4 of integers are integers, and come out as such."""
    z = np.random.default_rng(points).integers(-50, 51, (2, 3, points)).astype(np.float64)
    out = fourier.transform(z)
    for quarter in range(4 if points >= 4 else points):
        k = quarter * points // 4 if points >= 4 else quarter
        turns = (np.arange(points) * k * 4 // points) % 4
        real, imaginary = np.int64([1, 0, -1, 0])[turns], np.int64([0, 1, 0, -1])[turns]
        assert (out[0, :, k] == (z[0] * real - z[1] * imaginary).sum(-1)).all()
        assert (out[1, :, k] == (z[0] * imaginary + z[1] * real).sum(-1)).all()


@pytest.mark.parametrize("points", LENGTHS[1:])
def test_halves_of_real_numbers(points: int) -> None:
    x = np.random.default_rng(points).integers(-50, 51, (3, points)).astype(np.float64)
    out = fourier.real_transform(x)
    assert out.shape == (2, 3, points // 2)
    assert (out[0, :, 0] == x.sum(-1)).all()
    assert (out[1, :, 0] == (x * (1 - 2 * (np.arange(points) % 2))).sum(-1)).all()


def _roots(points: int) -> list[tuple[Fraction, Fraction]]:
    """exp(2 pi i k / n) as fractions with 60 digits: halved angles from (-1, 0) on, then products."""
    digits = 10**60

    def root(value: Fraction) -> Fraction:
        from math import isqrt

        return Fraction(isqrt(value.numerator * digits * digits // value.denominator), digits)

    cosine, sine, steps = Fraction(-1), Fraction(0), 2
    while steps < points:
        cosine, sine = root((1 + cosine) / 2), root((1 - cosine) / 2)
        steps *= 2
    found = [(Fraction(1), Fraction(0))]
    for _ in range(points - 1):
        c, s = found[-1]
        found.append(
            tuple(Fraction(round(v * digits), digits) for v in (c * cosine - s * sine, c * sine + s * cosine))  # type: ignore[arg-type]
        )
    return found


@pytest.mark.parametrize("points", [8, 16, 32, 64, 128, 256])
def test_all_frequencies_are_those_of_exact_sums(points: int) -> None:
    """Every error is below the bound that holds for any such scheme: log2(n) * 8 roundings of the largest sum."""
    x = np.random.default_rng(points).integers(-9, 10, (2, points))
    out = fourier.transform(x.astype(np.float64))
    roots = _roots(points)
    bound = Fraction(int(abs(x).sum())) * 8 * points.bit_length() / 2**53
    for k in range(0, points, 1 if points <= 64 else 7):
        real = sum(
            int(a) * roots[j * k % points][0] - int(b) * roots[j * k % points][1] for j, (a, b) in enumerate(x.T)
        )
        imaginary = sum(
            int(a) * roots[j * k % points][1] + int(b) * roots[j * k % points][0] for j, (a, b) in enumerate(x.T)
        )
        assert abs(Fraction(float(out[0, k])) - real) < bound
        assert abs(Fraction(float(out[1, k])) - imaginary) < bound

"""Slot recurrence: gates rounded once against fractions and decimals, ordered ones against operations one by one."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bittrue.arithmetic import elementary, fused_polynomials
from bittrue.rules import recurrence

F32 = np.float32
ORDERED, ONCE = recurrence.RULES["binary32_polynomials"], recurrence.RULES["rounded_once"]
ALPHA, BETA = float(F32(0.3)), float(F32(0.45))


def nearest(value: Fraction | Decimal) -> np.float32:
    """The binary32 number nearest to a value, found among neighbours; ties to the even one."""
    exact = Fraction(value)
    guess = F32(float(exact))
    candidates = [guess, np.nextafter(guess, F32(np.inf)), np.nextafter(guess, F32(-np.inf))]
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))


class Number:
    """A binary32 number whose operations are fractions rounded one by one."""

    def __init__(self, value: Any) -> None:
        self.value = F32(value)

    def _of(self, exact: Fraction) -> Number:
        return Number(nearest(exact))

    def __add__(self, other: Any) -> Number:
        return self._of(Fraction(float(self.value)) + Fraction(float(Number(_plain(other)).value)))

    def __sub__(self, other: Any) -> Number:
        return self._of(Fraction(float(self.value)) - Fraction(float(Number(_plain(other)).value)))

    def __mul__(self, other: Any) -> Number:
        return self._of(Fraction(float(self.value)) * Fraction(float(Number(_plain(other)).value)))

    def __truediv__(self, other: Any) -> Number:
        return self._of(Fraction(float(self.value)) / Fraction(float(Number(_plain(other)).value)))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Number) else value


def numbers(seed: int, count: int = 300, spread: float = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    usual = rng.standard_normal(count) * np.exp2(rng.uniform(-spread, spread, count))
    return np.concatenate([usual, [0, 0.5, -0.5, 30, -30, ALPHA]]).astype(F32)


def _quotient(x: Number) -> Number:
    square = x * x
    p, q = Number(-2.76076847742355e-16), Number(1.19825839466702e-06)
    for c in (2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05):
        p = square * p + c
    for c in (6.37261928875436e-04, 4.89352455891786e-03):
        p = square * p + c
    for c in (1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03):
        q = square * q + c
    return x * p / q


def _exp(x: float) -> Number:
    return Number(elementary.exp(np.array([x], F32))[0])


def _stable(x: float) -> Number:
    small = _exp(-abs(x))
    return (Number(1) if x >= 0 else small) / (small + 1)


def _log(x: Number) -> Number:
    return Number(elementary.log(np.array([x.value], F32))[0])


def _within(x: float, bound: float) -> Number:
    return Number(min(max(x, -bound), bound))


# What single operations make of a number; functions of the C library are tested with arithmetic/elementary.
SINGLE: dict[str, Callable[[float], Number]] = {
    "affine": lambda x: Number(x) * ALPHA + BETA,
    "elu": lambda x: Number(x) if x >= 0 else (_exp(x) - 1) * ALPHA,
    "hardsigmoid": lambda x: Number(min(max((Number(x) * ALPHA + BETA).value, F32(0)), F32(1))),
    "leakyrelu": lambda x: Number(x) if x >= 0 else Number(x) * ALPHA,
    "relu": lambda x: Number(max(x, 0)),
    "scaledtanh": lambda x: (Number(_stable((Number(x) * BETA * 2).value).value) * 2 - 1) * ALPHA,
    "softplus": lambda x: _log(_exp(x) + 1),
    "softsign": lambda x: Number(x) / (Number(abs(x)) + 1),
    "thresholdedrelu": lambda x: Number(x if x > ALPHA else 0),
}
QUOTIENTS = {
    "tanh": lambda x: _quotient(_within(x, 10)),
    "sigmoid": lambda x: (_quotient(_within(x, 20) * 0.5) + 1) * 0.5,
}
WHOLE = {"sigmoid": _stable, "tanh": lambda x: _stable((Number(x) * 2).value) * 2 - 1}


@pytest.mark.parametrize("name", sorted(ORDERED.functions))
def test_single_operations(name: str) -> None:
    x = numbers(1)
    polynomials = {"sigmoid": fused_polynomials.logistic, "tanh": fused_polynomials.tanh}
    forms = {"functions": {}, "cell": {}, "reset": QUOTIENTS, "candidate": QUOTIENTS, "whole_layer": WHOLE}
    for form, others in forms.items():
        found = np.asarray(getattr(ORDERED, form)[name](x, ALPHA, BETA))
        oracle = {**SINGLE, **others}.get(name)
        if oracle is None:
            assert found.tobytes() == polynomials[name](x).tobytes()
        else:
            wanted = np.array([oracle(float(v)).value for v in x], F32)
            assert found.dtype == F32
            assert np.array_equal(found + F32(0), wanted + F32(0)), form


def _tanh(x: Decimal) -> Decimal:
    return 1 - 2 / ((2 * x).exp() + 1)


_A, _B = Decimal(ALPHA), Decimal(BETA)
REAL: dict[str, Callable[[Decimal], Decimal]] = {
    "affine": lambda x: _A * x + _B,
    "elu": lambda x: x if x >= 0 else _A * (x.exp() - 1),
    "hardsigmoid": lambda x: min(max(_A * x + _B, Decimal(0)), Decimal(1)),
    "leakyrelu": lambda x: x if x >= 0 else _A * x,
    "relu": lambda x: max(x, Decimal(0)),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "softplus": lambda x: (1 + x.exp()).ln(),
    "softsign": lambda x: x / (1 + abs(x)),
    "tanh": _tanh,
    "thresholdedrelu": lambda x: x if x > _A else Decimal(0),
}


@pytest.mark.parametrize("name", sorted(ONCE.functions))
def test_functions_rounded_once(name: str) -> None:
    x = numbers(2)
    with localcontext() as context:
        context.prec = 80
        wanted = np.array([nearest(REAL[name](Decimal(float(v)))) for v in x], F32)
    for form in ("functions", "cell", "reset", "candidate", "whole_layer"):
        assert np.array_equal(getattr(ONCE, form)[name](x, ALPHA, BETA) + F32(0), wanted + F32(0))


def test_sums_of_two_products() -> None:
    a, b, c, d = (numbers(seed, 2000) for seed in (3, 4, 5, 6))
    c[::3], d[::3] = -a[::3], np.nextafter(b[::3], F32(0))
    exact = [[Fraction(float(v)) for v in x] for x in (a, b, c, d)]
    once = np.array([nearest(p * q + r * s) for p, q, r, s in zip(*exact, strict=True)], F32)
    assert np.array_equal(ONCE.products(a, b, c, d), once)
    one_by_one = [(Number(p) * q + Number(r) * s).value for p, q, r, s in zip(a, b, c, d, strict=True)]
    assert np.array_equal(ORDERED.products(a, b, c, d), np.array(one_by_one, F32))
    z = fused_polynomials.logistic(a)
    parts = [Fraction(float(v)) for v in z]
    blended = [nearest((1 - p) * q + p * r) for p, q, r in zip(parts, exact[1], exact[2], strict=True)]
    assert np.array_equal(ONCE.blend(z, b, c), np.array(blended, F32))
    one_by_one = [((Number(1) - p) * q + Number(p) * r).value for p, q, r in zip(z, b, c, strict=True)]
    assert np.array_equal(ORDERED.blend(z, b, c), np.array(one_by_one, F32))


def test_limits() -> None:
    x = np.array([-3, -2, -0.5, 2, 2.5, np.inf, -np.inf, np.nan], F32)
    limited = [-2, -2, -0.5, 2, 2, 2, -2]
    assert np.array_equal(ORDERED.limit(x, 2.0, False), np.array([*limited, np.nan], F32), equal_nan=True)
    assert np.array_equal(ORDERED.limit(x, 2.0, True), np.array([*limited, 2], F32))
    for biased in (False, True):
        assert np.array_equal(ONCE.limit(x, 2.0, biased), np.array([*limited, np.nan], F32), equal_nan=True)


def test_recurrence_rules_are_told_apart() -> None:
    x = numbers(7)
    answers = [np.asarray(rule.functions["sigmoid"](x, 0.0, 0.0)).tobytes() for rule in (ORDERED, ONCE)]
    assert answers[0] != answers[1]
    assert ORDERED.joined != ONCE.joined
    # Of two products and their sum one product is rounded, or both are.
    joined, parts = recurrence.RULES["binary32_polynomials_joined"], [numbers(seed) for seed in (8, 9, 10, 11)]
    a, b, c, d = (part.astype(np.float64) for part in parts)
    assert np.array_equal(joined.products(*parts), (a * b + (c * d).astype(F32)).astype(F32))
    assert not np.array_equal(joined.products(*parts), ORDERED.products(*parts))

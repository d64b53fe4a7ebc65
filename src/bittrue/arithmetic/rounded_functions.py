"""Functions of one real number, rounded once: binary32 to binary32, ties to even.

Parameters are binary32 numbers taken as real ones. NaN gives NaN; limits at infinity are the function's. A zero result
of a function that is odd, or x times something, has the sign of x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import bittrue.arithmetic.correct_rounding as rounding
from bittrue.arithmetic.correct_rounding import Exact, decimal, fraction, in_digits, settle
from bittrue.arithmetic.elementary import quarter_turns

# (binary64 x, parameters) to (value, bound of its error)
Fast = Callable[..., "tuple[np.ndarray, Any]"]
Function = Callable[..., np.ndarray]


def _function(fast: Fast, exact: Callable[..., Exact]) -> Function:
    def apply(x: np.ndarray, **parameters: float) -> np.ndarray:
        wide = np.asarray(x, np.float64)
        with np.errstate(all="ignore"):
            value, error = fast(wide, **parameters)
        flat = wide.reshape(-1)
        # A file may repeat one argument that is hard to decide as often as it likes.
        decide = cache(lambda x: exact(x, **parameters))
        return settle(np.asarray(value), error, lambda place: decide(float(flat[place])))

    return apply


def _relative(units: float, function: Callable[..., np.ndarray]) -> Fast:
    """A binary64 evaluation that is off by fewer than `units` half units in the last place."""

    def fast(x: np.ndarray, **parameters: float) -> tuple[np.ndarray, np.ndarray]:
        value = function(x, **parameters)
        return value, rounding.ulp_bound(value, units)

    return fast


def _decimal(function: Callable[..., Decimal]) -> Callable[..., Decimal]:
    """The arguments as decimals."""

    def exact(x: float, **parameters: float) -> Decimal:
        return in_digits(function)(decimal(x), **{name: decimal(value) for name, value in parameters.items()})

    return exact


def _rational(function: Callable[..., Fraction]) -> Callable[..., Fraction]:
    def exact(x: float, **parameters: float) -> Fraction:
        return function(fraction(x), **{name: fraction(value) for name, value in parameters.items()})

    return exact


def _expm1(x: Decimal) -> Decimal:
    # The digits of the calculation are far more than what cancels.
    return x.exp() - 1


def _sigmoid(x: Decimal) -> Decimal:
    return 1 / (1 + (-x).exp())


def _softplus(x: Decimal) -> Decimal:
    return (1 + x.exp()).ln() if x > -250 else x.exp() - (2 * x).exp() / 2 + (3 * x).exp() / 3


def _times(x: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """x * factor where a vanishing factor wins over an infinite x."""
    return np.where((factor == 0) & np.isinf(x), np.copysign(0.0, x), x * factor)


def _mish(x: np.ndarray) -> np.ndarray:
    return _times(x, np.tanh(np.logaddexp(0.0, x)))


def _logistic(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _celu(x: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    scaled = x / alpha
    below = alpha * np.expm1(scaled)
    value = np.maximum(x, 0) + np.minimum(below, 0)
    value = np.where((x < 0) & (alpha > 0), below, np.where((x >= 0) & (alpha > 0), x, value))
    error = np.abs(below) * 2.0**-48 + np.abs(x) * np.exp(scaled) * 2.0**-50
    return value, np.where(np.isfinite(error) & ((x < 0) | (alpha <= 0)), error, 0)


def _exact_celu(x: Decimal, alpha: Decimal) -> Decimal:
    return max(Decimal(0), x) + min(Decimal(0), alpha * _expm1(x / alpha))


def _selu(x: np.ndarray, alpha: float, gamma: float) -> np.ndarray:
    return np.where(x > 0, gamma * x, gamma * (alpha * np.expm1(np.where(x > 0, 0, x))))


def _exact_selu(x: Decimal, alpha: Decimal, gamma: Decimal) -> Decimal:
    return gamma * x if x > 0 else gamma * alpha * _expm1(x)


_ROOT_OF_HALF = 0.7071067811865476


def _gelu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = _times(x, 0.5 * rounding.erfc_binary64(np.clip(-x * _ROOT_OF_HALF, -60, 60)))
    return value, np.abs(value) * 2.0**-42 * (np.isfinite(value))


def _exact_gelu(x: Decimal) -> Decimal:
    return x / 2 * (1 + rounding.erf(x / Decimal(2).sqrt()))


def _inner(x: Any, root: Any, cube: Any) -> Any:
    return root * (x + cube * x * x * x)


def _gelu_tanh(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inner = _inner(x, 0.7978845608028654, 0.044715)
    value = _times(x, _logistic(2 * inner))
    error = np.abs(value) * 2.0**-48 * (1 + np.abs(inner))
    return value, np.where(np.isfinite(error), error, 0)


def _exact_gelu_tanh(x: Decimal) -> Decimal:
    return x * _sigmoid(2 * _inner(x, (2 / rounding.pi()).sqrt(), Decimal("0.044715")))


def _quick_gelu(x: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    value = _times(x, _logistic(alpha * x)) if alpha else x * 0.5
    error = np.abs(value) * 2.0**-48 * (1 + np.abs(alpha * x))
    return value, np.where(np.isfinite(error), error, 0)


def _exact_quick_gelu(x: Decimal, alpha: Decimal) -> Decimal:
    return x * _sigmoid(alpha * x)


def _hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    line = alpha * x + beta
    value = np.where(np.isnan(line), line, np.clip(line, 0.0, 1.0))
    error = (np.abs(alpha * x) + abs(beta)) * 2.0**-52
    return value, np.where((line > -error) & (line < 1 + error), error, 0)


def _exact_hard_sigmoid(x: Fraction, alpha: Fraction, beta: Fraction) -> Fraction:
    return min(Fraction(1), max(Fraction(0), alpha * x + beta))


def _hard_swish(x: np.ndarray) -> np.ndarray:
    return _times(x, np.clip((x + 3) / 6, 0.0, 1.0))


def _exact_hard_swish(x: Fraction) -> Fraction:
    return x * min(Fraction(1), max(Fraction(0), x / 6 + Fraction(1, 2)))


def _turned(quarters: int) -> Fast:
    function = np.cos if quarters else np.sin

    def fast(x: np.ndarray) -> tuple[np.ndarray, Any]:
        value = np.asarray(function(x))
        # Small angles are not reduced, and lose no digits.
        error = np.asarray(np.abs(value) * 2.0**-40 + 2.0**-60 * (np.abs(x) >= 0.5))
        # Beyond this, the library's reduction of the angle is not trusted.
        far = np.isfinite(x) & (np.abs(x) >= 2.0**20)
        n, r = quarter_turns(np.abs(x[far]).astype(np.float32))
        n += quarters
        turned = np.where(n & 1, np.cos(r), np.sin(r)) * np.where(n & 2, -1.0, 1.0)
        value[far] = turned if quarters else np.copysign(1.0, x[far]) * turned
        # The angle is right to 2^-60.
        error[far] = np.abs(turned) * 2.0**-48 + 2.0**-56
        return value, error

    return fast


_SINE, _COSINE = _turned(0), _turned(1)


def _tangent(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (sine, sine_error), (cosine, cosine_error) = _SINE(x), _COSINE(x)
    value = sine / cosine
    # Within a small part of the angle's quarter turn.
    error = np.abs(value) * (np.abs(sine_error / sine) + np.abs(cosine_error / cosine) + 2.0**-50)
    return value, np.where(x == 0, 0, error)


def _inverse_tangent(x: Decimal) -> Decimal:
    """By halving the angle until a series is short."""
    halvings = 0
    while abs(x) > Decimal("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    term = total = x
    n = 1
    while term and abs(term) > abs(total) * Decimal(10) ** -rounding.DIGITS:
        term = -term * x * x
        n += 2
        total += term / n
    return total * 2**halvings


def _inverse_sine(x: Decimal) -> Decimal:
    root = (1 - x * x).sqrt()
    return _inverse_tangent(x / root) if root else (rounding.pi() / 2).copy_sign(x)


def _inverse_hyperbolic_sine(x: Decimal) -> Decimal:
    size = abs(x)
    return (size + (size * size + 1).sqrt()).ln().copy_sign(x) if size > Decimal("1e-20") else x - x**3 / 6


FUNCTIONS: Mapping[str, Function] = {
    "acos": _function(
        lambda x: (np.arccos(x), np.abs(np.arccos(x)) * 2.0**-49 + 2.0**-60 * (np.abs(x) < 1)),
        _decimal(lambda x: rounding.pi() / 2 - _inverse_sine(x)),
    ),
    "acosh": _function(_relative(32, np.arccosh), _decimal(lambda x: (x + (x * x - 1).sqrt()).ln())),
    "asin": _function(_relative(16, np.arcsin), _decimal(_inverse_sine)),
    "asinh": _function(_relative(32, np.arcsinh), _decimal(_inverse_hyperbolic_sine)),
    "atan": _function(_relative(16, np.arctan), _decimal(_inverse_tangent)),
    "atanh": _function(_relative(32, np.arctanh), _decimal(lambda x: ((1 + x) / (1 - x)).ln() / 2)),
    "celu": _function(_celu, _decimal(_exact_celu)),
    "cos": _function(_COSINE, _decimal(lambda x: rounding.sine(x, 1))),
    "cosh": _function(_relative(32, np.cosh), _decimal(lambda x: (x.exp() + (-x).exp()) / 2)),
    "erf": _function(_relative(64, rounding.erf_binary64), _decimal(rounding.erf)),
    "exp": _function(_relative(16, np.exp), _decimal(lambda x: x.exp())),
    "gelu": _function(_gelu, _decimal(_exact_gelu)),
    "gelu_tanh": _function(_gelu_tanh, _decimal(_exact_gelu_tanh)),
    "hard_sigmoid": _function(_hard_sigmoid, _rational(_exact_hard_sigmoid)),
    "hard_swish": _function(_relative(8, _hard_swish), _rational(_exact_hard_swish)),
    "log": _function(_relative(16, np.log), _decimal(lambda x: x.ln())),
    "logistic": _function(_relative(32, _logistic), _decimal(_sigmoid)),
    "mish": _function(_relative(64, _mish), _decimal(lambda x: x * rounding.tanh(_softplus(x)))),
    "parametric_elu": _function(_relative(32, _elu), _decimal(lambda x, alpha: alpha * _expm1(x) if x < 0 else x)),
    "quick_gelu": _function(_quick_gelu, _decimal(_exact_quick_gelu)),
    "selu": _function(_relative(32, _selu), _decimal(_exact_selu)),
    "sin": _function(_SINE, _decimal(lambda x: rounding.sine(x, 0))),
    "sinh": _function(_relative(32, np.sinh), _decimal(lambda x: (x.exp() - (-x).exp()) / 2)),
    "softplus": _function(_relative(64, lambda x: np.logaddexp(0.0, x)), _decimal(_softplus)),
    "softsign": _function(
        _relative(8, lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))),
        _rational(lambda x: x / (1 + abs(x))),
    ),
    "tan": _function(_tangent, _decimal(lambda x: rounding.sine(x, 0) / rounding.sine(x, 1))),
    "tanh": _function(_relative(16, np.tanh), _decimal(rounding.tanh)),
}


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x^y of binary32 arrays of one shape, rounded once; special cases as C's pow.

    >>> power(np.float32([2, 10, 4097]), np.float32([0.5, -1, 2])).tolist()
    [1.4142135381698608, 0.10000000149011612, 16785408.0]
    """
    base, exponent = np.asarray(x, np.float64), np.asarray(y, np.float64)
    with np.errstate(all="ignore"):
        value = np.power(base, exponent)
        # The logarithm of a result that fits binary32 is below 104; its relative error becomes an absolute one.
        error = np.where(np.isfinite(value) & np.isfinite(base) & np.isfinite(exponent), np.abs(value) * 2.0**-44, 0)
    bases, exponents = base.reshape(-1), exponent.reshape(-1)

    def exact(place: int) -> Exact:
        return _exact_power(float(bases[place]), float(exponents[place]))

    return settle(value, error, exact)


def _exact_power(base: float, exponent: float) -> Exact:
    if exponent == int(exponent) and abs(exponent) <= 64:
        return Fraction(base) ** int(exponent)
    if base == 1 or base == 0:
        return Fraction(base) if exponent > 0 or base else Fraction(0)
    result = in_digits(lambda b, e: (b.ln() * e).exp())(decimal(abs(base)), decimal(exponent))
    odd = base < 0 and exponent == int(exponent) and int(exponent) % 2 == 1
    return -result if odd else result

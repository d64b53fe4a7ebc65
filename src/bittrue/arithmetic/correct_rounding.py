"""Results of real arithmetic rounded once to binary32: binary64 with a bound of its error, exact where that is not
enough.

An exact value is a Fraction, or a Decimal with many digits where no fraction exists.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, wraps
from typing import Any

import numpy as np

# Digits of Decimal calculations, and how many of them are believed: a value that agrees with a tie in all believed
# digits is the tie.
DIGITS, _BELIEVED = 260, 200

Exact = Fraction | Decimal


def round_even(value: Exact) -> np.float32:
    """The binary32 number nearest to `value`, ties to even; 2^128 - 2^103 and more give infinity.

    >>> round_even(Fraction(16777217)), round_even(Fraction(16777219)), round_even(Fraction(2) ** 128)
    (np.float32(1.6777216e+07), np.float32(1.677722e+07), np.float32(inf))
    """
    if isinstance(value, Decimal):
        with localcontext() as context:
            context.prec = _BELIEVED
            value = Fraction(+value)
    if not value:
        return np.float32(0)
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    whole = round(magnitude / unit) * unit
    result = np.float32(np.inf) if whole >= Fraction(2) ** 128 else np.float32(float(whole))
    return -result if value < 0 else result


def settle(value: np.ndarray, error: Any, exact: Callable[[int], Exact]) -> np.ndarray:
    """binary32 results of real numbers that lie within `error` of the binary64 `value`.

    Args:
        value: binary64; what is not finite is final.
        error: bound of |value - true value|; the rounding of value +- error itself is allowed for.
        exact: gives the true value at a position of the flattened array; asked only near ties.
    """
    with np.errstate(all="ignore"):
        margin = error + np.abs(value) * 2.0**-51 + 1e-300 * (np.asarray(error) != 0)
        result = np.asarray(value.astype(np.float32))
        low, high = (value - margin).astype(np.float32), (value + margin).astype(np.float32)
        open_ones = np.isfinite(value) & ~(low == high) & (np.asarray(error) != 0)
    flat = result.reshape(-1)
    for place in np.flatnonzero(open_ones):
        flat[place] = round_even(exact(int(place)))
    return flat.reshape(value.shape)


def fraction(x: Any) -> Fraction:
    """A finite float as it is."""
    return Fraction(float(x))


def decimal(x: Any) -> Decimal:
    """A finite float or a fraction; fractions are rounded to the digits of the calculation."""
    if isinstance(x, Fraction):
        return Decimal(x.numerator) / Decimal(x.denominator)
    return x if isinstance(x, Decimal) else Decimal(float(x))


def in_digits(function: Callable[..., Decimal]) -> Callable[..., Decimal]:
    """`function` under the precision of exact calculations."""

    @wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Decimal:
        with localcontext() as context:
            context.prec = DIGITS
            context.Emin, context.Emax = -(10**9), 10**9
            return function(*arguments, **named)

    return wrapper


@cache
@in_digits
def pi() -> Decimal:
    """By Machin's formula."""

    def inverse_tangent(n: int) -> Decimal:
        term = total = Decimal(1) / n
        k = 1
        while abs(term) > Decimal(10) ** -(DIGITS + 5):
            term = -term / (n * n)
            k += 2
            total += term / k
        return total

    return 16 * inverse_tangent(5) - 4 * inverse_tangent(239)


def erf(x: Decimal) -> Decimal:
    """2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...); call it under `in_digits`."""
    term = total = x
    n = 1
    while term and abs(term) > abs(total) * Decimal(10) ** -DIGITS:
        n += 2
        term = term * 2 * x * x / n
        total += term
    return 2 / pi().sqrt() * (-x * x).exp() * total


def tanh(x: Decimal) -> Decimal:
    """Call it under `in_digits`. Without cancellation for small x."""
    if abs(x) < Decimal("1e-20"):
        return x - x**3 / 3 + 2 * x**5 / 15 - 17 * x**7 / 315 + 62 * x**9 / 2835 if abs(x) > Decimal("1e-40") else x
    e = (-2 * abs(x)).exp()
    return ((1 - e) / (1 + e)).copy_sign(x)


def sine(x: Decimal, quarters: int) -> Decimal:
    """sin(x + quarters * pi / 2); call it under `in_digits`."""
    turned = x + quarters * pi() / 2
    angle = turned - (turned / (2 * pi())).to_integral_value() * 2 * pi()
    term = total = angle
    n = 1
    while term and abs(term) > Decimal(10) ** -DIGITS:
        term = -term * angle * angle / ((n + 1) * (n + 2))
        n += 2
        total += term
    return total


# -- error function in binary64 (a widely known rational approximation, error below 2^-52 relative)
# ----------------------
_ERX = 8.45062911510467529297e-01
_PP = (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
       -5.77027029648944159157e-03,
       -2.37630166566501626084e-05)  # fmt: skip
_QQ = (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
       1.32494738004321644526e-04,
       -3.96022827877536812320e-06)  # fmt: skip
_PA = (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01, 3.18346619901161753674e-01,
       -1.10894694282396677476e-01, 3.54783043256182359371e-02, -2.16637559486879084300e-03)  # fmt: skip
_QA = (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
       1.26171219808761642112e-01,
       1.36370839120290507362e-02, 1.19844998467991074170e-02)  # fmt: skip
_RA = (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01, -6.23753324503260060396e01,
       -1.62396669462573470355e02, -1.84605092906711035994e02, -8.12874355063065934246e01,
       -9.81432934416914548592e00)  # fmt: skip
_SA = (1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02, 6.45387271733267880336e02,
       4.29008140027567833386e02, 1.08635005541779435134e02, 6.57024977031928170135e00,
       -6.04244152148580987438e-02)  # fmt: skip
_RB = (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01, -1.60636384855821916062e02,
       -6.37566443368389627722e02, -1.02509513161107724954e03, -4.83519191608651397019e02)  # fmt: skip
_SB = (1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03, 3.19985821950859553908e03,
       2.55305040643316442583e03, 4.74528541206955367215e02, -2.24409524465858183362e01)  # fmt: skip


def _polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    result = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


def erfc_binary64(x: np.ndarray) -> np.ndarray:
    """1 - erf(x), relative error below 2^-46 while the result is normal.

    >>> import math
    >>> worst = max(abs(float(erfc_binary64(np.array([v]))[0]) / math.erfc(v) - 1) for v in np.linspace(-6, 26, 999))
    >>> worst < 2.0**-47
    True
    """
    return np.where(x < 0.84375, 1 - erf_binary64(np.minimum(x, 0.84375)), _erfc_above(np.maximum(x, 0.84375)))


def _erfc_above(a: np.ndarray) -> np.ndarray:
    s = a - 1
    middle = 1 - _ERX - _polynomial(s, _PA) / _polynomial(s, _QA)
    with np.errstate(all="ignore"):
        inverse = 1 / (a * a)
        far = a >= 1 / 0.35
        tail = np.where(
            far,
            _polynomial(inverse, _RB) / _polynomial(inverse, _SB),
            _polynomial(inverse, _RA) / _polynomial(inverse, _SA),
        )
        z = (a.view(np.int64) & np.int64(-(1 << 32))).view(np.float64)
        small = np.exp(-z * z - 0.5625) * np.exp((z - a) * (z + a) + tail) / a
    return np.where(a < 1.25, middle, small)


def erf_binary64(x: np.ndarray) -> np.ndarray:
    """erf(x), relative error below 2^-49.

    >>> import math
    >>> worst = max(abs(float(erf_binary64(np.array([v]))[0]) / math.erf(v) - 1) for v in np.linspace(-7, 7, 998))
    >>> worst < 2.0**-50
    True
    """
    a = np.abs(x)
    near = np.minimum(a, 0.84375)
    z = near * near
    small = x * (1 + _polynomial(z, _PP) / _polynomial(z, _QQ))
    large = np.copysign(1 - _erfc_above(np.maximum(a, 0.84375)), x)
    return np.where(a < 0.84375, small, large)


def ulp_bound(value: np.ndarray, units: float) -> np.ndarray:
    """`units` half units in the last place of binary64 values."""
    return np.abs(value) * (units * 2.0**-53)


__all__ = [
    "Exact",
    "decimal",
    "erf",
    "erf_binary64",
    "erfc_binary64",
    "fraction",
    "in_digits",
    "pi",
    "round_even",
    "settle",
    "sine",
    "tanh",
    "ulp_bound",
]

"""Rounding of floats to integral floats, and conversion of floats to s32, each named by its rule.

binary32 arrays stay binary32, binary64 arrays binary64; Python numbers, lists and integers count as binary64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bittrue.arithmetic.fixed_point import S32_MAX, S32_MIN, S64

if TYPE_CHECKING:
    import numpy.typing as npt

Floats = np.ndarray[Any, np.dtype[Any]]


def _float_array(x: npt.ArrayLike) -> Floats:
    array = np.asarray(x)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "iubf" or array.dtype.itemsize > 8:
        raise TypeError(f"expected binary32, binary64 or integers, found {array.dtype}")
    return array.astype(np.float64)


_HALF_BELOW = {np.dtype(kind): np.nextafter(kind(0.5), kind(0)) for kind in (np.float32, np.float64)}


def round_away(x: npt.ArrayLike) -> Floats:
    """Nearest integral value, ties away from zero (C `round`), in the type of x.

    NaN, infinities and signed zero pass through; huge values are already integral and stay.
    Adding the float just below one half, not one half itself, keeps 0.49999999999999994 from reaching 1: the sum
    reaches the next integer only for a true fraction of one half or more. Domain: all. No saturation.
    Source: docs/facts/litert.md 1 (rha), read; C standard function `round`, run.

    >>> round_away([0.5, -0.5, 2.5, -2.5, 0.49999999999999994, 2.0**53 - 1]).tolist()
    [1.0, -1.0, 3.0, -3.0, 0.0, 9007199254740991.0]
    """
    x = _float_array(x)
    result = np.asarray(np.copysign(_HALF_BELOW[x.dtype], x))
    result += x
    np.trunc(result, out=result)
    return result


def round_even(x: npt.ArrayLike) -> Floats:
    """Nearest integral value, ties to even (C `nearbyint` in the default mode), in the type of x.

    NaN, infinities and signed zero pass through. Domain: all. No saturation.
    Source: docs/facts/litert.md 1 (rne), read.

    >>> round_even([0.5, -0.5, 1.5, -2.5]).tolist()
    [0.0, -0.0, 2.0, -2.0]
    """
    return np.asarray(np.rint(_float_array(x)))


def _sum_and_rest(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """a + b, and what rounding took from it."""
    total = np.asarray(a + b)
    back = total - a
    return total, (a - (total - back)) + (b - back)


def add_to_odd(a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """a + b in binary64, rounded to odd: an inexact sum becomes the one of its two neighbours whose last bit is 1.

    The last bit then says that something was lost, so that a second rounding, to 51 bits or fewer, gives what a single
    one would have given. Domain: all; infinities and NaN as in IEEE 754.
    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008.

    >>> float(add_to_odd(1.0, 2.0**-60)) == 1 + 2.0**-52, float(add_to_odd(1.0, 2.0**-52)) == 1 + 2.0**-52
    (True, True)
    """
    with np.errstate(all="ignore"):
        total, lost = _sum_and_rest(np.asarray(a, np.float64), np.asarray(b, np.float64))
        # Where something was lost, the sum is no neighbour of infinity: it goes to the odd neighbour on that side.
        wrong = (lost != 0) & np.isfinite(total)
        if wrong.any():
            bits = total.view(np.int64)
            step = np.where((lost > 0) == (total > 0), 1, -1)
            total = np.where(wrong & (bits & 1 == 0), bits + step, bits).view(np.float64)
        return total


def fused_multiply_add(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """a * b + c in binary32 with one rounding, ties to even; broadcasts.

    The product is exact in binary64, and its sum with c is rounded to odd there (see `add_to_odd`). Domain: all of
    binary32; NaN payloads are not defined. Source: IEEE 754, section 5.4.1; compared with C `fmaf`.

    >>> one = np.float32(1 + 2**-12)
    >>> float(fused_multiply_add(one, one, np.float32(-1 - 2**-11))) == 2.0**-24
    True
    """
    with np.errstate(all="ignore"):
        return add_to_odd(np.multiply(a, b, dtype=np.float64), c).astype(np.float32)


# Beyond these, parts of a product are lost.
_SPLIT, _LARGE, _SMALL = float((1 << 27) + 1), 2.0**480, 2.0**-480


def _halves(x: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The upper and the lower 26 bits of numbers."""
    upper = _SPLIT * x
    upper = upper - (upper - x)
    return upper, x - upper


def fused_multiply_add_64(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """a * b + c in binary64 with one rounding, ties to even; broadcasts.

    Domain: all of binary64; NaN payloads are not defined. Source: Boldo and Melquiond, "Emulation of FMA and correctly
    rounded sums", 2008; numbers whose parts leave the range by fractions.

    >>> one = 1 + 2.0**-30
    >>> float(fused_multiply_add_64(one, one, -1 - 2.0**-29)) == 2.0**-60
    True
    >>> float(fused_multiply_add_64(1e300, -1e300, np.inf))
    inf
    """
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    with np.errstate(all="ignore"):
        product = np.asarray(a * b)
        (a1, a2), (b1, b2) = _halves(a), _halves(b)
        rest = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
        upper, lower = _sum_and_rest(c, rest)
        total, last = _sum_and_rest(product, upper)
        result = np.asarray(total + add_to_odd(lower, last))
        sizes = [np.abs(x) for x in (a, b, c)]
        plain = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c) | (product == 0) & ((a == 0) | (b == 0))
        # A product of finite numbers that leaves the range is finite beside an infinity.
        infinite = np.isfinite(a) & np.isfinite(b) & np.isinf(c)
        result = np.where(infinite, c, np.where(plain, product + c, result))
        odd = np.zeros(a.shape, bool)
        for x in sizes:
            odd |= (x > _LARGE) | ((x < _SMALL) & (x != 0))
    for index in np.argwhere(odd & ~plain):
        from fractions import Fraction

        place = tuple(index)
        exact = Fraction(float(a[place])) * Fraction(float(b[place])) + Fraction(float(c[place]))
        try:
            result[place] = float(exact)
        except OverflowError:
            result[place] = np.inf if exact > 0 else -np.inf
    return result


def fused_multiply_add_16(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """a * b + c in binary16 with one rounding, ties to even, of binary16 numbers in binary32; broadcasts.

    Domain: all of binary16; NaN payloads are not defined. In binary64 the sum is no tie of binary16 that it was not
    before. Source: Arm Architecture Reference Manual, FMLA (vector) of half-precision; run.

    >>> fused_multiply_add_16([1 + 2.0**-10, 65504], [1 - 2.0**-10, 1], [-1, 16]).tolist()
    [-9.5367431640625e-07, inf]
    """
    with np.errstate(all="ignore"):
        product = np.multiply(np.asarray(a, np.float32), np.asarray(b, np.float32), dtype=np.float64)
        return np.asarray((product + np.asarray(c, np.float32)).astype(np.float16).astype(np.float32))


def truncate_to_s32(x: npt.ArrayLike) -> S64:
    """Drop the fraction; everything that does not fit s32 (and NaN) gives -2^31.

    This is the x86 conversion (cvttss2si, cvttsd2si with a 32-bit destination). Domain: all. Type: int64 array.
    Source: Intel SDM, "integer indefinite" result of CVTTSD2SI, read.

    >>> truncate_to_s32([1.5, -1.5, 2147483647.5, 2147483648.0, -2147483648.5, float("nan")]).tolist()
    [1, -1, 2147483647, -2147483648, -2147483648, -2147483648]
    """
    whole = np.trunc(np.asarray(_float_array(x), dtype=np.float64))
    fits = (whole >= S32_MIN) & (whole <= S32_MAX)  # false for NaN
    return np.where(fits, whole, S32_MIN).astype(np.int64)


def saturate_to_s32(x: npt.ArrayLike) -> S64:
    """Drop the fraction and limit to s32; NaN gives 0.

    This is the AArch64 conversion (fcvtzs) and what compilers emit when asked for defined conversions. Domain: all.
    Source: Arm ARM, FCVTZS, read.

    >>> saturate_to_s32([1.5, -1.5, 2147483648.0, float("-inf"), float("nan")]).tolist()
    [1, -1, 2147483647, -2147483648, 0]
    """
    whole = np.trunc(np.asarray(_float_array(x), dtype=np.float64))
    return np.where(np.isnan(whole), 0.0, np.clip(whole, S32_MIN, S32_MAX)).astype(np.int64)

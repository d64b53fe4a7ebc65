"""Two's complement building blocks on s64 arrays: wrapping, saturation, high products, division by powers of two.

Every function takes anything ``np.asarray`` takes (integers or booleans), broadcasts like NumPy, never changes its
arguments and returns an int64 array (0-d for scalars). A value "is s32" when it lies in [-2^31, 2^31 - 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

S64 = np.ndarray[Any, np.dtype[np.int64]]

S16_MIN, S16_MAX = -(1 << 15), (1 << 15) - 1
S32_MIN, S32_MAX = -(1 << 31), (1 << 31) - 1


def as_s64(x: npt.ArrayLike) -> S64:
    """Return x as an int64 array, without a copy where it is one already.

    Errors: TypeError for floats, complex numbers and objects; OverflowError for unsigned values above 2^63 - 1.

    >>> as_s64([True, False]).tolist()
    [1, 0]
    """
    array = np.asarray(x)
    if array.dtype == np.int64:
        return array
    if array.dtype.kind not in "iub" and array.size:
        raise TypeError(f"expected integers, found {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) >> 63:
        raise OverflowError(f"expected values below 2^63, found {int(array.max())}")
    return array.astype(np.int64)


def wrap_s32(x: npt.ArrayLike) -> S64:
    """Keep the low 32 bits, read as two's complement: x - 2^32 * floor((x + 2^31) / 2^32).

    Domain: all s64. No ties, no saturation.
    Source: docs/facts/litert.md 1 (w32), read and run.

    >>> wrap_s32([2**31 - 1, 2**31, -(2**31) - 1]).tolist()
    [2147483647, -2147483648, 2147483647]
    """
    return as_s64(x).astype(np.int32).astype(np.int64)


def wrap_s16(x: npt.ArrayLike) -> S64:
    """Keep the low 16 bits, read as two's complement: x - 2^16 * floor((x + 2^15) / 2^16).

    Domain: all s64. No ties, no saturation.
    Source: docs/facts/litert.md 1 (w16), read and run.

    >>> wrap_s16([32767, 32768, -32769]).tolist()
    [32767, -32768, 32767]
    """
    return as_s64(x).astype(np.int16).astype(np.int64)


def doubling_high_multiply_up(a: npt.ArrayLike, b: npt.ArrayLike) -> S64:
    """High half of the doubled product: floor(a*b / 2^31 + 1/2), at most 2^31 - 1.

    Ties: up (toward +infinity). Saturates only for a = b = -2^31.
    Domain: a and b s32 (not checked; |a*b| <= 2^62, so the sum fits s64). Result s32.
    Source: docs/facts/litert.md 1.2 (SRDHM); gemmlowp fixedpoint.h, read and compiled.

    >>> doubling_high_multiply_up([1, -1, -(2**31)], [2**30, 2**30, -(2**31)]).tolist()
    [1, 0, 2147483647]
    """
    result = np.asarray(np.multiply(as_s64(a), as_s64(b)))
    result += 1 << 30
    result >>= 31
    np.minimum(result, S32_MAX, out=result)
    return result


def doubling_high_multiply_up_s16(a: npt.ArrayLike, b: npt.ArrayLike) -> S64:
    """High half of the doubled product in 16 bits: floor(a*b / 2^15 + 1/2), at most 2^15 - 1.

    Ties: up (toward +infinity). Saturates only for a = b = -2^15.
    Domain: a and b s16 (not checked). Result s16.
    Source: docs/facts/litert.md 1.2 (SRDHM16); gemmlowp fixedpoint.h, read and compiled.

    >>> doubling_high_multiply_up_s16([1, -1, -32768], [2**14, 2**14, -32768]).tolist()
    [1, 0, 32767]
    """
    result = np.asarray(np.multiply(as_s64(a), as_s64(b)))
    result += 1 << 14
    result >>= 15
    np.minimum(result, S16_MAX, out=result)
    return result


def _right_shift(right_shift: npt.ArrayLike) -> tuple[S64, S64, S64]:
    """Return right_shift, the bit below the point (2^right_shift div 2) and 1 where right_shift > 0, else 0."""
    n = as_s64(right_shift)
    if n.size and (n.min() < 0 or n.max() > 62):
        raise ValueError(f"right_shift must lie in 0..62, found {int(n.min())}..{int(n.max())}")
    return n, np.asarray((np.int64(1) << n) >> 1), np.asarray((n > 0).astype(np.int64))


def divide_by_power_of_two_away(x: npt.ArrayLike, right_shift: npt.ArrayLike) -> S64:
    """Return x / 2^right_shift, to nearest, ties away from zero.

    Domain: |x| <= 2^62 (not checked; then x plus half the divisor fits s64), right_shift in 0..62, scalar or array.
    Errors: ValueError for a right_shift outside 0..62. No saturation.
    Source: docs/facts/litert.md 1.2 (RDP); gemmlowp fixedpoint.h, read and compiled.

    >>> divide_by_power_of_two_away([5, -5, 6, -6, 7, -7], 2).tolist()
    [1, -1, 2, -2, 2, -2]
    """
    n, half, one = _right_shift(right_shift)
    x = as_s64(x)
    x = np.broadcast_to(x, np.broadcast_shapes(x.shape, n.shape))
    # A negative x gets half a divisor minus one, so that floor sends its ties down, away from zero.
    result = np.asarray(np.right_shift(x, 63))
    if not one.all():
        result &= -one
    result += half
    result += x
    result >>= n
    return result


def divide_by_power_of_two_up(x: npt.ArrayLike, right_shift: npt.ArrayLike) -> S64:
    """Return x / 2^right_shift, to nearest, ties up: floor(x / 2^right_shift + 1/2).

    Domain: |x| <= 2^62 (not checked), right_shift in 0..62, scalar or array.
    Errors: ValueError for a right_shift outside 0..62. No saturation.
    Source: docs/facts/litert.md 1.3 (second step of MBQMup), read.

    >>> divide_by_power_of_two_up([5, -5, 6, -6, 7, -7], 2).tolist()
    [1, -1, 2, -1, 2, -2]
    """
    n, half, _ = _right_shift(right_shift)
    result = np.asarray(np.add(as_s64(x), half))
    result >>= n
    return result


def divide_by_power_of_two_down(x: npt.ArrayLike, right_shift: npt.ArrayLike) -> S64:
    """Return x / 2^right_shift, to nearest, ties down: ceil(x / 2^right_shift - 1/2).

    Domain: |x| <= 2^62 (not checked), right_shift in 0..62, scalar or array.
    Errors: ValueError for a right_shift outside 0..62. No saturation.
    Source: definition.

    >>> divide_by_power_of_two_down([5, -5, 6, -6, 7, -7], 2).tolist()
    [1, -1, 1, -2, 2, -2]
    """
    n, half, one = _right_shift(right_shift)
    result = np.asarray(np.add(as_s64(x), half - one))
    result >>= n
    return result


def divide_by_power_of_two_even(x: npt.ArrayLike, right_shift: npt.ArrayLike) -> S64:
    """Return x / 2^right_shift, to nearest, ties to the even quotient.

    Domain: |x| <= 2^62 (not checked), right_shift in 0..62, scalar or array.
    Errors: ValueError for a right_shift outside 0..62. No saturation.
    Source: definition.

    >>> divide_by_power_of_two_even([5, -5, 6, -6, 10, -10], 2).tolist()
    [1, -1, 2, -2, 2, -2]
    """
    x = as_s64(x)
    n, half, one = _right_shift(right_shift)
    # An odd quotient gets the full half (its tie goes up), an even one half minus one (its tie stays).
    result = np.asarray(np.right_shift(x, n))
    result &= one
    result += half - one
    result += x
    result >>= n
    return result


def divide_by_power_of_two_trunc(x: npt.ArrayLike, right_shift: npt.ArrayLike) -> S64:
    """Return x / 2^right_shift with the fraction dropped (toward zero); ties are nothing special.

    Domain: |x| <= 2^62 (not checked), right_shift in 0..62, scalar or array.
    Errors: ValueError for a right_shift outside 0..62. No saturation.
    Source: definition (C integer division by 2^right_shift).

    >>> divide_by_power_of_two_trunc([5, -5, 6, -6, 7, -7], 2).tolist()
    [1, -1, 1, -1, 1, -1]
    """
    n, _, _ = _right_shift(right_shift)
    x = as_s64(x)
    x = np.broadcast_to(x, np.broadcast_shapes(x.shape, n.shape))
    # A negative x gets the divisor minus one, so that floor becomes ceil.
    result = np.asarray(np.right_shift(x, 63))
    result &= (np.int64(1) << n) - 1
    result += x
    result >>= n
    return result


def saturating_multiply_by_power_of_two(x: npt.ArrayLike, exponent: npt.ArrayLike, bits: int = 32) -> S64:
    """Return x * 2^exponent, saturated to s`bits` for exponent > 0, divided with ties away from zero for exponent < 0.

    Domain: x s32 (s16 for bits = 16; not checked), exponent in -62..31, scalar or array. Result s`bits`.
    Errors: ValueError for an exponent outside -62..31.
    Source: docs/facts/litert.md 1.8 (SML); gemmlowp fixedpoint.h, read and compiled.

    >>> saturating_multiply_by_power_of_two([6, -6, 2**30, -(2**30), -(2**31)], [-2, -2, 1, 1, 1]).tolist()
    [2, -2, 2147483647, -2147483648, -2147483648]
    """
    e = as_s64(exponent)
    if e.size and (e.min() < -62 or e.max() > 31):
        raise ValueError(f"exponent must lie in -62..31, found {int(e.min())}..{int(e.max())}")
    # One of the two steps is by 2^0 for each element, so doing both is doing the right one.
    result = np.asarray(np.left_shift(as_s64(x), np.maximum(e, 0)))
    limit = 1 << (bits - 1)
    np.clip(result, -limit, limit - 1, out=result)
    return divide_by_power_of_two_away(result, np.maximum(-e, 0)) if e.size and e.min() < 0 else result


def count_leading_zeros_s32(x: npt.ArrayLike) -> S64:
    """Number of zero bits above the highest one of the 32-bit pattern of x: 32 for 0, 0 for negative x.

    Domain: s32 (other values are taken modulo 2^32). No ties, no saturation.
    Source: docs/facts/litert.md 1.8 (clz32), read.

    >>> count_leading_zeros_s32([0, 1, 2**31 - 1, -1]).tolist()
    [32, 31, 1, 0]
    """
    # Exact: 32 bits fit a binary64 significand, and frexp's exponent is the bit length (0 for 0).
    pattern = np.asarray(as_s64(x) & 0xFFFFFFFF, dtype=np.float64)
    return 32 - np.asarray(np.frexp(pattern)[1], dtype=np.int64)


def half_sum_away(a: npt.ArrayLike, b: npt.ArrayLike) -> S64:
    """Return (a + b) / 2, ties away from zero; the sum does not overflow.

    Domain: |a + b| <= 2^62. No saturation (two s32 values have an s32 half sum).
    Source: docs/facts/litert.md 1.8 (half-sum); gemmlowp fixedpoint.h, read and compiled.

    >>> half_sum_away([1, -1, 2**31 - 1], [2, -2, 2**31 - 1]).tolist()
    [2, -2, 2147483647]
    """
    return divide_by_power_of_two_away(as_s64(a) + as_s64(b), 1)


def saturating_add_s32(a: npt.ArrayLike, b: npt.ArrayLike) -> S64:
    """Return a + b limited to [-2^31, 2^31 - 1].

    Domain: |a + b| < 2^63. No ties.
    Source: docs/facts/litert.md 2.5 (satadd), read.

    >>> saturating_add_s32([1, 2**31 - 1, -(2**31)], [1, 1, -1]).tolist()
    [2, 2147483647, -2147483648]
    """
    return np.asarray(np.clip(as_s64(a) + as_s64(b), S32_MIN, S32_MAX))


def saturating_add_s16(a: npt.ArrayLike, b: npt.ArrayLike) -> S64:
    """Return a + b limited to [-2^15, 2^15 - 1].

    Domain: |a + b| < 2^63. No ties.
    Source: docs/facts/litert.md 1.8 (16-bit flavour), read.

    >>> saturating_add_s16([1, 32767, -32768], [1, 1, -1]).tolist()
    [2, 32767, -32768]
    """
    return np.asarray(np.clip(as_s64(a) + as_s64(b), S16_MIN, S16_MAX))

"""Slots `quantize` and `dequantize`: between real numbers and quantized values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, floats
from .to_integer import away_sum_clamp, even_wrap

QuantizeRule = Callable[[np.ndarray, np.ndarray, np.ndarray, int, int], np.ndarray]
DequantizeRule = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def binary32_divide_away(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """clamp(wrap32(to_s32(round_away(f32(x / scale))) + zero_point)), ties away from zero.

    to_s32 is the x86 conversion: NaN, infinities and values outside 32 bits become -2^31. The zero point is then added
    modulo 2^32, so such values land on `minimum` for zero_point >= 0 and on `maximum` for zero_point < 0.

    Args:
        x: float32 array.
        scale, zero_point: float32 and int64, broadcastable to `x`.

    Returns:
        int64 array. Source: docs/facts/litert.md 2.3 (QUANTIZE), verified by running.

    >>> one = np.float32(1)
    >>> [int(v) for v in binary32_divide_away(np.float32([0.5, -0.5, 1000]), one, np.int64(0), -128, 127)]
    [1, -1, 127]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        steps = floats.truncate_to_s32(floats.round_away(x.astype(np.float32) / scale.astype(np.float32)))
    return np.clip(fixed_point.wrap_s32(steps + zero_point), minimum, maximum)


def binary64_divide_away(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """clamp(wrap32(to_s32(round_away(f64(x) / f64(scale))) + zero_point)), otherwise as `binary32_divide_away`.

    Source: docs/facts/litert.md 2.3 (QUANTIZE, scalar loop), verified by running. 0.35 / 0.1 is less than 3.5 in
    binary64, but 3.5 in binary32:

    >>> rules = binary32_divide_away, binary64_divide_away
    >>> [int(rule(np.float32([0.35]), np.float32(0.1), np.int64(0), -128, 127)[0]) for rule in rules]
    [4, 3]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        steps = floats.truncate_to_s32(floats.round_away(x.astype(np.float64) / scale.astype(np.float64)))
    return np.clip(fixed_point.wrap_s32(steps + zero_point), minimum, maximum)


def binary32_divide_away_limited(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """As `binary32_divide_away`, but to_s32 is the conversion of AArch64: it limits, and NaN becomes 0.

    So NaN becomes the zero point, and a positive infinity the maximum unless the sum wraps.
    Source: docs/aarch64.md, verified by running.

    >>> x = np.float32([0.5, -0.5, np.inf, -np.inf, np.nan])
    >>> [int(v) for v in binary32_divide_away_limited(x, np.float32(1), np.int64(0), -128, 127)]
    [1, -1, 127, -128, 0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        steps = floats.saturate_to_s32(floats.round_away(x.astype(np.float32) / scale.astype(np.float32)))
    return np.clip(fixed_point.wrap_s32(steps + zero_point), minimum, maximum)


def binary64_divide_away_limited(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """As `binary64_divide_away`, with the conversion of `binary32_divide_away_limited`.

    Source: docs/aarch64.md, verified by running.

    >>> x = np.float32([0.35, np.inf, np.nan])
    >>> [int(v) for v in binary64_divide_away_limited(x, np.float32(0.1), np.int64(0), -128, 127)]
    [3, 127, 0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        steps = floats.saturate_to_s32(floats.round_away(x.astype(np.float64) / scale.astype(np.float64)))
    return np.clip(fixed_point.wrap_s32(steps + zero_point), minimum, maximum)


def binary32_divide_even(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """clamp(wrap32(to_s32(round_even(f32(x / scale))) + zero_point)), otherwise as `binary32_divide_away`.

    Source: docs/facts/caffe2.md 1 (Int8Quantize), verified by running.

    >>> one = np.float32(1)
    >>> [int(v) for v in binary32_divide_even(np.float32([0.5, -1.5, 1000]), one, np.int64(0), -128, 127)]
    [0, -2, 127]
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return even_wrap(x.astype(np.float32) / scale.astype(np.float32), zero_point, minimum, maximum)


def binary32_divide_away_sum(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """to_s32(clamp(f32(round_away(f32(x / scale)) + f32(zero_point)))): clamped as real numbers.

    NaN gives the maximum. The largest 32-bit integer is no binary32 number: 2^31 stands for it, which to_s32 (the x86
    conversion) makes -2^31. Source: docs/facts/tvm_qnn.md 2, verified by running.

    >>> one = np.float32(1)
    >>> [int(v) for v in binary32_divide_away_sum(np.float32([0.5, -0.5, 3e9, -3e9]), one, np.int64(-1), -128, 127)]
    [0, -2, 127, -128]
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return away_sum_clamp(x.astype(np.float32) / scale.astype(np.float32), zero_point, minimum, maximum)


def binary32_reciprocal_away_sum(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """to_s32(clamp(f32(round_away(f32(x * f32(1 / scale))) + f32(zero_point)))); as `binary32_divide_away_sum` else.

    Source: docs/facts/tvm_qnn.md 2, verified by running.

    >>> x, scale = np.float32([1.65]), np.float32(0.3)
    >>> rules = binary32_reciprocal_away_sum, binary32_divide_away_sum
    >>> [int(rule(x, scale, np.int64(0), -128, 127)[0]) for rule in rules]
    [6, 5]
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reciprocal = np.float32(1) / scale.astype(np.float32)
        return away_sum_clamp(x.astype(np.float32) * reciprocal, zero_point, minimum, maximum)


def binary32_reciprocal_even_wrap(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """clamp(wrap32(to_s32(round_even(f32(x * f32(1 / scale)))) + zero_point)), ties to even; to_s32 as above.

    Source: docs/facts/litert.md 2.3 (QUANTIZE, vector loop), verified by running.

    >>> half = np.float32(0.5)
    >>> [int(v) for v in binary32_reciprocal_even_wrap(np.float32([0.25, 0.75, -0.75]), half, np.int64(0), -128, 127)]
    [0, 2, -2]
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reciprocal = (1.0 / scale.astype(np.float64)).astype(np.float32)
        steps = floats.truncate_to_s32(np.rint(x.astype(np.float32) * reciprocal))
    return np.clip(fixed_point.wrap_s32(steps + zero_point), minimum, maximum)


def binary32_reciprocal_even_wrap_limited(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """As `binary32_reciprocal_even_wrap`, with the conversion of `binary32_divide_away_limited`.

    Source: docs/aarch64.md, verified by running.

    >>> x = np.float32([0.25, 0.75, np.inf, np.nan])
    >>> [int(v) for v in binary32_reciprocal_even_wrap_limited(x, np.float32(0.5), np.int64(0), -128, 127)]
    [0, 2, 127, 0]
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reciprocal = (1.0 / scale.astype(np.float64)).astype(np.float32)
        steps = floats.saturate_to_s32(np.rint(x.astype(np.float32) * reciprocal))
    return np.clip(fixed_point.wrap_s32(steps + zero_point), minimum, maximum)


def binary32_reciprocal_even(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """clamp(round_even(f32(x * f32(1 / scale))) + zero_point), the rounded value being limited to 16 bits first.

    NaN becomes `maximum`, infinities saturate. Args and result: as `binary32_divide_away`.
    Source: docs/facts/xnnpack.md 2.3, verified by running.

    >>> one = np.float32(1)
    >>> [int(v) for v in binary32_reciprocal_even(np.float32([0.5, -1.5, 1e9]), one, np.int64(0), -128, 127)]
    [0, -2, 127]
    >>> int(binary32_reciprocal_even(np.float32(np.nan), one, np.int64(-128), -128, 127))
    127
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        moved = x.astype(np.float32) * (np.float32(1) / scale.astype(np.float32))
    limited = np.where(np.isnan(moved), np.float32(32767), np.clip(moved, np.float32(-32768), np.float32(32767)))
    return np.clip(np.rint(limited).astype(np.int64) + zero_point, minimum, maximum)


def binary32_reciprocal_even_limited(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """As `binary32_reciprocal_even`, but NaN becomes the zero point.

    Source: docs/facts/xnnpack.md 3.20, verified by running.

    >>> x = np.float32([0.5, -1.5, 1e9, np.nan])
    >>> [int(v) for v in binary32_reciprocal_even_limited(x, np.float32(1), np.int64(5), -128, 127)]
    [5, 3, 127, 5]
    """
    numbers = np.where(np.isnan(x), np.float32(0), x)
    return binary32_reciprocal_even(numbers, scale, zero_point, minimum, maximum)


def binary32_reciprocal_fused_even(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, minimum: int, maximum: int
) -> np.ndarray:
    """clamp(to_s32(round_even(min(fma(x, f32(1 / scale), f32(zero_point)), 2^31 - 128)))), ties to even.

    The zero point is added before rounding: 0.5 becomes 0 for a zero point of 0, and 2 for one of 1. NaN becomes
    `maximum`; what lies below 32 bits becomes -2^31, so `minimum`. Args and result: as `binary32_divide_away`.
    Source: docs/facts/caffe2.md 2 (Int8Quantize), verified by running.

    >>> one = np.float32(1)
    >>> [int(v) for v in binary32_reciprocal_fused_even(np.float32([0.5, -0.5, 1e9]), one, np.int64(1), -128, 127)]
    [2, 0, 127]
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reciprocal = np.float32(1) / scale.astype(np.float32)
        moved = floats.fused_multiply_add(x.astype(np.float32), reciprocal, zero_point.astype(np.float32))
        largest = np.float32(2147483520)
        return np.clip(floats.truncate_to_s32(np.rint(np.where(moved < largest, moved, largest))), minimum, maximum)


def binary64_multiply(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """f32(f64(scale) * (q - zero_point)): one rounding.

    Source: docs/facts/litert.md 2.3 (DEQUANTIZE), verified by running.

    >>> binary64_multiply(np.int8([3]), np.float32([0.1]), np.int64([1])).tolist()
    [0.20000000298023224]
    """
    return (scale.astype(np.float64) * (q.astype(np.int64) - zero_point)).astype(np.float32)


def binary32_multiply_add(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """f32(f32(f32(q) * scale) + f32(-zero_point * f64(scale))): three roundings.

    Source: docs/facts/litert.md 2.3 (DEQUANTIZE, vector loop), verified by running.

    >>> binary32_multiply_add(np.int8([4]), np.float32([0.1]), np.int64([1])).tolist()
    [0.30000001192092896]
    """
    addend = (-zero_point * scale.astype(np.float64)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return q.astype(np.float32) * scale.astype(np.float32) + addend


def binary32_fused_multiply_add(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """f32(f32(q) * scale + f32(-zero_point * f64(scale))): product and sum are rounded once.

    Source: kernels/internal/optimized/optimized_ops.h (Dequantize), verified by running on aarch64.

    >>> binary32_fused_multiply_add(np.int8([5]), np.float32([0.1]), np.int64([3])).tolist()
    [0.19999998807907104]
    """
    addend = (-zero_point * scale.astype(np.float64)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return floats.fused_multiply_add(q.astype(np.float32), scale.astype(np.float32), addend)


def binary32_multiply(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """f32(f32(wrap32(q - zero_point)) * f32(scale)): two roundings, the first one above 2^24 only.

    q holds integers, or floats of 8 bits and fewer, all of them exact in binary64. Infinity * 0 is negative NaN.
    Source: docs/facts/onnxruntime.md 1.2, verified by running.

    >>> binary32_multiply(np.int32([16777217, 3]), np.float32([0.1]), np.int64([0])).tolist()
    [1677721.625, 0.30000001192092896]
    """
    with np.errstate(all="ignore"):
        difference = q.astype(np.float64) - zero_point
        around = np.floor(difference * 2.0**-32 + 0.5)
        # Infinities stay.
        difference = np.where(
            around == 0, difference, np.where(np.isinf(around), around, difference - around * 2.0**32)
        )
        first, second = difference.astype(np.float32), scale.astype(np.float32)
        return _signed_nan(first * second, first, second)


def exact_multiply_odd(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    """(q - zero_point) * scale in binary64, rounded to odd: what `narrow` makes of it is rounded once.

    q, zero_point: integers of up to 32 bits, or floats of 8 bits and fewer; scale: of 24 bits or fewer.
    Source: the formula of the specification, correctly rounded.

    >>> exact_multiply_odd(np.int32([16777217]), np.float32([0.1]), np.int64([0])).astype(np.float32).tolist()
    [1677721.75]
    """
    with np.errstate(all="ignore"):
        difference, wide = q.astype(np.float64) - zero_point, scale.astype(np.float64)
        # Products of 24-bit numbers are exact in binary64.
        high = difference.astype(np.float32).astype(np.float64)
        low = np.where(np.isinf(high), 0.0, difference - high)
        product = high * wide
        result = np.where(low == 0, product, floats.add_to_odd(product, low * wide))
        return _signed_nan(result, difference, wide)


def _signed_nan(result: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Processors differ in the NaN that an invalid operation gives, and in which of two they keep.

    Here the former is negative, and the first operand is kept.
    """
    missing = np.isnan(result)
    if not missing.any():
        return result
    one, other = np.isnan(first), np.isnan(second)
    return np.where(missing & ~one & ~other, np.copysign(result, -1), np.where(one & other, first, result))


QUANTIZE: dict[str, QuantizeRule] = {
    "binary32_divide_away": binary32_divide_away,
    "binary32_divide_away_sum": binary32_divide_away_sum,
    "binary64_divide_away": binary64_divide_away,
    "binary32_divide_away_limited": binary32_divide_away_limited,
    "binary64_divide_away_limited": binary64_divide_away_limited,
    "binary32_divide_even": binary32_divide_even,
    "binary32_reciprocal_away_sum": binary32_reciprocal_away_sum,
    "binary32_reciprocal_even": binary32_reciprocal_even,
    "binary32_reciprocal_even_limited": binary32_reciprocal_even_limited,
    "binary32_reciprocal_even_wrap": binary32_reciprocal_even_wrap,
    "binary32_reciprocal_even_wrap_limited": binary32_reciprocal_even_wrap_limited,
    "binary32_reciprocal_fused_even": binary32_reciprocal_fused_even,
}
DEQUANTIZE: dict[str, DequantizeRule] = {
    "binary64_multiply": binary64_multiply,
    "binary32_multiply": binary32_multiply,
    "binary32_multiply_add": binary32_multiply_add,
    "binary32_fused_multiply_add": binary32_fused_multiply_add,
    "exact_multiply_odd": exact_multiply_odd,
}

"""Slot `plain_range`: the interval that a fused activation leaves of an unquantized type, and the arithmetic within it.

Unquantized integers wrap to their width before the clamp. binary32 results are single IEEE operations, ties to even.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

_ACTIVATIONS: dict[str, tuple[int | None, int | None]] = {
    "none": (None, None),
    "relu": (0, None),
    "relu6": (0, 6),
    "relu_n1_to_1": (-1, 1),
    # Accepted and ignored by the reference kernels.
    "tanh": (None, None),
    "sign_bit": (None, None),
}

# Unsigned numbers of a type's width, what x86 and NumPy on x86 make of an invalid operation (other machines clear the
# sign bit), and the bit that makes a NaN quiet.
_NANS: dict[np.dtype, tuple[Any, Any, Any]] = {
    np.dtype(np.float32): (np.uint32, np.uint32(0xFFC00000), np.uint32(0x00400000)),
    np.dtype(np.float16): (np.uint16, np.uint16(0xFE00), np.uint16(0x0200)),
}


def type_limits(activation: str, dtype: np.dtype) -> tuple[int, int] | tuple[float, float]:
    """[lower, upper] of the activation, where an open side is the type's own limit: for floats the largest finite one.

    So infinities become finite even without an activation. A bound outside the type wraps (-1 as u32 is 2^32 - 1).
    No ties. Domain: binary32 and integers. Source: docs/facts/litert.md 2.2; the kernels, read and run.

    >>> type_limits("relu6", np.dtype(np.int32)), type_limits("relu_n1_to_1", np.dtype(np.uint32))
    ((0, 6), (4294967295, 1))
    >>> type_limits("none", np.dtype(np.float32))[1] == float(np.finfo(np.float32).max)
    True
    """
    lower, upper = _ACTIVATIONS[activation]
    if dtype.kind == "f":
        largest = float(np.finfo(dtype).max)
        return (-largest if lower is None else float(lower), largest if upper is None else float(upper))
    info = np.iinfo(dtype)
    modulus = 1 << info.bits

    def wrapped(bound: int) -> int:
        return (bound - int(info.min)) % modulus + int(info.min)

    return (
        int(info.min) if lower is None else wrapped(lower),
        int(info.max) if upper is None else wrapped(upper),
    )


def unlimited(activation: str, dtype: np.dtype) -> tuple[float, float]:
    """[lower, upper] of the activation, where an open side is infinite: infinities stay what they are.

    For integers, and without an activation for truth values, it is the type's own limit. No ties. Domain: real numbers,
    integers and truth values. Source: docs/facts/xnnpack.md 3.1, verified by running.

    >>> unlimited("relu6", np.dtype(np.float32)), unlimited("none", np.dtype(np.float32))
    ((0.0, 6.0), (-inf, inf))
    """
    if dtype.kind == "b":
        return (0, 1)
    if dtype.kind != "f":
        return type_limits(activation, dtype)
    lower, upper = _ACTIVATIONS[activation]
    return (-np.inf if lower is None else float(lower), np.inf if upper is None else float(upper))


def clamp(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """min(max(value, low), high) in the type of `values`; NaN stays what it is, and so does -0 next to a bound of 0.

    >>> clamp(np.float32([np.inf, -0.0, 9, -9]), 0.0, 6.0).tolist(), clamp(np.int32([-9, 9]), -1, 1).tolist()
    ([6.0, -0.0, 6.0, 0.0], [-1, 1])
    """
    lower, upper = values.dtype.type(low), values.dtype.type(high)
    raised = np.where(values < lower, lower, values)
    return np.where(raised > upper, upper, raised)


def with_first_nan(result: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """binary32 or binary16 `result` with the NaNs that x86 gives: the first NaN operand, made quiet; else the default.

    Source: Intel SDM volume 1, table 4-7, read; run on the kernels. Where both operands are NaN, compilers may swap
    the operands of a commutative operation, so that the second one is kept there.

    >>> nan = np.uint32([0x7F800001]).view(np.float32)
    >>> [hex(v) for v in with_first_nan(nan, np.float32([1]), nan).view(np.uint32)]
    ['0x7fc00001']
    """
    wrong = np.isnan(result)
    if not wrong.any():
        return result
    unsigned, invalid, quiet = _NANS[result.dtype]
    bits = [np.ascontiguousarray(operand).view(unsigned) | quiet for operand in (first, second)]
    kept = np.where(np.isnan(first), bits[0], np.where(np.isnan(second), bits[1], invalid))
    return np.where(wrong, kept, result.view(unsigned)).astype(unsigned).view(result.dtype)


def open_limits(activation: str, dtype: np.dtype) -> tuple[float, float]:
    """[lower, upper] of the activation, where an open side is infinite: without an activation every value stays.

    Applied by `cap_then_raise`. Domain: binary32. Source: portable_tensor_utils.cc (ApplyReluToVector), verified by
    running.

    >>> open_limits("relu6", np.dtype(np.float32)), open_limits("none", np.dtype(np.float32))
    ((0.0, 6.0), (-inf, inf))
    """
    lower, upper = _ACTIVATIONS[activation]
    return (-np.inf if lower is None else float(lower), np.inf if upper is None else float(upper))


def lower_for_nan(activation: str, dtype: np.dtype) -> tuple[float, float]:
    """[lower, upper] of the activation, where an open side is infinite; NaN becomes the lower one, -infinity, too.

    Applied by `cap_then_raise_all`. Domain: binary32. Source: docs/facts/xnnpack.md 2.8, verified by running.

    >>> lower_for_nan("relu6", np.dtype(np.float32)), lower_for_nan("none", np.dtype(np.float32))
    ((0.0, 6.0), (-inf, inf))
    """
    return open_limits(activation, dtype)


def cap_then_raise(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """max(low, min(value, high)), the bound where neither is larger: NaN and -0 become a lower bound of 0.

    Without a lower bound (-infinity) NaN stays.

    >>> cap_then_raise(np.float32([np.nan, -0.0, 9, -9]), 0.0, 6.0).tolist()
    [0.0, 0.0, 6.0, 0.0]
    """
    if low == -np.inf:
        return np.where(values > high, values.dtype.type(high), values)
    return cap_then_raise_all(values, low, high)


def cap_then_raise_all(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """max(low, min(value, high)), the bound where neither is larger, also where that is -infinity.

    >>> cap_then_raise_all(np.float32([np.nan, -0.0, 9]), -np.inf, 6.0).tolist()
    [-inf, -0.0, 6.0]
    """
    lower, upper = values.dtype.type(low), values.dtype.type(high)
    capped = np.where(values > upper, upper, values)
    return np.where(capped > lower, capped, lower)


def upper_for_nan(activation: str, dtype: np.dtype) -> tuple[int, int] | tuple[float, float]:
    """`type_limits`, applied by `cap_all_then_raise`: NaN becomes the upper one. Source: ruy/kernel_avx512.cc, run."""
    return type_limits(activation, dtype)


def lower_for_nan_by_fours(activation: str, dtype: np.dtype) -> tuple[int, int] | tuple[float, float]:
    """`type_limits`, applied by `clamp_by_fours`: NaN becomes the lower one in whole fours of channels.

    Source: optimized/integer_ops/depthwise_conv_hybrid.h, verified by running.
    """
    return type_limits(activation, dtype)


def cap_all_then_raise(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """max(min(value, high), low), the bound where neither is smaller or larger: NaN becomes `high`, -0 a bound of 0.

    >>> cap_all_then_raise(np.float32([np.nan, -0.0, 9, -9]), 0.0, 6.0).tolist()
    [6.0, 0.0, 6.0, 0.0]
    """
    lower, upper = values.dtype.type(low), values.dtype.type(high)
    capped = np.where(values < upper, values, upper)
    return np.where(capped > lower, capped, lower)


def clamp_by_fours(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """min(max(value, low), high), the lower bound where neither is larger (of NaN, too), in fours of the last axis;
    `clamp` behind them.

    >>> clamp_by_fours(np.float32([np.nan, -0.0, 9, -9, np.nan, -0.0]), 0.0, 6.0).tolist()
    [0.0, 0.0, 6.0, 0.0, nan, -0.0]
    """
    lower, upper = values.dtype.type(low), values.dtype.type(high)
    found, whole = np.asarray(clamp(values, low, high)), values.shape[-1] // 4 * 4
    raised = np.where(values > lower, values, lower)[..., :whole]
    found[..., :whole] = np.where(raised > upper, upper, raised)
    return found


def upper_for_nan_behind_fours(activation: str, dtype: np.dtype) -> tuple[int, int] | tuple[float, float]:
    """`type_limits`, applied by `clamp_rows_by_fours`: behind the whole fours of a row NaN becomes the upper one.

    Source: optimized/depthwiseconv_float.h, verified by running.
    """
    return type_limits(activation, dtype)


def by_signs_but_behind_fours(activation: str, dtype: np.dtype) -> tuple[int, int] | tuple[float, float]:
    """`type_limits`, applied as for `upper_for_nan_behind_fours`, but in fours -0 becomes a lower bound of 0, too.

    Source: the same kernel on aarch64, verified by running.
    """
    return type_limits(activation, dtype)


# Sums that wait for their limits, so that wide rows come in parts.
_WAITING = 4832


def clamp_rows_by_fours(
    values: np.ndarray, low: float, high: float, of_fours: Callable[[np.ndarray, float, float], np.ndarray] = clamp
) -> np.ndarray:
    """`of_fours` for the whole fours of a row, the last two axes; `cap_all_then_raise` for the one to three behind.
    Rows of more than 4832 values are cut into parts of as many pixels as these hold.

    >>> clamp_rows_by_fours(np.float32([[np.nan], [-0.0], [9], [-9], [np.nan], [-0.0]]), 0.0, 6.0).ravel().tolist()
    [nan, -0.0, 6.0, 0.0, 6.0, 0.0]
    """
    found = np.array(of_fours(values, low, high))
    width, channels = values.shape[-2:]
    pixels = max(1, _WAITING // channels)
    given, rows = values.reshape(-1, width * channels), found.reshape(-1, width * channels)
    for first in range(0, width, pixels):
        last = min(first + pixels, width) * channels
        left = slice(last - (last - first * channels) % 4, last)
        rows[:, left] = cap_all_then_raise(given[:, left], low, high)
    return found


def unlimited_by_signs(activation: str, dtype: np.dtype) -> tuple[float, float]:
    """[lower, upper] of the activation, where an open side is infinite; NaN stays, and -0 becomes a lower bound of 0.

    Applied by `clamp_by_signs`. Domain: real numbers. Source: the instructions FMAX and FMIN of aarch64; run.

    >>> unlimited_by_signs("relu6", np.dtype(np.float32))
    (0.0, 6.0)
    """
    return open_limits(activation, dtype)


def clamp_by_signs(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """As `clamp`, but -0 lies below 0.

    >>> clamp_by_signs(np.float32([np.nan, -0.0, 9]), 0.0, 6.0).tolist()
    [nan, 0.0, 6.0]
    """
    clamped = clamp(values, low, high)
    return np.where(clamped == 0, values.dtype.type(0), clamped) if low == 0 else clamped


RULES: dict[str, Callable[[str, np.dtype], tuple[int, int] | tuple[float, float]]] = {
    "type_limits": type_limits,
    "lower_for_nan": lower_for_nan,
    "lower_for_nan_by_fours": lower_for_nan_by_fours,
    "upper_for_nan": upper_for_nan,
    "upper_for_nan_behind_fours": upper_for_nan_behind_fours,
    "by_signs_but_behind_fours": by_signs_but_behind_fours,
    "open_limits": open_limits,
    "unlimited": unlimited,
    "unlimited_by_signs": unlimited_by_signs,
}
# How the limits of each rule are applied.
CLAMPS: dict[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    "type_limits": clamp,
    "lower_for_nan": cap_then_raise_all,
    "lower_for_nan_by_fours": clamp_by_fours,
    "upper_for_nan": cap_all_then_raise,
    "upper_for_nan_behind_fours": clamp_rows_by_fours,
    "by_signs_but_behind_fours": partial(clamp_rows_by_fours, of_fours=clamp_by_signs),
    "open_limits": cap_then_raise,
    "unlimited": clamp,
    "unlimited_by_signs": clamp_by_signs,
}
